"""Opens and runs graphs in which something is wrong: ``python -m tests.ort_ep.mutated_graphs BUNDLE COUNT``.

They are a bundle's edit graph and graphs of single operators. It is a process of its own, so that a crash is seen; what
is wrong with a graph is told to standard output before it is tried.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as state

from retouch import Bundle, EditSession
from retouch.export.ops import functions
from retouch.ort_ep import register
from tests.ort_ep.operands import CONSTANTS, OPSET, attributes_of, function_of, operands_of
from tests.ort_ep.single_node import make_model
from tests.ort_ep.small_bundle import REGION, feed

DOMAIN = "ai.retouch"
_ODD = (-(2**63), -2, -1, 0, 1, 3, 1000, 2**63 - 1)
_TYPES = ("float16", "float64", "int32", "int64", "uint8", "float32")

ERRORS = (
    state.EPFail,
    state.Fail,
    state.InvalidArgument,
    state.InvalidGraph,
    state.NotImplemented,
    state.RuntimeException,
)

_Feeds = Mapping[str, np.ndarray]
_Draw = Callable[..., object]


def recorded(bundle: Bundle) -> tuple[onnx.ModelProto, _Feeds]:
    """The edit graph, and what an edit of the bundle feeds it."""
    fed: dict[str, np.ndarray] = {}
    bind = onnxruntime.IOBinding.bind_ortvalue_input

    def record(binding: onnxruntime.IOBinding, name: str, value: onnxruntime.OrtValue) -> None:
        fed[name] = np.array(value.numpy())
        bind(binding, name, value)

    with EditSession(bundle, threads=1) as session:
        run = session.base(feed(0))
        onnxruntime.IOBinding.bind_ortvalue_input = record
        session.edit(run, feed(1), region=REGION, fallback=False)
        onnxruntime.IOBinding.bind_ortvalue_input = bind
    model = onnx.load(bundle.path / "edit.onnx")
    return model, {value.name: fed[value.name] for value in model.graph.input}


def single(op: str) -> tuple[onnx.ModelProto, _Feeds]:
    """A graph of one operator, and operands that fit."""
    function = function_of(op)
    operands = operands_of(op, list(function.input))
    constants = {name: value for name, value in operands.items() if name in CONSTANTS}
    model = make_model(op, operands, constants, attributes_of(function))
    return model, {name: value for name, value in operands.items() if name not in constants}


def tried(model: onnx.ModelProto, feeds: _Feeds) -> str:
    """What becomes of a graph: it runs, or there is an error of ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.add_provider_for_devices(register().required(), {})
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        session.run(None, {value.name: feeds[value.name] for value in session.get_inputs()})
    except ERRORS as error:
        return f"{type(error).__name__}: {str(error)[:200]!r}"
    return "runs"


@st.composite
def mutations(draw: _Draw, model: onnx.ModelProto, feeds: _Feeds) -> tuple[str, onnx.ModelProto, _Feeds]:
    """One thing that is wrong, in words, and the graph and its feeds with it."""
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    ours = [node for node in wrong.graph.node if node.domain == DOMAIN]
    node = draw(st.sampled_from(ours))
    kind = draw(st.sampled_from(sorted(_WAYS)))
    return _WAYS[kind](draw, wrong, node, dict(feeds))


def _attribute(
    draw: _Draw, model: onnx.ModelProto, node: onnx.NodeProto, feeds: _Feeds
) -> tuple[str, onnx.ModelProto, _Feeds]:
    """An attribute of another value or type, or one too few or too many."""
    name = draw(st.sampled_from([attribute.name for attribute in node.attribute] + ["groups", "axis", "transB"]))
    value = draw(st.sampled_from([*_ODD, 0.5, "text", [1, 2], None]))
    left = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(left)
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))
    return f"{node.op_type} with {name}={value!r}", model, feeds


def _missing(
    draw: _Draw, model: onnx.ModelProto, node: onnx.NodeProto, feeds: _Feeds
) -> tuple[str, onnx.ModelProto, _Feeds]:
    """An operand or result that is left out, or operands that end too early or too late."""
    place = draw(st.integers(0, len(node.input) - 1))
    way = draw(st.sampled_from(["left out", "cut off", "twice", "first result left out"]))
    if way == "left out":
        node.input[place] = ""
    elif way == "cut off":
        del node.input[place:]
    elif way == "twice":
        node.input.append(node.input[place])
    else:
        node.output[0] = ""
    return f"{node.op_type}: operand {place}, {way}", model, feeds


def _swapped(
    draw: _Draw, model: onnx.ModelProto, node: onnx.NodeProto, feeds: _Feeds
) -> tuple[str, onnx.ModelProto, _Feeds]:
    """Another value of the graph in the place of an operand."""
    known = [value.name for value in model.graph.input] + [weight.name for weight in model.graph.initializer]
    place, other = draw(st.integers(0, len(node.input) - 1)), draw(st.sampled_from(known))
    node.input[place] = other
    return f"{node.op_type}: operand {place} is {other}", model, feeds


def _weight(
    draw: _Draw, model: onnx.ModelProto, node: onnx.NodeProto, feeds: _Feeds
) -> tuple[str, onnx.ModelProto, _Feeds]:
    """A constant of another shape, another type or other numbers."""
    stored = {weight.name: weight for weight in model.graph.initializer}
    own = [name for name in node.input if name in stored]
    if not own:
        return _fed(draw, model, node, feeds)
    weight = stored[draw(st.sampled_from(own))]
    what, array = _spoilt(draw, numpy_helper.to_array(weight))
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    return f"{node.op_type}: constant {weight.name} {what}", model, feeds


def _fed(
    draw: _Draw, model: onnx.ModelProto, node: onnx.NodeProto, feeds: _Feeds
) -> tuple[str, onnx.ModelProto, _Feeds]:
    """A feed of other numbers or another shape, of which the graph says nothing."""
    name = draw(st.sampled_from(sorted(feeds)))
    what, array = _spoilt(draw, feeds[name])
    for value in model.graph.input:
        if value.name == name:
            value.CopyFrom(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None))
    return f"feed {name} {what}", model, {**feeds, name: array}


_WAYS = {"attribute": _attribute, "missing": _missing, "swapped": _swapped, "weight": _weight, "feed": _fed}


def _spoilt(draw: _Draw, array: np.ndarray) -> tuple[str, np.ndarray]:
    """An array with something else in it, and what that is."""
    way = draw(st.sampled_from(["shape", "type", "numbers"]))
    if way == "type":
        dtype = draw(st.sampled_from(_TYPES))
        return f"as {dtype}", array.astype(dtype)
    if way == "numbers" and array.size:
        odd = draw(st.sampled_from(_ODD)) if array.dtype == np.int64 else draw(st.sampled_from([np.nan, np.inf, 1e38]))
        spoilt = np.array(array)
        spoilt.flat[draw(st.integers(0, array.size - 1))] = odd
        return f"holds {odd}", spoilt
    axis = draw(st.integers(0, max(array.ndim - 1, 0)))
    size = draw(st.sampled_from([0, 1, 2, 5, 300]))
    shape = [size if place == axis else length for place, length in enumerate(array.shape)] if array.ndim else [size]
    return f"of shape {shape}", np.resize(array, shape)


def main(bundle: str, count: int) -> None:
    """Tries so many graphs of either kind, and says what became of them."""
    whole = recorded(Bundle.open(Path(bundle)))
    names = sorted(function.name for function in functions(OPSET))
    for graphs in (st.builds(lambda: whole), st.sampled_from(names).map(single)):

        @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(graphs.flatmap(lambda graph: mutations(*graph)))
        def try_one(mutation: tuple[str, onnx.ModelProto, _Feeds]) -> None:
            what, wrong, feeds = mutation
            sys.stdout.write(f"{what}: ")
            sys.stdout.flush()
            sys.stdout.write(f"{tried(wrong, feeds)}\n")

        try_one()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
