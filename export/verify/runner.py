"""A stock ONNX Runtime session for verification: CPU, sparing with memory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from retouch.bundle import read_shared, relocate
from retouch.errors import EngineMissingError, VerificationError

__all__ = ["Runner", "session_of"]

_SMALL = 1 << 16
_FLOATS = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}


class Runner:
    """Runs one graph; feeds that it has no input for are ignored."""

    def __init__(self, session: Any, name: str) -> None:  # noqa: ANN401 (onnxruntime has no types)
        self._session, self._name = session, name
        self._inputs = [value.name for value in session.get_inputs()]
        self._outputs = [value.name for value in session.get_outputs()]

    @classmethod
    def open(cls, path: Path) -> Runner:
        """A runner of a graph file. Its weights stay in memory as long as it does."""
        return cls(session_of(path, path.name), path.name)

    @classmethod
    def from_model(cls, model: ir.Model) -> Runner:
        """A runner of a model in memory, whose weights it reads from the file that they are in, if they are in one."""
        # As written: optimised nodes would run out of order, and one copy of the model far ahead of the other.
        name, folder = "masked reference", _weights_folder(model)
        if folder is not None:
            return cls(session_of(ir.to_proto(model).SerializeToString(), name, folder=folder, optimised=False), name)
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "model.onnx"
            ir.save(model, path, external_data="model.bin")
            return cls(session_of(path, name, optimised=False), name)

    def fitting(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The feeds, floating-point ones in the precision of the graph's inputs."""
        types = {value.name: _FLOATS.get(value.type) for value in self._session.get_inputs()}
        chosen = {name: (feed, types.get(name)) for name, feed in feeds.items()}
        return {
            name: feed.astype(dtype) if dtype is not None and feed.dtype.kind == "f" else feed
            for name, (feed, dtype) in chosen.items()
        }

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


def _weights_folder(model: ir.Model) -> Path | None:
    """The folder that all weights of some size are read from, if there is one."""
    tensors = [v.const_value for v in model.graph.initializers.values() if v.const_value is not None]
    folders = {Path(t.base_dir) if isinstance(t, ir.ExternalTensor) else None for t in tensors if t.nbytes > _SMALL}
    return folders.pop() if len(folders) == 1 else None


def session_of(graph: Path | bytes, name: str, *, folder: Path | None = None, optimised: bool = True) -> Any:  # noqa: ANN401 (onnxruntime has no types)
    """A session that goes by a name in messages, of a graph file, or of a graph and the folder of its weights.

    Weights of a file beside the graph are mapped, and no copy of them is made: kernels do not pack them, nothing is
    folded into them and convolutions keep their layout. Nodes are fused all the same.

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
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED if optimised else levels.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    if isinstance(graph, Path) and read_shared(graph.parent) is not None:
        model = onnx.load(graph, load_external_data=False)
        folder = relocate(model, graph.parent)
        graph = model.SerializeToString()
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    try:
        return onnxruntime.InferenceSession(
            graph if isinstance(graph, bytes) else str(graph),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["ConstantFolding"],
        )
    except Exception as error:
        raise VerificationError(_explained("load", name, error)) from error
