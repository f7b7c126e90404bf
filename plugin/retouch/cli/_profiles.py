"""What ``--profile`` and ``--other-batch`` ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retouch.errors import BuildRequestError
from retouch.trt_plugins import DEFAULT_ROWS, BatchRange

_EXAMPLES = f"--profile rows={','.join(DEFAULT_ROWS)} or --profile batch=2..8"
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


@dataclass(frozen=True)
class ProfileRequest:
    """Row counts, each with a profile, and the batches of all of them."""

    rows: tuple[str, ...]
    batch: BatchRange | None


def profile_request(profiles: Sequence[str], other: Path | None) -> ProfileRequest:
    """What the options ask for.

    Args:
        profiles: the values of ``--profile``.
        other: the value of ``--other-batch``.

    Raises:
        BuildRequestError: one cannot be read, or one of batch and other bundle lacks.
    """
    rows: list[str] = []
    batches: list[str] = []
    for text in profiles:
        key, _, value = text.partition("=")
        if not value or key not in ("rows", "batch"):
            raise BuildRequestError(f"Expected {_EXAMPLES}, got {text!r}.")
        if key == "rows":
            rows += value.split(",")
        else:
            batches.append(value)
    return ProfileRequest(tuple(rows or DEFAULT_ROWS), batch_range(batches, other))


def batch_range(batches: Sequence[str], other: Path | None) -> BatchRange | None:
    """The range that is meant, and the bundle that shows where the batch is.

    Raises:
        BuildRequestError: there are several, one cannot be read, or one of range and bundle lacks.
    """
    if not batches and other is None:
        return None
    found = _RANGE.fullmatch(batches[0]) if len(batches) == 1 else None
    if found is None or other is None:
        raise BuildRequestError(
            f"Expected one range of batches like 2..8, and the bundle of the same model for another batch, got "
            f"{', '.join(batches) or 'no range'} and {other or 'no bundle'}. Give both: --profile batch=2..8 "
            "--other-batch BUNDLE, or batch and other_batch in a build file."
        )
    return BatchRange(int(found[1]), int(found[2]), other)
