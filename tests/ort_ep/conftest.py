"""Tests of the execution provider, left out where its library was not built; the header of the run says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from retouch.ort_ep import library

REQUIRED = "RETOUCH_REQUIRE_ORT_EP"
FOUND = library()

if isinstance(FOUND, str) and os.environ.get(REQUIRED) == "1":
    raise pytest.UsageError(f"{REQUIRED}=1, but the execution provider has no library: {FOUND}")

collect_ignore_glob = [] if isinstance(FOUND, Path) else ["test_kernels_*.py", "test_in_session.py"]


def pytest_report_header() -> str:
    return f"execution provider: {FOUND}" if isinstance(FOUND, Path) else f"execution provider: not tested, {FOUND}"
