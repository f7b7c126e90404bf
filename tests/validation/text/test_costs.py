"""Commands that measure what texts cost: that they run, and count what they say they count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from retouch.models.code_lm import PATTERNS_MODEL, load_code_lm
from retouch.validation.text import cost_of_caches_main, efficiency_main, main
from retouch.validation.text._shapes import Shape, random_network


def figures(command: Callable[..., None], out: Path, *arguments: object) -> Any:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, [*map(str, arguments), "--json", str(out)])
    assert result.exit_code == 0, result.output
    return json.loads(out.read_text())


@pytest.mark.parametrize(("shape", "millions"), [(Shape.CODE, 3.0), (Shape.LLADA, 30.8)])
def test_shapes_have_their_sizes(shape: Shape, millions: float, tmp_path: Path) -> None:
    network = load_code_lm(random_network(shape, tmp_path / "model"))
    assert sum(weight.numel() for weight in network.parameters()) / 1e6 == pytest.approx(millions, abs=0.1)


def test_texts_are_measured_on_one_thread_and_on_two(tmp_path: Path) -> None:
    rows = figures(main, tmp_path / "a.json", PATTERNS_MODEL, "--tokens", 14, "--repeats", 1, "--per-read", 4)
    assert list(rows) == ["1", "2"]
    for measured in rows.values():
        # Weights that are kept shorter are another model, if a very similar one.
        ways = [row for row in measured if not row["case"].startswith(("edit", "causal", "cached, bfloat16"))]
        assert len(ways) == 4 and all(row["identical"] for row in ways)
        assert ways[0]["forwards"] < 14


def test_costs_are_over_those_without_a_cache(tmp_path: Path) -> None:
    given = ("--shape", "code", "--tokens", 64, "--prompt", 24, "--forwards", 20, "--each", 1)
    rows = figures(cost_of_caches_main, tmp_path / "a.json", *given)
    assert (rows[0]["cache"], rows[0]["flops"], rows[0]["cpu"]) == ("no cache", 1, 1)
    assert all(0 < row["flops"] < 1 for row in rows[1:])
    assert any(row["cache"].startswith("time-anchored") for row in rows)


def test_lengths_and_batches_are_measured(tmp_path: Path) -> None:
    given = ("--preset", "speed", "--longest", 30, "--repeats", 1)
    data = figures(efficiency_main, tmp_path / "a.json", PATTERNS_MODEL, *given)
    assert list(data["lengths"]) == ["14", "30"]
    assert {"cached, at once", "uncached, one by one", "frozen edits, at once"} <= set(data["batches"])
    assert all(list(times) == ["1", "2", "4", "8"] for times in data["batches"].values())
    assert all(ms > 0 for times in data["batches"].values() for ms in times.values())
