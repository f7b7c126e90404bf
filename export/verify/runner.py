"""A stock ONNX Runtime session for verification: CPU, sparing with memory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from retouch.errors import EngineMissingError, VerificationError

__all__ = ["Runner", "session_of"]


class Runner:
    """Runs one graph; feeds that it has no input for are ignored."""

    def __init__(self, session: Any, name: str) -> None:  # noqa: ANN401 (onnxruntime has no types)
        self._session, self._name = session, name
        self._inputs = [value.name for value in session.get_inputs()]
        self._outputs = [value.name for value in session.get_outputs()]

    @classmethod
    @lru_cache(maxsize=2)
    def open(cls, path: Path) -> Runner:
        """A runner of a graph file; the last two are kept."""
        return cls(session_of(path, path.name), path.name)

    @classmethod
    def from_model(cls, model: ir.Model) -> Runner:
        """A runner of a model in memory."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            ir.save(model, path, external_data="model.bin")
            # As written: optimised nodes would run out of order, and one copy of the model far ahead of the other.
            return cls(session_of(path, "masked reference", optimised=False), "masked reference")

    def run(self, feeds: Mapping[str, np.ndarray], outputs: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """The outputs by name, all of them unless some are named."""
        names = list(outputs or self._outputs)
        try:
            results = self._session.run(names, {name: feeds[name] for name in self._inputs})
        except Exception as error:  # ONNX Runtime's errors have no other class in common
            raise VerificationError(_explained("run", self._name, error)) from error
        return dict(zip(names, results, strict=True))


def _explained(what: str, graph: str, error: Exception) -> str:
    about = (
        "The model itself cannot be run with the feeds that were made up for it: pass feeds that it accepts "
        "(--example FEEDS.npz), or check that ONNX Runtime runs the model."
        if graph == "base.onnx"
        else "An operator is not supported in this form: leave verification out only if your engine runs the graph."
    )
    return f"ONNX Runtime cannot {what} {graph} ({str(error).strip()}). {about}"


def session_of(path: Path, name: str, *, optimised: bool = True) -> Any:  # noqa: ANN401 (onnxruntime has no types)
    """A session of a graph file that goes by a name in messages.

    Raises:
        VerificationError: ONNX Runtime cannot load it.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise EngineMissingError(
            'Verification needs ONNX Runtime, which is not installed: pip install "retouch[cpu]" (or "retouch[gpu]").'
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # In the order of the nodes, and giving memory back at once: the masked reference holds every value twice.
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise VerificationError(_explained("load", name, error)) from error
