"""The files in a bundle's folder of engines: their names, and which are not ours."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from retouch.bundle._engines import ENGINES_FOLDER

_NAME = re.compile(r"[a-z_]+-[a-z0-9]+-[0-9a-f]{16}\.engine")
_HALF_WRITTEN = re.compile(r"\..+\.engine\.[0-9a-f]{8}")
_DEPTH = 2
"""So many names an engine's path has below the folder of engines: the target's and its own."""
_WRITTEN_WITHIN = 600.0
"""Seconds in which an engine is written that is being written."""


def engine_name(target: str, graph: str, precision: str, sha256: str) -> str:
    """The path of an engine in its bundle. It names the contents: a new engine never stands in an old one's place."""
    return f"{ENGINES_FOLDER}/{target}/{Path(graph).stem}-{precision}-{sha256[:16]}.engine"


def is_engine_file(path: Path) -> bool:
    """Whether a build wrote a file, by its path in a bundle or anything that holds one."""
    own = _NAME.fullmatch(path.name) or _HALF_WRITTEN.fullmatch(path.name)
    return own is not None and len(path.parts) > _DEPTH and path.parts[-_DEPTH - 1] == ENGINES_FOLDER


def engine_files(bundle: Path) -> Iterator[Path]:
    """The engines in a bundle's directory, listed in its manifest or not."""
    return (path for path in _all_files(bundle) if _NAME.fullmatch(path.name))


def half_written(bundle: Path) -> Iterator[Path]:
    """What killed builds left half written: living ones write faster."""
    latest = time.time() - _WRITTEN_WITHIN
    return (path for path in _all_files(bundle) if _HALF_WRITTEN.fullmatch(path.name) and path.stat().st_mtime < latest)


def foreign_engines(bundle: Path) -> list[str]:
    """The files in a bundle's folder of engines that no build wrote, by their paths in the bundle."""
    return [path.relative_to(bundle).as_posix() for path in _all_files(bundle) if not is_engine_file(path)]


def _all_files(bundle: Path) -> list[Path]:
    return [path for path in (bundle / ENGINES_FOLDER).rglob("*") if not path.is_dir()]
