"""Resident memory of this process."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Resident:
    """Bytes in memory: now, at most so far, and the part of now that is pages of files."""

    now: int
    peak: int
    mapped: int


def resident() -> Resident:
    """The memory of this process; where the system does not tell, only its peak, and elsewhere zeros."""
    if _STATUS.is_file():
        # Not getrusage: the peak that it gives is inherited from the process that started this one.
        text = _STATUS.read_text(encoding="ascii")
        now, peak, mapped = (_kibibytes(text, field) for field in ("VmRSS", "VmHWM", "RssFile"))
        return Resident(now, peak, mapped)
    if importlib.util.find_spec("resource") is None:
        return Resident(0, 0, 0)
    resource = importlib.import_module("resource")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Resident(peak, peak, 0)


def _kibibytes(text: str, field: str) -> int:
    match = re.search(rf"^{field}:\s*(\d+) kB$", text, re.MULTILINE)
    return 1024 * int(match[1]) if match else 0
