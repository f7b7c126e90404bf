"""Tensors of other libraries and for them, by DLPack (https://dmlc.github.io/dlpack), without any of them."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from retouch.errors import FeedError

__all__ = ["CUDA_DEVICE", "Borrowed", "as_capsule", "borrowed"]

CUDA_DEVICE = 2
"""DLPack's number for the memory of CUDA cards."""

_NAME = ctypes.create_string_buffer(b"dltensor")
_USED = ctypes.create_string_buffer(b"used_dltensor")
_BFLOAT = 4
_BOOL = 6
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes, _new.restype = (ctypes.c_void_p, ctypes.c_void_p, _Destructor), ctypes.py_object
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_void_p
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes, _rename.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int

_given: dict[int, tuple[object, ...]] = {}
"""What keeps the memory of tensors that others hold, by the addresses of their descriptions."""


@dataclass(frozen=True)
class Borrowed:
    """A tensor of another library.

    Attributes:
        address: where its contents begin.
        shape: its shape.
        dtype: its numpy dtype.
        device: DLPack's kind of device, and the device's number.
    """

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: tuple[int, int]


def as_capsule(
    address: int, shape: tuple[int, ...], dtype: np.dtype[Any], device: tuple[int, int], owner: object
) -> object:
    """A capsule that hands memory to another library; the owner lives until that has no use for it any more."""
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    managed = _Managed()
    managed.tensor = _Tensor(address, _Device(*device), len(shape), _type_of(dtype), sizes, None, 0)
    managed.deleter = _delete_callback
    place = ctypes.addressof(managed)
    _given[place] = (managed, sizes, owner)
    capsule: object = _new(place, ctypes.addressof(_NAME), _destroy_callback)
    return capsule


@contextlib.contextmanager
def borrowed(tensor: Any, stream: int) -> Iterator[Borrowed]:  # noqa: ANN401  (of any library)
    """The memory of another library's tensor, ready to be read on a stream of the card.

    Raises:
        FeedError: its numbers do not lie one behind another, or are of a type that numpy does not have.
    """
    device = tuple(int(part) for part in tensor.__dlpack_device__())
    try:
        capsule = tensor.__dlpack__(stream=stream if device[0] == CUDA_DEVICE else None)
    except (BufferError, RuntimeError, TypeError) as error:
        raise FeedError(f"Expected a tensor to read, got: {error}. Pass tensor.detach(), or a numpy array.") from error
    place = _pointer(id(capsule), ctypes.addressof(_NAME))
    managed = ctypes.cast(place, ctypes.POINTER(_Managed)).contents
    _rename(id(capsule), ctypes.addressof(_USED))
    try:
        yield _described(managed.tensor, (device[0], device[1]))
    finally:
        if managed.deleter:
            managed.deleter(ctypes.pointer(managed))


def _delete(managed: Any) -> None:  # noqa: ANN401
    _given.pop(ctypes.addressof(managed.contents), None)


def _destroy(capsule: int) -> None:
    if _is_valid(capsule, ctypes.addressof(_NAME)):  # else somebody took it and deletes it
        _given.pop(_pointer(capsule, ctypes.addressof(_NAME)), None)


_delete_callback = _Deleter(_delete)
_destroy_callback = _Destructor(_destroy)


def _described(tensor: Any, device: tuple[int, int]) -> Borrowed:  # noqa: ANN401
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    if tensor.strides and not _is_contiguous(shape, [tensor.strides[axis] for axis in range(tensor.rank)]):
        raise FeedError("Expected a tensor whose numbers lie one behind another, got strides. Make it contiguous.")
    return Borrowed((tensor.data or 0) + tensor.offset, shape, _dtype_of(tensor.type), device)


def _is_contiguous(shape: tuple[int, ...], strides: list[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _type_of(dtype: np.dtype[Any]) -> _Type:
    if dtype == ml_dtypes.bfloat16:
        return _Type(_BFLOAT, 16, 1)
    if dtype.kind == "b":
        return _Type(_BOOL, 8, 1)
    code = next(code for code, kind in _KINDS.items() if kind == dtype.kind)
    return _Type(code, 8 * dtype.itemsize, 1)


def _dtype_of(kind: Any) -> np.dtype[Any]:  # noqa: ANN401
    dtype: np.dtype[Any]
    if kind.lanes == 1 and kind.code == _BFLOAT and kind.bits == 16:
        dtype = np.dtype(ml_dtypes.bfloat16)
        return dtype
    if kind.lanes == 1 and kind.code == _BOOL:
        return np.dtype(np.bool_)
    if kind.lanes != 1 or kind.code not in _KINDS or kind.bits % 8:
        raise FeedError(f"Expected a tensor of plain numbers, got DLPack's type {kind.code} of {kind.bits} bits.")
    dtype = np.dtype(f"{_KINDS[kind.code]}{kind.bits // 8}")
    return dtype
