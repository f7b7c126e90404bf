"""Whose states are kept, for how long, and what is said about those that are gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retouch.engines.ort import OrtEngine
from retouch.errors import RunError
from retouch.states import DeviceTier, HostTier, StateStore


def values(size: int = 100, name: str = "a") -> dict[str, Any]:
    return {name: OrtEngine().value(np.zeros(size, np.uint8))}


def test_parts_are_kept_under_run_and_bundle() -> None:
    store = StateStore()
    kept = values()
    store.put("r", "bundle", {"states": kept})
    store.add("r", "bundle", "prepared", values(7))
    assert store.get("r", "bundle", "states")["a"] is kept["a"]
    assert store.parts("r", "bundle") == ("states", "prepared")
    assert store.find("r", "bundle", "nothing") is None
    assert store.bytes == 107
    store.drop_part("r", "prepared")
    assert store.bytes == 100
    with pytest.raises(RunError, match="to keep outputs, but it keeps only states"):
        store.get("r", "bundle", "outputs")


def test_shared_values_count_once() -> None:
    tier, kept = HostTier(), values()
    tier.put("one", kept)
    tier.put("two", {**kept, **values(1, "b")})
    assert tier.bytes == 101
    tier.drop("one")
    tier.drop("one")
    assert tier.bytes == 101


def test_ids_are_those_of_a_bundle() -> None:
    store = StateStore()
    for run, bundle in (("r", "one"), ("s", "two"), ("t", "one")):
        store.put(run, bundle, {"states": values()})
    store.find("r", "one", "states")
    assert store.ids("one") == ("t", "r")
    assert store.ids() == ("s", "t", "r")
    with pytest.raises(RunError, match=r"bundle two, but run 'r' was made with bundle one"):
        store.get("r", "two", "states")


def test_unknown_and_dropped_runs_differ() -> None:
    store = StateStore()
    store.put("r", "bundle", {"states": values()})
    store.drop("r")
    store.drop("r")
    with pytest.raises(RunError, match="'r' was dropped"):
        store.get("r", "bundle", "states")
    with pytest.raises(RunError, match="'s' is not known"):
        store.get("s", "bundle", "states")
    with pytest.raises(RunError, match="was dropped"):
        store.add("r", "bundle", "prepared", values())
    assert store.bytes == 0


def test_the_budget_evicts_what_was_not_used_for_longest() -> None:
    store = StateStore(budget=250)
    store.put("r", "bundle", {"states": values()})
    store.put("s", "bundle", {"states": values()})
    store.get("r", "bundle", "states")
    store.put("t", "bundle", {"states": values()})
    assert store.ids() == ("r", "t")
    with pytest.raises(RunError, match="'s' was evicted to keep the states within 250 bytes"):
        store.get("s", "bundle", "states")


def test_a_run_that_cannot_fit_evicts_nothing() -> None:
    store = StateStore(budget=250)
    store.put("r", "bundle", {"states": values()})
    with pytest.raises(RunError, match="budget of 250 bytes, but run 's' takes 300"):
        store.put("s", "bundle", {"states": values(300)})
    assert store.ids() == ("r",)


def test_a_part_without_room_goes_at_once() -> None:
    store = StateStore(budget=150)
    store.put("r", "bundle", {"states": values()})
    store.add("r", "bundle", "prepared", values(60))
    assert store.parts("r", "bundle") == ("states",)
    store.add("r", "bundle", "prepared", values(50))
    assert store.parts("r", "bundle") == ("states", "prepared")


class _Scarce:
    """A value in memory that is short; it moves once."""

    nbytes = 100

    def __init__(self) -> None:
        self.moved = 0

    def move_to_host(self) -> int:
        self.moved += 1
        return self.nbytes if self.moved == 1 else 0


def test_the_runs_not_used_for_longest_make_room_first() -> None:
    store = StateStore(DeviceTier())
    scarce: dict[str, Any] = {name: _Scarce() for name in "abc"}
    for run, value in scarce.items():
        store.put(run, "bundle", {"states": {"x": value, **values()}})
    store.find("a", "bundle", "states")
    assert store.relieve(150) == 200
    assert {name: value.moved for name, value in scarce.items()} == {"a": 0, "b": 1, "c": 1}
    assert store.relieve(1000) == 100
    assert store.relieve(1) == 0
    assert store.ids() == ("b", "c", "a")


def test_host_memory_makes_no_room() -> None:
    store = StateStore()
    store.put("r", "bundle", {"states": {"x": _Scarce()}})
    assert store.relieve(1) == 0
