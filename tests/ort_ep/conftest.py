"""Tests of the execution provider, left out where it cannot be used; the header of the run says why."""

from __future__ import annotations

import os

import onnxruntime
import pytest

from retouch.bundle import Bundle
from retouch.ort_ep import register
from tests.ort_ep.small_bundle import export_small

REQUIRED = "RETOUCH_REQUIRE_ORT_EP"
FOUND = register()

if not FOUND and os.environ.get(REQUIRED) == "1":
    raise pytest.UsageError(f"{REQUIRED}=1, but the execution provider cannot be used: {FOUND.reason}")

WITH_PROVIDER = ("kernels_*", "in_session", "kept_weights*", "mutated_graphs", "stored_weights")
WITH_SESSIONS = ("shared_states",)
"""Sessions of Retouch need onnxruntime 1.23; before it kernels are custom operators, for sessions of one's own."""

RELEASE = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
LEFT_OUT = (*(() if FOUND else WITH_PROVIDER), *(() if RELEASE >= (1, 23) else WITH_SESSIONS))
collect_ignore_glob = [f"test_{name}.py" for name in LEFT_OUT]


def pytest_report_header() -> str:
    return f"execution provider: {FOUND.library if FOUND else f'not tested, {FOUND.reason}'}"


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The small model, exported; tests leave it as it is."""
    return export_small(tmp_path_factory.mktemp("small"))
