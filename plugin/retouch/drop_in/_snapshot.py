"""What an application bound to a session, read out of its binding, and what it is to get, written into it.

A binding does not give its inputs back, least of all those given as raw pointers, nor the names of its outputs. Both
are read by running a small graph on the caller's own binding (see ``snapshot_model``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.bundle import Manifest
from retouch.drop_in._snapshot_graph import COPY, snapshot_model
from retouch.drop_in._stock import IOBinding, OrtValue, StockSession, plain_options
from retouch.errors import FeedError

Provider = tuple[str, Mapping[str, str]]


class Snapshot:
    """Reads the inputs of bindings."""

    def __init__(self, manifest: Manifest, providers: Sequence[Provider]) -> None:
        """Opens the graph that copies.

        Args:
            manifest: the bundle's manifest.
            providers: execution providers with their options, those of the session whose bindings are read.
        """
        self._inputs = [spec.name for spec in manifest.inputs]
        self._outputs = [output.tensor.name for output in manifest.outputs]
        model = ir.to_proto(snapshot_model(manifest)).SerializeToString()
        self._session = StockSession(model, plain_options(), providers=list(providers))

    def read(self, binding: IOBinding) -> tuple[dict[str, NDArray[Any]], dict[str, OrtValue]]:
        """Copies of the bound inputs by name, and the bound outputs by name, which stay bound and hold no result yet.

        Raises:
            FeedError: an input is not bound, or does not fit the bundle.
        """
        for name in self._inputs:
            binding.bind_output(COPY + name, "cpu")
        values = self._run(binding)
        own, copies = values[: -len(self._inputs)], values[-len(self._inputs) :]
        outputs = {self._outputs[_number(value)]: value for value in own}
        for name, value in outputs.items():
            binding.bind_ortvalue_output(name, value)
        return {name: value.numpy().copy() for name, value in zip(self._inputs, copies, strict=True)}, outputs

    def _run(self, binding: IOBinding) -> list[OrtValue]:
        try:
            # Not through the session's method: that refuses a binding made with another session.
            self._session._sess.run_with_iobinding(binding._iobinding, None)  # noqa: SLF001
            values: list[OrtValue] = binding.get_outputs()
        except Exception as error:  # onnxruntime's errors have no other class in common
            raise FeedError(
                f"Expected a binding of the inputs {', '.join(self._inputs)} as the bundle was exported for them, got "
                f"one that does not fit ({str(error).strip()}). Bind every input in the bundle's shape and type, and "
                "bind the outputs again: they are no longer bound."
            ) from error
        finally:
            binding.clear_binding_outputs()
        return values


def write(outputs: Mapping[str, OrtValue], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Put arrays into the memory of bound outputs, on whatever device that is."""
    for name, value in outputs.items():
        value.update_inplace(np.ascontiguousarray(arrays[name]))


def _number(value: OrtValue) -> int:
    return int(value.numpy().flat[0])
