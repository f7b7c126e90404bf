"""What a process is asked for, and what it says of every step."""

from __future__ import annotations

from typing import TypedDict


class Request(TypedDict):
    """What to do: ``kind`` is ``save`` (the torch model), ``torch`` (export it) or ``onnx`` (export its graph)."""

    kind: str
    folder: str
    small: bool


class Step(TypedDict):
    """One step of an export.

    Attributes:
        name: what was done.
        seconds: how long it took.
        peak: largest resident memory meanwhile, in bytes.
    """

    name: str
    seconds: float
    peak: int
