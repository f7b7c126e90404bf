"""Extends ``polygraphy run`` by ``--retouch-edit BUNDLE``. Implement nothing here.

The module is found through the entry point group ``polygraphy.run.plugins`` and needs Polygraphy.
"""

from __future__ import annotations

__all__ = ["EditsRunner", "argument_groups"]

from retouch.validation.polygraphy_run._arguments import argument_groups
from retouch.validation.polygraphy_run._runner import EditsRunner
