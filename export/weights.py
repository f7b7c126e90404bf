"""One weights file for all graphs of a bundle: equal tensors are written once."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx_ir as ir

__all__ = ["WeightsFile"]

_INLINE_BYTES = 1024
_PAGE = 4096


class WeightsFile:
    """Writes initializers to one file and lets the models refer to it.

    Large tensors start on a page, so that a runtime can map them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: dict[bytes, tuple[int, int]] = {}
        self._seen: dict[int, tuple[ir.TensorProtocol, bytes]] = {}
        self._end = 0

    def externalise(self, model: ir.Model) -> None:
        """Moves a model's initializers of at least a kilobyte into the file; shapes and indices stay inline.

        What was mapped of the file that they were in is let go.
        """
        with self.path.open("ab") as file:
            for value in model.graph.initializers.values():
                tensor = value.const_value
                if tensor is None:
                    continue
                if _stays_inline(tensor):
                    # The model's own external data is not where the graph will be.
                    value.const_value = _in_memory(tensor)
                    continue
                offset, length = self._place(tensor, file)
                _unmap(tensor)
                value.const_value = ir.ExternalTensor(
                    self.path.name,
                    offset,
                    length,
                    tensor.dtype,
                    shape=ir.Shape(tensor.shape.numpy()),
                    name=str(value.name),
                    base_dir=self.path.parent,
                )

    def _place(self, tensor: ir.TensorProtocol, file: BinaryIO) -> tuple[int, int]:
        key = self._key(tensor)
        if key not in self._places:
            data = tensor.tobytes()
            align = _PAGE if len(data) >= _PAGE * 16 else 64
            start = -(-self._end // align) * align
            file.write(b"\0" * (start - self._end))
            file.write(data)
            self._places[key] = (start, len(data))
            self._end = start + len(data)
        return self._places[key]

    def _key(self, tensor: ir.TensorProtocol) -> bytes:
        if id(tensor) not in self._seen:
            head = f"{tensor.dtype}{tuple(tensor.shape)}".encode()
            self._seen[id(tensor)] = (tensor, hashlib.sha256(head + tensor.tobytes()).digest())
        return self._seen[id(tensor)][1]


def _unmap(tensor: ir.TensorProtocol) -> None:
    if isinstance(tensor, ir.ExternalTensor):
        # Constants that were folded may be views of the map: then it stays until they are gone.
        with suppress(BufferError):
            tensor.release()


def _stays_inline(tensor: ir.TensorProtocol) -> bool:
    if tensor.nbytes < _INLINE_BYTES or tensor.dtype == ir.DataType.STRING:
        return True
    return tensor.dtype == ir.DataType.INT64 and tensor.nbytes < _PAGE * 16


def _in_memory(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    return ir.Tensor(np.array(tensor.numpy()), name=tensor.name)  # a copy: the file may be closed before this is used
