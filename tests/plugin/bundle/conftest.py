"""A bundle on disk, for tests of what is done with its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from retouch.bundle import Bundle
from tests.plugin.bundle.smallest import write


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write(tmp_path / "b")
