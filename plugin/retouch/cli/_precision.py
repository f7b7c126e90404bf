"""``--precision``: of a model, or of every component of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from retouch.errors import ExportError


def read_precisions(given: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """The precision of everything else, and those of components by name.

    Raises:
        ExportError: something was said twice, or half.
    """
    common: str | None = None
    components: dict[str, str] = {}
    for text in given:
        name, named, precision = text.rpartition("=")
        if (named and not name) or not precision:
            raise ExportError(f"Expected --precision PRECISION or --precision COMPONENT=PRECISION, got {text!r}.")
        if name in components or (not named and common is not None):
            raise ExportError(f"--precision gives {repr(name) if named else 'everything'} two precisions. Give one.")
        if named:
            components[name] = precision
        else:
            common = precision
    return common, components
