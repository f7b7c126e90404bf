"""JSON that people can read: short values and lists of numbers stand on one line."""

from __future__ import annotations

import json
from typing import Any

_WIDTH = 120


def layout(value: Any, indent: int = 0) -> str:  # noqa: ANN401 - any JSON value
    """The value as JSON text.

    What fits on a line stands on one, and so do (nested) lists of numbers, however long: a neighbourhood's tables
    would fill thousands of lines otherwise.
    """
    if not isinstance(value, dict | list) or not value or _is_numbers(value):
        return _line(value)
    line = _line(value)
    if len(line) + indent <= _WIDTH:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        entries = [f"{_line(key)}: {layout(item, indent + 2)}" for key, item in value.items()]
        return "{\n" + ",\n".join(pad + entry for entry in entries) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + layout(item, indent + 2) for item in value) + "\n" + " " * indent + "]"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _is_numbers(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_numbers(item) for item in value)
    return isinstance(value, int | float)
