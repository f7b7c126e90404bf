from __future__ import annotations

from pathlib import Path

import pytest

from retouch.errors import RetouchError
from retouch.session import EditSession
from retouch.validation.soak import Sample, growth, soak
from tests.plugin.conftest import build


def samples(*sizes: int) -> list[Sample]:
    return [Sample(number, size) for number, size in enumerate(sizes)]


def test_what_is_kept_once_is_no_growth() -> None:
    assert growth(samples(10, 90, 100, 100, 100, 100, 100, 100)) == 0


def test_growth_is_a_share() -> None:
    assert growth(samples(10, 90, 100, 100, 110, 120, 120, 120)) == pytest.approx(0.2)


def test_too_few_samples_are_an_error() -> None:
    with pytest.raises(RetouchError, match="at least 8 samples of memory, got 1"):
        growth(samples(1))


def test_edits_are_made_and_nothing_is_left(tmp_path: Path) -> None:
    with EditSession(build(tmp_path / "bundle").bundle, threads=1) as session:
        taken = list(soak(session, edits=120, samples=8))
        assert [sample.edits for sample in taken] == [15, 30, 45, 60, 75, 90, 105, 120]
        assert session.runs() == ()
