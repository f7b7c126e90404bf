"""Pipelines of optimum-onnx, unchanged, on a tiny Stable Diffusion with random weights that Retouch exported."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

import diffusers
import torch
from optimum.onnxruntime import (
    ORTStableDiffusionImg2ImgPipeline,
    ORTStableDiffusionInpaintPipeline,
    ORTStableDiffusionPipeline,
)
from PIL import Image

import retouch
from retouch.models import Sizes, TorchOptions, export_pipeline
from retouch.validation.drop_in import measure_cost

PARTS = ("unet", "vae_encoder", "vae_decoder")


@pytest.fixture(scope="module")
def exported(saved_pipeline: Path) -> Path:
    target = saved_pipeline.parent / "sd.onnx"
    export_pipeline(saved_pipeline, target, TorchOptions(sizes=Sizes(batch=2, text=5)))
    return target


MASK = np.zeros((16, 16), bool)
MASK[4:8, 4:8] = True
IMAGE = Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8))
SHAPE = {"height": 16, "width": 16}

CASES: dict[type, dict[str, Any]] = {
    ORTStableDiffusionPipeline: {**SHAPE, "num_inference_steps": 3},
    ORTStableDiffusionImg2ImgPipeline: {"image": IMAGE, "strength": 0.7, "num_inference_steps": 4},
    ORTStableDiffusionInpaintPipeline: {
        **SHAPE, "image": IMAGE, "mask_image": Image.fromarray(MASK), "strength": 1.0, "num_inference_steps": 3,
    },
}  # fmt: skip


def _normal(seed: int) -> torch.Tensor:
    return torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(seed))


def _loaded(kind: type, root: Path, opened: Callable[[Path], Any], *, bound: bool) -> Callable[[int], np.ndarray]:
    """The pipeline, as a function from the seed of a prompt to its image."""
    sessions = {f"{part}_session": opened(root / part / "model.onnx") for part in PARTS}
    scheduler = diffusers.DDIMScheduler.from_pretrained(root / "scheduler")
    pipeline = kind(**sessions, scheduler=scheduler, use_io_binding=bound)
    pipeline.set_progress_bar_config(disable=True)

    def paint(prompt: int) -> np.ndarray:
        return pipeline(
            prompt_embeds=_normal(prompt), negative_prompt_embeds=_normal(0), output_type="np",
            generator=torch.Generator().manual_seed(1), **CASES[kind],
        ).images  # fmt: skip

    paint.pipeline = pipeline
    return paint


@pytest.mark.parametrize("bound", [False, True], ids=["arrays", "bindings"])
@pytest.mark.parametrize("kind", CASES)
def test_pipelines_with_sessions_passed_in(exported, kind, bound) -> None:
    stock = _loaded(kind, exported, onnxruntime.InferenceSession, bound=bound)(1)
    sessions: dict[str, retouch.InferenceSession] = {}

    def opened(path: Path) -> retouch.InferenceSession:
        return sessions.setdefault(path.parent.name, retouch.InferenceSession(path))

    paint = _loaded(kind, exported, opened, bound=bound)
    assert paint(1).tobytes() == stock.tobytes()
    unet, decoder = sessions["unet"], sessions["vae_decoder"]
    with unet.record() as steps, decoder.record() as decoded:
        base = paint(1)
    np.testing.assert_allclose(base, stock, atol=1e-5)
    with unet.edit(steps, MASK, policy="exact") as editing, decoder.edit(decoded.id, MASK, policy="exact"):
        edited = paint(2)
    changed = (edited != base).any((0, 3))
    assert changed[MASK].any() and not changed[~MASK].any()
    assert len(editing.reports) == steps.calls
    assert paint(1).tobytes() == stock.tobytes()


@pytest.mark.parametrize("bound", [False, True], ids=["arrays", "bindings"])
@pytest.mark.parametrize("kind", CASES)
def test_pipelines_that_are_attached_to(exported, kind, bound) -> None:
    paint = _loaded(kind, exported, onnxruntime.InferenceSession, bound=bound)
    stock = paint(1)
    with retouch.attach(paint.pipeline) as attached:
        assert paint(1).tobytes() == stock.tobytes()
        with attached.record():
            base = paint(1)
        with attached.edit(MASK, policy="exact", record=True) as editing:
            edited = paint(2)
        with attached.edit(MASK[::-1, ::-1], policy="exact"):
            again = paint(3)
        assert {name: len(reports) for name, reports in editing.reports.items()} == editing.recording.calls
    for before, after, mask in ((base, edited, MASK), (edited, again, MASK[::-1, ::-1])):
        changed = (before != after).any((0, 3))
        assert changed[mask].any() and not changed[~mask].any()
    assert type(paint.pipeline.unet.session) is onnxruntime.InferenceSession
    assert paint(1).tobytes() == stock.tobytes()


def test_the_example(exported, tmp_path, monkeypatch, capsys) -> None:
    example = Path(__file__).parents[3] / "examples" / "optimum_pipeline.py"
    pictures = [tmp_path / name for name in ("before.png", "after.png")]
    monkeypatch.setattr(sys, "argv", [str(example), str(exported), *map(str, pictures)])
    runpy.run_path(str(example), run_name="__main__")
    before, after = (np.asarray(Image.open(path)) for path in pictures)
    assert before.shape == (16, 16, 3) and (before != after).any()
    assert "path         edit" in capsys.readouterr().out


def test_a_session_is_passed_to_from_pretrained(exported) -> None:
    session = retouch.InferenceSession(exported / "unet" / "bundle")
    pipeline = ORTStableDiffusionPipeline.from_pretrained(exported, unet_session=session, local_files_only=True)
    assert pipeline.unet.session is session
    assert sorted(retouch.attach(pipeline).sessions) == sorted(PARTS)


def test_the_cost_of_drop_in_sessions_is_measured_on_the_same_image(exported) -> None:
    cost = measure_cost(exported, "a", steps=2, repeats=1)
    assert cost.identical
    assert cost.stock.cpu_ms > 0 and cost.ratio == cost.drop_in.cpu_ms / cost.stock.cpu_ms
