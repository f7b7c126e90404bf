"""Positions along an axis written with digits, as reshapes cut axes into runs and join them.

A reshape of [8] to [2, 4] writes positions with two digits of 2 and 4 values, one of which counts 4; transposes move
digits, and the reshape back joins those that still stand behind each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Digit", "cut_at", "joined_digits"]


@dataclass(frozen=True)
class Digit:
    """One digit of the positions along an axis of a grid: which axis, how many values, and what one of them counts."""

    axis: int
    count: int
    stride: int = 1


def joined_digits(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """The fewest digits that count the same in the same order."""
    found: list[Digit] = []
    for digit in digits:
        if found and found[-1].axis == digit.axis and found[-1].stride == digit.count * digit.stride:
            found[-1] = Digit(digit.axis, found[-1].count * digit.count, digit.stride)
        elif digit.count != 1:
            found.append(digit)
    return tuple(found)


def cut_at(digits: Sequence[Digit], sizes: Sequence[int]) -> list[tuple[Digit, ...]] | None:
    """Runs of digits that count to some sizes, in order; ``None`` if a boundary falls within a digit's values.

    Requires: the digits count to the product of the sizes.
    """
    waiting, runs = list(digits), []
    for size in sizes:
        run, left = [], size
        while left > 1:
            digit = waiting.pop(0)
            if digit.count > left and digit.count % left == 0:
                rest = digit.count // left
                waiting.insert(0, Digit(digit.axis, rest, digit.stride))
                digit = Digit(digit.axis, left, digit.stride * rest)
            if left % digit.count:
                return None
            run.append(digit)
            left //= digit.count
        runs.append(joined_digits(run))
    return runs
