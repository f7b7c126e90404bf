"""One file, replaced in one step."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Writes a text file in one step: after any failure the old one is still there.

    Raises:
        OSError: it cannot be written.
    """
    replace_bytes(path, memoryview(text.encode("utf-8")))


def replace_bytes(path: Path, contents: memoryview) -> None:
    """Writes a file in one step: after any failure the old one is still there.

    Raises:
        OSError: it cannot be written.
    """
    staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with staged.open("xb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())  # or a power cut may leave an empty file under the right name
        staged.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)
        raise


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's contents, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
