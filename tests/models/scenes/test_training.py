"""A training that was stopped goes on as if it had not been."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retouch.models.scenes._curriculum import Schedule, Watch, train_pipeline
from retouch.models.scenes._training import Plan, Training

COURSES = ("text", "autoencoder", "decoder", "denoiser")
TINY = Schedule(
    text=Plan(3, 1e-3, save_every=0),
    images=Plan(2, 1e-3, save_every=0),
    decoder=Plan(1, 1e-3, save_every=0),
    denoiser=Plan(3, 1e-3, save_every=0),
    examples=64,
    captions=4,
    scenes=2,
)


class _KilledError(Exception):
    pass


def _train(folder: Path, *, kill_at: tuple[str, int] | None = None) -> tuple[Any, list[int]]:
    checked: list[int] = []

    def report(course: str, step: int, loss: float) -> None:
        if (course, step) == kill_at:
            raise _KilledError

    pipeline = train_pipeline(folder, TINY, Watch(report, lambda step, _: checked.append(step), check_every=2))
    return pipeline, checked


def _losses(folder: Path) -> dict[str, str]:
    return {name: (folder / name / "log.jsonl").read_text() for name in COURSES}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, list[int]]:
    torch = pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("whole")
    return folder, *_train(folder)


def test_courses_log_every_step_and_check_in_between(whole: tuple[Path, Any, list[int]]) -> None:
    folder, _, checked = whole
    assert {name: len(text.splitlines()) for name, text in _losses(folder).items()} == {
        "text": 3, "autoencoder": 2, "decoder": 1, "denoiser": 3,
    }  # fmt: skip
    assert checked == [2]


def test_a_stopped_training_goes_on_where_it_was(whole: tuple[Path, Any, list[int]], tmp_path: Path) -> None:
    import torch

    folder, pipeline, _ = whole
    for kill_at in (("text encoder", 2), ("denoiser", 3)):
        with pytest.raises(_KilledError):
            _train(tmp_path, kill_at=kill_at)
    resumed, _ = _train(tmp_path)
    assert _losses(tmp_path) == _losses(folder)
    for name in ("text_encoder", "vae", "unet"):
        got, expected = getattr(resumed, name).state_dict(), getattr(pipeline, name).state_dict()
        assert all(torch.equal(got[key], value) for key, value in expected.items()), name


def test_the_decoder_learns_after_the_encoder_is_done(whole: tuple[Path, Any, list[int]]) -> None:
    import torch

    folder, pipeline, _ = whole
    before = torch.load(folder / "decoder" / "checkpoint.pt", weights_only=True)["network"]
    first = torch.load(folder / "autoencoder" / "checkpoint.pt", weights_only=True)
    assert pipeline.vae.config.scaling_factor == torch.load(folder / "examples.pt", weights_only=True)["scale"]
    changed = {name.split(".")[0] for name, value in before.items() if not torch.equal(value, first["network"][name])}
    assert "decoder" in changed


def test_rates_rise_and_fall() -> None:
    plan = Plan(1000, 0.5)
    assert plan.rate_at(0) == pytest.approx(0.01)
    assert plan.rate_at(500) == 0.5
    assert plan.rate_at(850) == pytest.approx(0.25)
    assert 0 < plan.rate_at(999) < 0.01


def test_the_average_follows_the_weights(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    network = torch.nn.Linear(3, 1)
    training = Training(tmp_path, network, Plan(200, 0.1, 0.9))
    training.run(
        lambda generator: (network(torch.randn(8, 3, generator=generator)) - 1).square().mean(), lambda *_: None
    )
    averaged = training.averaged()
    assert torch.allclose(averaged["bias"], torch.ones(1), atol=0.05)
    assert torch.allclose(averaged["weight"], torch.zeros(1, 3), atol=0.05)
    assert training.losses()[0][0] == 1 and len(training.losses()) == 200
