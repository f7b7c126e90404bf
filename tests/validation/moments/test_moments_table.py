"""The study's tables and page, on samples written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from retouch.errors import RetouchError
from retouch.validation.moments import Sample, Timing, draw, figures, page
from retouch.validation.moments._table import error_table, estimate_table, time_table

SAMPLES = [
    Sample("terrain", "alike", 0.05, 0, cached=0.02, corrected=0.08, auto=0.02, taken="cached", expected=0.03),
    Sample("terrain", "alike", 0.05, 1, cached=0.04, corrected=0.019, auto=0.019, taken="corrected", expected=0.01),
    Sample("terrain", "noise", 0.05, 0, cached=0.30, corrected=0.10, auto=0.30, taken="cached", expected=0.10),
    Sample("terrain", "flat", 0.05, 0, cached=0.10, corrected=0.20, auto=0.10, taken="cached", expected=0.09),
]


def test_cells_hold_means_and_what_auto_lost() -> None:
    alike, noise, flat = figures(SAMPLES)
    assert (alike.cached, alike.corrected, alike.auto) == pytest.approx((0.03, 0.0495, 0.0195))
    assert alike.excess == pytest.approx(-0.35) and alike.corrected_taken == 0.5
    assert (noise.excess, flat.excess) == pytest.approx((2.0, 0.0))


def test_tables() -> None:
    errors = error_table(figures(SAMPLES))
    assert "| terrain | noise added | 5.0% | 0.300 | **0.100** | 0.300 | 3.00 | 0% |" in errors
    assert "| terrain | 4 | 1.00 | 75% | 0.77 |" in estimate_table(SAMPLES, {"terrain": 0.77})


def test_what_choosing_adds_is_relative_to_an_edit_without() -> None:
    timing = Timing("terrain", 0.05, cached=20.0, corrected=24.0, auto=21.0, choice=1.0, taken="cached")
    assert timing.extra == pytest.approx(0.05)
    assert "| terrain | 5.0% | 20.0 | 24.0 | 21.0 | cached | 1.00 | 5.0% |" in time_table([timing])


def test_a_page_keeps_its_words_and_gets_new_figures() -> None:
    text = "before\n<!-- errors -->\nold\n<!-- end errors -->\nafter\n"
    assert page(text, {"errors": "new"}) == "before\n<!-- errors -->\nnew\n<!-- end errors -->\nafter\n"
    with pytest.raises(RetouchError, match="<!-- times -->"):
        page(text, {"times": "new"})


def test_the_picture(tmp_path: Path) -> None:
    draw(tmp_path / "study.png", SAMPLES)
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")
