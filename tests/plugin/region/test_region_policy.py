"""Region policies: presets, tokens, bad values."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.errors import RegionError
from retouch.region import POLICIES, Region, RegionPolicy

SQUARE = np.eye(4, dtype=np.bool_)
TOKENS = np.array([False, True, False])


def test_presets() -> None:
    assert dict(POLICIES) == {
        "exact": RegionPolicy(0, 0, 0),
        "fast": RegionPolicy(1, 0, 0),
        "balanced": RegionPolicy(4, 0, 0),
        "faithful": RegionPolicy(8, 0, 256),
    }


def test_balanced_is_the_default() -> None:
    assert Region.from_mask(SQUARE).policy == POLICIES["balanced"]


@pytest.mark.parametrize("name", POLICIES)
def test_names_do_not_dilate_tokens(name: str) -> None:
    policy = Region.from_mask(TOKENS, name).policy
    assert (policy.dilation, policy.grid_dilation) == (0, 0)
    assert policy.dense_rows == POLICIES[name].dense_rows


def test_an_explicit_policy_dilates_tokens() -> None:
    assert Region.from_mask(TOKENS, RegionPolicy(2)).policy.dilation == 2


def test_unknown_name() -> None:
    expected = "Expected a region policy among 'exact', 'fast', 'balanced', 'faithful' or a RegionPolicy, got 'best'."
    with pytest.raises(RegionError) as error:
        Region.from_mask(SQUARE, "best")
    assert str(error.value) == expected


@pytest.mark.parametrize("field", ["dilation", "grid_dilation", "dense_rows"])
@pytest.mark.parametrize("value", [-1, 1.5, True, None])
def test_bad_value(field: str, value: object) -> None:
    values: dict[str, object] = {"dilation": 0, field: value}
    with pytest.raises(
        RegionError,
        match=rf"Expected RegionPolicy.{field} to be an integer of at least 0, got {value}; use 0 to switch it off.",
    ):
        RegionPolicy(**values)  # type: ignore[arg-type]
