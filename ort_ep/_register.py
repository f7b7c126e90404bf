"""Registers the library with ONNX Runtime, once per process."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from retouch.errors import EngineMissingError
from retouch.ort_ep._library import library

__all__ = ["PROVIDER", "Availability", "register"]

PROVIDER = "RetouchExecutionProvider"
"""The name of the execution provider."""

_REGISTRATION = "retouch"
_OLDEST = (1, 24)
"""The first release that lets an execution provider bring a kernel registry."""

_lock = threading.Lock()


@dataclass(frozen=True)
class Availability:
    """Whether the execution provider can be used in this process.

    Attributes:
        devices: what ``SessionOptions.add_provider_for_devices`` wants; empty if it cannot be used, where
            ``required`` raises an error.
        library: the library, if there is one.
        reason: why it cannot be used; empty if it can.
    """

    devices: tuple[Any, ...]
    library: Path | None
    reason: str

    def __bool__(self) -> bool:
        return bool(self.devices)

    def required(self) -> list[Any]:
        """The devices, for a session that is to have the kernels.

        Raises:
            EngineMissingError: they cannot be used.
        """
        if not self:
            raise EngineMissingError(f"Expected {PROVIDER} to be available, but {self.reason}.")
        return list(self.devices)


def register() -> Availability:
    """Whether the execution provider can be used, after registering it with ONNX Runtime.

    Safe to call often and from several threads: the library is registered once. Without a library, or with an
    ONNX Runtime that is too old, nothing happens and the reason says so; bundles then run on stock kernels.
    """
    path = library()
    if isinstance(path, str):
        return Availability((), None, path)
    try:
        runtime = import_module("onnxruntime")
    except ImportError as error:
        return Availability((), path, f"onnxruntime does not load ({error})")
    version = tuple(int(part) for part in runtime.__version__.split(".")[:2])
    if version < _OLDEST:
        return Availability((), path, f"onnxruntime {runtime.__version__} is older than 1.24")
    with _lock:
        return _registered(runtime, path)


def _registered(runtime: ModuleType, path: Path) -> Availability:
    devices = _devices(runtime)
    if not devices:
        try:
            runtime.register_execution_provider_library(_REGISTRATION, str(path))
        except Exception as error:  # noqa: BLE001  (onnxruntime's errors have no other class in common)
            return Availability((), path, f"onnxruntime could not load {path} ({str(error).strip()})")
        devices = _devices(runtime)
    return Availability(devices, path, "" if devices else "onnxruntime offers the library no CPU device")


def _devices(runtime: ModuleType) -> tuple[Any, ...]:
    return tuple(device for device in runtime.get_ep_devices() if device.ep_name == PROVIDER)


def _renew_lock() -> None:
    # A thread that held the lock while another one forked does not exist in the child.
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
