"""The study of edited generations: its cases, its loop without Retouch, its tables."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch import Region
from retouch.calibrate import Sample
from retouch.models.scenes import Colour, Scene, read_scene, render
from retouch.sampling import Generation, TextToImage
from retouch.validation.generations import Case, Cost, Frozen, Kind, Outcome, StockPipeline, Trade, draw_cases, tables

STEPS, GUIDANCE = 3, 2.0


def test_cases_are_edits_of_one_object_that_its_box_holds() -> None:
    cases = draw_cases(30)
    assert Counter(case.kind for case in cases) == dict.fromkeys(Kind, 10)
    assert [case.after.caption for case in draw_cases(30)] == [case.after.caption for case in cases]
    for case in cases:
        assert case.before.caption != case.after.caption
        changed = (render(case.before) != render(case.after)).any(-1)
        assert changed.any() and not changed[~case.region.mask].any()


@pytest.mark.parametrize("number", range(3))
def test_what_shows_a_case(number: int) -> None:
    case = draw_cases(3)[number]
    assert case.is_shown_by(read_scene(render(case.after)))
    assert not case.is_shown_by(read_scene(render(case.before)))
    assert not case.is_shown_by(_recoloured(case, case.after if case.kind is not Kind.REMOVE else case.before))


def _recoloured(case: Case, scene: Scene) -> Scene:
    """The scene with the edited object in a colour that nobody asked for."""
    one = next(one for one in scene.objects if one.place is case.place.place)
    colour = next(colour for colour in Colour if colour not in (one.colour, case.place.colour))
    others = [other for other in scene.objects if other is not one]
    return Scene((*others, dataclasses.replace(one, colour=colour)), scene.background)


@pytest.fixture(scope="module")
def exported(exported_tiny_pipeline: Any) -> Path:
    return exported_tiny_pipeline(2)


@pytest.fixture(scope="module")
def pipeline(exported: Path) -> Iterator[TextToImage]:
    with TextToImage(exported, threads=1, group_norm="corrected") as opened:
        yield opened


@pytest.fixture(scope="module")
def stock(exported: Path) -> StockPipeline:
    return StockPipeline(exported)


@pytest.fixture(scope="module")
def base(pipeline: TextToImage) -> Generation:
    return pipeline.generate("a red circle", steps=STEPS, guidance=GUIDANCE, seed=4)


def _text(pipeline: TextToImage, prompt: str) -> np.ndarray:
    conditions = pipeline.conditions(prompt, guidance=GUIDANCE)
    assert conditions.negative is not None
    return np.concatenate([side["encoder_hidden_states"] for side in (conditions.negative, conditions.positive)])


def _generate(stock: StockPipeline, text: np.ndarray, **options: Any) -> np.ndarray:
    return stock.generate(text, guidance=GUIDANCE, steps=STEPS, seed=4, **options)


def test_the_loop_without_retouch_gives_the_same_images(
    stock: StockPipeline, pipeline: TextToImage, base: Generation
) -> None:
    again = _generate(stock, _text(pipeline, "a red circle"))
    assert np.abs(again.astype(int) - base.image).max() <= 1


@pytest.mark.parametrize("strength", [1.0, 1 / 3])
def test_its_inpainting_is_what_an_edit_of_all_rows_gives(
    stock: StockPipeline, pipeline: TextToImage, base: Generation, strength: float
) -> None:
    latents = base.trajectory.latents.shape[2:]
    region = Region.from_boxes([(0, 0, 4, 4)], shape=latents)
    before = [base.trajectory.before(index) for index in range(STEPS + 1)]
    frozen = Frozen(before, region.mask, STEPS - round(strength * STEPS))
    full = _generate(stock, _text(pipeline, "a blue square"), frozen=frozen)
    everywhere = Region.from_mask(region.mask, dataclasses.replace(region.policy, dilation=max(latents)))
    edited = pipeline.edit(base, everywhere, "a blue square", strength=strength)
    assert np.abs(full.astype(int) - edited.image).max() <= 2
    assert (full != base.image).any()


def test_tables_hold_what_was_measured() -> None:
    samples = [Sample(cpu_ms, 2 * cpu_ms) for cpu_ms in (100.0, 125.0, 500.0, 550.0)]
    cost = Cost(0.0625, "fast", 1, *samples, engine="onnxruntime.cpu")
    image = np.zeros((2, 2, 3), np.uint8)
    outcome = Outcome(Kind.REMOVE, "exact", True, False, True, 31.25, True, 4, (image,) * 4)
    trade = Trade("every step", 1.0, 3 * 2**20, 0, 0.25, 40.0, 0.75, 1.0)
    blocks = tables([cost], [outcome], [trade])
    assert "| CPU time, 1 thread | 6.2% | fast | 100 | 500 | **5.00** | 4.00 | 10% | 0.13 edits |" in blocks["cost"]
    assert "| removed | exact | 1 | 100% | 100% | 0% | 31.2 | 31.2 | 1 of 1 | 4 |" in blocks["quality"]
    assert "another colour" not in blocks["quality"]
    assert "| every step | 1.00 | 3 | 0 | 0.25 | 40.0 | 75% | 100% |" in blocks["memory"]
    assert set(tables([], [outcome], [])) == {"quality"}
