"""One weights file for all graphs of a bundle: equal tensors are written once, those in a shared file not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx_ir as ir

from retouch.export.shared_weights import Digest, SharedWeights, digest_of

__all__ = ["WeightsFile"]

_INLINE_BYTES = 1024
_PAGE = 4096


class WeightsFile:
    """Writes initializers to one file and lets the models refer to it.

    Large tensors start on a page, so that a runtime can map them.
    """

    def __init__(self, path: Path, shared: SharedWeights | None = None) -> None:
        """Opens nothing yet.

        Args:
            path: the file, beside the graphs.
            shared: weights in another file; what is there is not written again.
        """
        self.path = path
        self.shared_bytes = 0
        self._shared = shared
        self._places: dict[Digest, int] = {}
        self._seen: dict[int, tuple[ir.TensorProtocol, Digest]] = {}
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
                value.const_value = self._external(tensor, str(value.name), file)
                _unmap(tensor)

    def _external(self, tensor: ir.TensorProtocol, name: str, file: BinaryIO) -> ir.ExternalTensor:
        key, shape = self._key(tensor), ir.Shape(tensor.shape.numpy())
        shared = self._shared
        if shared is not None and key in shared.places:
            self.shared_bytes += 0 if key in self._places else key[0]
            offset = self._places.setdefault(key, shared.places[key])
            where, base = shared.location, shared.base
        else:
            offset, where, base = self._place(key, tensor, file), self.path.name, self.path.parent
        return ir.ExternalTensor(where, offset, key[0], tensor.dtype, shape=shape, name=name, base_dir=base)

    def _place(self, key: Digest, tensor: ir.TensorProtocol, file: BinaryIO) -> int:
        if key not in self._places:
            data = tensor.tobytes()
            align = _PAGE if len(data) >= _PAGE * 16 else 64
            start = -(-self._end // align) * align
            file.write(b"\0" * (start - self._end))
            file.write(data)
            self._places[key] = start
            self._end = start + len(data)
        return self._places[key]

    def _key(self, tensor: ir.TensorProtocol) -> Digest:
        if id(tensor) not in self._seen:
            self._seen[id(tensor)] = (tensor, digest_of(tensor.tobytes()))
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
    if not isinstance(tensor, ir.ExternalTensor | ir.LazyTensor):
        return tensor
    return ir.Tensor(np.array(tensor.numpy()), name=tensor.name)  # a copy: the file may be closed before this is used
