"""Compares an ONNX graph with the module it was traced from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retouch.errors import EngineMissingError, VerificationError
from retouch.models._torch_onnx import Traced

__all__ = ["check_outputs"]

_TOLERANCES = {"float64": 1e-3, "float32": 1e-3, "float16": 3e-2}
"""Largest error by type, relative to the output's scale: other orders of sums, other precision of rotary tables."""


def check_outputs(path: Path, graph: Traced, precision: str | None = None) -> float:
    """The largest error of the outputs of a graph file, relative to their scale.

    Args:
        path: the file.
        graph: what the module gives.
        precision: what the graph was converted to; ``None`` if it computes like the module.

    Raises:
        VerificationError: the graph cannot be run, or its outputs differ from the module's.
    """
    errors = [0.0]
    for name, got in _run(path, graph).items():
        expected = graph.outputs[name].astype(np.float64)
        scale = float(np.abs(expected).max()) or 1.0
        error = float(np.abs(got.astype(np.float64) - expected).max()) / scale
        dtype = graph.outputs[name].dtype.name
        allowed = max(_TOLERANCES.get(one, 0.0) for one in (dtype, precision or dtype))
        if not error <= allowed:
            raise VerificationError(
                f"The output {name!r} of the ONNX graph differs from the torch model's by {error:.1e} of its scale "
                f"(allowed {allowed:.0e}): {_cause(precision)}"
            )
        errors.append(error)
    return max(errors)


def _cause(precision: str | None) -> str:
    if precision == "float16":
        return "values of this model are too large or too small for float16. Export this component with float32."
    return "torch exported another computation. Try another opset, or export the model to ONNX by other means."


def _run(path: Path, graph: Traced) -> dict[str, np.ndarray]:
    try:
        import onnxruntime
    except ImportError as error:
        raise EngineMissingError('Checking the graph needs ONNX Runtime: pip install "retouch[cpu]".') from error
    try:
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        results = session.run(list(graph.outputs), {name: graph.feeds[name] for name in names})
    except Exception as error:  # ONNX Runtime's errors have no other class in common
        raise VerificationError(
            f"ONNX Runtime cannot run the graph that torch exported ({str(error).strip()}). Try another opset."
        ) from error
    return dict(zip(graph.outputs, results, strict=True))
