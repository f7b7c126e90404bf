"""Retouch: edits of a diffusion model's result that compute only the rows they touch.

The names below are imported when they are first used, so that ``import retouch`` needs no inference engine.
Implement nothing here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__all__ = [
    # What a model was exported to
    "Bundle",
    # What an edit changes
    "Region",
    "RegionPolicy",
    # Base runs and edit runs
    "EditRequest",
    "EditSession",
    "Report",
    "Result",
    "Run",
    # Applications of ONNX Runtime as they are
    "InferenceSession",
    "attach",
    # What can go wrong
    "BuildError",
    "BuildRequestError",
    "BundleError",
    "CoverageError",
    "EngineError",
    "EngineMissingError",
    "ExportError",
    "FeedError",
    "ModelError",
    "NonFiniteError",
    "RegionError",
    "ResultFileError",
    "RetouchError",
    "RunError",
    "RunFileError",
    "SamplingError",
    "VerificationError",
]

__version__ = "0.1.0"

if TYPE_CHECKING:
    from retouch.bundle import Bundle
    from retouch.drop_in import InferenceSession, attach
    from retouch.errors import (
        BuildError,
        BuildRequestError,
        BundleError,
        CoverageError,
        EngineError,
        EngineMissingError,
        ExportError,
        FeedError,
        ModelError,
        NonFiniteError,
        RegionError,
        ResultFileError,
        RetouchError,
        RunError,
        RunFileError,
        SamplingError,
        VerificationError,
    )
    from retouch.region import Region, RegionPolicy
    from retouch.session import EditRequest, EditSession, Report, Result, Run

_HOMES = {
    "Bundle": "retouch.bundle",
    "InferenceSession": "retouch.drop_in",
    "attach": "retouch.drop_in",
    "Region": "retouch.region",
    "RegionPolicy": "retouch.region",
    "EditRequest": "retouch.session",
    "EditSession": "retouch.session",
    "Report": "retouch.session",
    "Result": "retouch.session",
    "Run": "retouch.session",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'retouch' has no attribute {name!r}; its public names are {', '.join(__all__)}")
    value: object = getattr(importlib.import_module(_HOMES.get(name, "retouch.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
