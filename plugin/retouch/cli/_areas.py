"""Areas from an option."""

from __future__ import annotations

from retouch.errors import RegionError


def parse_areas(text: str, example: str) -> tuple[float, ...]:
    """The shares of the editable positions that ``--areas`` lists.

    Raises:
        RegionError: it lists something else.
    """
    try:
        areas = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise RegionError(f"Expected --areas to be numbers like {example}, got {text!r}.") from error
    wrong = [area for area in areas if not 0 < area <= 1]
    if wrong:
        raise RegionError(
            f"Expected --areas above 0 and at most 1, the share of the positions, got {wrong[0]:g}. "
            "Write 5 % of the area as 0.05."
        )
    return areas
