"""What becomes of the values of a full run that edits read: nothing, they are kept, or they are put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Keep", "Record", "with_rows_of"]


class Keep:
    """Passes values on: a dense step as it is timed."""

    def rows(self, name: str, value: Any) -> Any:  # noqa: ANN401  (PyTorch is optional)
        """A value [N, ...] with a row per position."""
        del name
        return value

    def moments(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """Means and variances [2, groups] by which a norm is to go, ``None`` if by the values' own.

        Args:
            name: the norm's.
            value: the rows [N, groups, C / groups] that are normalised.
        """
        del name, value
        return None


class Record(Keep):
    """Keeps values: a base run.

    Attributes:
        kept: the values by name.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def rows(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """The value, which is kept."""
        self.kept[name] = value.contiguous()
        return value

    def moments(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """The moments of the values, which are kept."""
        wide = value.float()
        found = wide.mean((0, 2)), wide.var((0, 2), correction=0)
        self.kept[name] = found[0].new_empty((2, value.shape[1]))
        self.kept[name][0], self.kept[name][1] = found
        return self.kept[name]


class _Masked(Keep):
    def __init__(self, base: Mapping[str, Any], masks: Mapping[int, Any]) -> None:
        self._base, self._masks = base, masks

    def rows(self, name: str, value: Any) -> Any:  # noqa: ANN401
        mask = self._masks[len(value)].reshape(-1, *[1] * (value.dim() - 1))
        return value.where(mask, self._base[name])

    def moments(self, name: str, value: Any) -> Any:  # noqa: ANN401
        del value
        return self._base[name]


def with_rows_of(base: Mapping[str, Any], masks: Mapping[int, Any]) -> Keep:
    """Puts the base run's value back wherever a row is not active: what an edit means, computed in full.

    Args:
        base: what a base run kept.
        masks: which rows are active, by the number of rows.
    """
    return _Masked(base, masks)
