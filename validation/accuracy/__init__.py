"""Validation of a bundle with Polygraphy: edits against the masked reference and against full recomputations.

Implement nothing here. Polygraphy and matplotlib are imported when something is validated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    # Before anything else
    "require_polygraphy",
    # Validating
    "ValidationOptions",
    "Validation",
    "validate",
    # What was found
    "CaseFigures",
    "Figures",
    "OutputFigures",
    "ZoneFigures",
    # Writing it down
    "figures_json",
    "summary_table",
    "write_report",
]

from retouch.validation.accuracy._figures import CaseFigures, Figures, OutputFigures, ZoneFigures
from retouch.validation.accuracy._options import ValidationOptions
from retouch.validation.accuracy._polygraphy import require_polygraphy

if TYPE_CHECKING:
    from retouch.validation.accuracy._page import summary_table
    from retouch.validation.accuracy._report import figures_json, write_report
    from retouch.validation.accuracy._validate import Validation, validate

_HOMES = {
    "Validation": "_validate",
    "validate": "_validate",
    "figures_json": "_report",
    "summary_table": "_page",
    "write_report": "_report",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its names are {', '.join(__all__)}")
    import importlib

    require_polygraphy()
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
