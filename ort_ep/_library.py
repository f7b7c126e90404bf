"""Where the library is, or why there is none."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

__all__ = ["LIBRARY_VARIABLE", "library"]

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
