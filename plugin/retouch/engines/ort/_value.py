"""A tensor that ONNX Runtime can bind."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.engines.ort._runtime import load_onnxruntime

if TYPE_CHECKING:
    import onnxruntime


class OrtTensor:
    """A value that holds an ``onnxruntime.OrtValue``."""

    def __init__(
        self, ort_value: onnxruntime.OrtValue, shared: NDArray[Any] | None = None, owner: object = None
    ) -> None:
        """Holds the value, the array whose memory it shares if there is one, and what its memory belongs to."""
        self.ort_value = ort_value
        self._shared = shared
        self._owner = owner

    @classmethod
    def from_numpy(cls, array: NDArray[Any], device: str) -> OrtTensor:
        """The array as a value: on the host it shares the array's memory and keeps it alive."""
        contiguous = np.asarray(array, order="C")
        value = load_onnxruntime().OrtValue.ortvalue_from_numpy(contiguous, device, 0)
        return cls(value, contiguous if device == "cpu" else None)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.ort_value.shape())

    @cached_property
    def dtype(self) -> str:
        """The numpy dtype's name."""
        return str(ir.DataType(self.ort_value.element_type()).numpy())

    @cached_property
    def nbytes(self) -> int:
        """The size of the contents."""
        return int(self.ort_value.tensor_size_in_bytes())

    @cached_property
    def digest(self) -> str:
        """A digest of dtype, shape and contents."""
        digest = hashlib.blake2b(f"{self.dtype}{self.shape}".encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.numpy()).data)
        return digest.hexdigest()

    def numpy(self) -> NDArray[Any]:
        """The contents as a read-only array, without a copy if they are in host memory."""
        # What onnxruntime would give for shared memory does not keep that memory alive once this value is gone.
        array: NDArray[Any] = self.ort_value.numpy() if self._shared is None else self._shared.view()
        array.flags.writeable = False
        return array
