"""Where the library is, or why there is none."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from retouch.errors import EngineMissingError

__all__ = ["LIBRARY_VARIABLE", "custom_ops_library", "library"]

LIBRARY_VARIABLE = "RETOUCH_ORT_EP_LIBRARY"
"""Names a library to use instead of the one that was built with the package."""

_DISTRIBUTION = "retouch"
_FILE = "libretouch_ort_ep.so"
_OUTCOME = "build_outcome.txt"


def library() -> Path | str:
    """The path of the library, or why there is none."""
    named = os.environ.get(LIBRARY_VARIABLE)
    if named is not None:
        return Path(named) if Path(named).is_file() else f"{LIBRARY_VARIABLE} names {named!r}, which is no file"
    path = _installed(_FILE)
    if path is not None:
        return path
    outcome = _installed(_OUTCOME)
    reason = outcome.read_text(encoding="utf-8").strip() if outcome is not None else ""
    return f"it was not built: {reason}" if reason else "it was not built with the package"


def custom_ops_library() -> Path:
    """The library, for ``onnxruntime.SessionOptions.register_custom_ops_library``.

    By it a session knows the ``ai.retouch`` operators without function bodies, which some providers do not take, and on
    releases of onnxruntime that have no plug-in providers (from 1.18 on). It then runs them on these kernels alone:
    an operator on rows of a type that they do not have is an error.

    Raises:
        EngineMissingError: there is no library.
    """
    path = library()
    if isinstance(path, str):
        raise EngineMissingError(
            f"Expected the library of kernels, but {path}. Install Retouch where a C++ compiler and the C headers of "
            f"ONNX Runtime are, or name a library in {LIBRARY_VARIABLE}."
        )
    return path


def _installed(name: str) -> Path | None:
    """A file that the build installed beside this package; an editable install keeps it away from the sources."""
    beside = Path(__file__).parent / name
    if beside.is_file():
        return beside
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == name]
    return next((path for path in found if path.is_file()), None)
