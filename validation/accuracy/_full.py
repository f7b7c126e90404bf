"""The full model on ONNX Runtime, with the model's own outputs and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from retouch.errors import EngineMissingError, ModelError


class FullSession:
    """What Polygraphy's runner uses of an ``onnxruntime.InferenceSession``, for some of the outputs.

    A bundle's base graph also gives the states, which are no outputs of the model.
    """

    def __init__(self, model: Path, outputs: Sequence[str], threads: int | None) -> None:
        """Opens the model.

        Raises:
            EngineMissingError: onnxruntime is not installed.
            ModelError: it does not load the model, or the model lacks an output.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise EngineMissingError(
                'Validation needs ONNX Runtime, which is not installed: pip install "retouch[cpu]".'
            ) from error
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if threads is not None:
            options.intra_op_num_threads = threads
        try:
            self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's errors have no other class in common
            raise ModelError(f"ONNX Runtime cannot load {model}: {error}. Give a model that it runs.") from error
        given = {value.name: value for value in self._session.get_outputs()}
        missing = [name for name in outputs if name not in given]
        if missing:
            raise ModelError(
                f"Expected the model {model} to have the outputs {', '.join(map(repr, outputs))} of the bundle, got "
                f"{', '.join(map(repr, given))}. Give the model that the bundle was exported from."
            )
        self._outputs = [given[name] for name in outputs]

    def get_inputs(self) -> list[Any]:
        """The inputs, as ONNX Runtime describes them."""
        return list(self._session.get_inputs())

    def get_outputs(self) -> list[Any]:
        """The chosen outputs, as ONNX Runtime describes them."""
        return self._outputs

    def run(self, _: None, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """The chosen outputs."""
        results: list[NDArray[Any]] = self._session.run([value.name for value in self._outputs], dict(feeds))
        return results
