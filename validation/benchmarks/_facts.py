"""Where and how something was measured."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

from retouch import __version__
from retouch.engines.ort import HugePages
from retouch.ort_ep import register


def facts_of(threads: str, repeats: int, command: str) -> dict[str, object]:
    """What stands at the top of a page of figures.

    Args:
        threads: the numbers of threads.
        repeats: timed rounds per case.
        command: what measures it again.
    """
    return {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "retouch": __version__,
        "ONNX Runtime": version("onnxruntime"),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "memory": HugePages.here().value,
        "kernels": "Retouch's" if register() else "ONNX Runtime's only",
        "threads": threads,
        "rounds": repeats,
        "command": command,
    }
