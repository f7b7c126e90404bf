"""Options of the execution provider, and its use by name."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from retouch import EngineError, EngineMissingError
from retouch.bundle import Bundle
from retouch.engines.ort import OrtEngine
from retouch.ort_ep import PROVIDER, register
from tests.ort_ep.single_node import claimed, make_model

RELEASE = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
FALLS_BACK = RELEASE < (1, 32)
"""Before, onnxruntime's Python code printed what went wrong and made a session on the CPU's provider instead."""
RNG = np.random.default_rng(0)
FEEDS = {
    "rows": RNG.standard_normal((600, 64)).astype(np.float32),
    "weight": RNG.standard_normal((64, 300)).astype(np.float32),
    "bias": RNG.standard_normal(300).astype(np.float32),
}
MODEL = make_model("RowLinear", FEEDS, {"weight": FEEDS["weight"], "bias": FEEDS["bias"]}, {"transB": 0})


def opened(
    model: onnx.ModelProto, options: dict[str, str] | None = None, session_threads: int = 2
) -> onnxruntime.InferenceSession:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = session_threads
    settings.log_severity_level = 1
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    settings.add_provider_for_devices(register().required(), options or {})
    return onnxruntime.InferenceSession(model.SerializeToString(), settings)


@pytest.mark.parametrize("threads", ["0", "1", "2", "5"])
def test_threads_of_a_kernel_give_the_same_bits(threads: str) -> None:
    (expected,) = opened(MODEL).run(None, {"rows": FEEDS["rows"]})
    (got,) = opened(MODEL, {"threads": threads}, session_threads=4).run(None, {"rows": FEEDS["rows"]})
    np.testing.assert_array_equal(got, expected)


def merge_of_a_value() -> onnx.ModelProto:
    """A merge into a value that nobody else reads."""
    feeds = {
        "cached": np.zeros((64, 8), np.float32),
        "index": np.array([[1], [2]]),
        "rows": np.ones((2, 8), np.float32),
    }
    model = make_model("MaskedMerge", feeds)
    model.graph.node[0].input[0], model.graph.node[0].output[0] = "negated", "merged"
    nodes = [
        onnx.helper.make_node("Neg", ["cached"], ["negated"]),
        *model.graph.node,
        onnx.helper.make_node("Neg", ["merged"], ["out"]),
    ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@pytest.mark.parametrize("in_place", ["0", "1"])
def test_results_are_the_same_in_place_and_not(in_place: str) -> None:
    feeds = {"cached": RNG.standard_normal((64, 8)).astype(np.float32), "index": np.array([[3], [60]])}
    feeds["rows"] = RNG.standard_normal((2, 8)).astype(np.float32)
    session = opened(merge_of_a_value(), {"in_place": in_place})
    assert claimed(session) == ["MaskedMerge"]
    expected = feeds["cached"].copy()
    expected[[3, 60]] = -feeds["rows"]
    np.testing.assert_array_equal(session.run(None, feeds)[0], expected)


def test_trace_says_which_nodes_have_a_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    opened(MODEL, {"trace": "1"})
    assert "retouch: RowLinear 'node' has a kernel" in capfd.readouterr().err
    left = make_model("RowLinear", FEEDS, None, {"transB": 0})
    opened(left, {"trace": "1"})
    assert "retouch: RowLinear 'node' is left to its function body" in capfd.readouterr().err
    opened(MODEL)
    assert "retouch:" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "most"),
    [("in_place", "maybe", 1), ("threads", "-1", 1024), ("threads", "", 1024), ("trace", "2", 1)],
)
def test_an_option_that_makes_no_sense_is_an_error(name: str, value: str, most: int) -> None:
    if FALLS_BACK:
        assert PROVIDER not in opened(MODEL, {name: value}).get_providers()
        return
    with pytest.raises(Exception, match=f"expected the option {name} to be a number from 0 to {most}, got '{value}'"):
        opened(MODEL, {name: value})


def test_engines_pass_options_on(bundle: Bundle) -> None:
    graph = bundle.path / "edit.onnx"
    engine = OrtEngine([(PROVIDER, {"threads": 1, "in_place": 0})], threads=2)
    assert engine.open(graph).kernels == OrtEngine(threads=2).open(graph).kernels != {}
    with pytest.raises((EngineError, EngineMissingError), match=r"to load, got only|option threads to be a number"):
        OrtEngine([(PROVIDER, {"threads": "all"})]).open(graph)


@pytest.mark.skipif(RELEASE < (1, 28), reason="this release takes no plug-in by name")
def test_sessions_may_name_the_provider() -> None:
    assert register()
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    providers = [(PROVIDER, {"threads": "1"}), "CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(MODEL.SerializeToString(), options, providers=providers)
    assert claimed(session) == ["RowLinear"]
