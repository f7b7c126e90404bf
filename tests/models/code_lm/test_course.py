"""Training that is stopped goes on as if it had not been."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from retouch.models.code_lm import Corpus, training_patterns
from retouch.models.code_lm._course import Course, Plan
from retouch.models.code_lm._network import CodeLm
from retouch.models.code_lm._objective import Losses, losses
from retouch.tokens import code_characters


class StoppedError(Exception):
    """Somebody pressed Ctrl-C."""


def test_a_stopped_training_repeats_what_it_lost(network: CodeLm, tmp_path: Path) -> None:
    corpus = Corpus.of(training_patterns(5), code_characters())
    plan = Plan(steps=4, batch=2, length=16, save_every=0.0)

    def fresh(folder: str) -> Course:
        torch.manual_seed(0)
        return Course(tmp_path / folder, CodeLm(network.config), plan)

    def stop(step: int, _: float, __: Losses) -> None:
        if step == 3:
            raise StoppedError

    straight = fresh("straight")
    straight.run(corpus, losses, lambda *_: None)
    broken = fresh("broken")
    try:
        broken.run(corpus, losses, stop)
    except StoppedError:
        broken = fresh("broken")
    assert broken.step == 2
    broken.run(corpus, losses, lambda *_: None)
    for one, other in zip(straight.network.parameters(), broken.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    logs = [_log(tmp_path / name) for name in ("straight", "broken")]
    assert logs[0] == logs[1]
    assert [entry["step"] for entry in logs[0]] == [1, 2, 3, 4]


def test_time_ends_a_training_and_the_rate_with_it(network: CodeLm, tmp_path: Path) -> None:
    """Seconds of an interrupted training count, and a shorter limit ends it at once, with the rate at nothing."""
    corpus = Corpus.of(training_patterns(5), code_characters())

    def course(seconds: float) -> Course:
        return Course(tmp_path, CodeLm(network.config), Plan(seconds=seconds, batch=2, length=16))

    first = course(0.2)
    first.run(corpus, losses, lambda *_: None)
    assert first.seconds >= 0.2
    again = course(0.1)
    assert (again.step, again.seconds) == (first.step, first.seconds)
    again.run(corpus, losses, lambda *_: None)
    assert again.step == first.step


def test_the_rate_rises_and_falls_to_nothing() -> None:
    plan = Plan(seconds=100.0)
    assert plan.rate_at(0, 0.0) < plan.rate_at(49, 0.01) == plan.rate
    assert plan.rate_at(1000, 0.4) == plan.rate
    assert plan.rate_at(1000, 0.75) == plan.rate / 2
    assert plan.rate_at(1000, plan.done(1000, 100.0)) == 0


def _log(folder: Path) -> list[dict[str, float]]:
    """What a training logged, without the time it took."""
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in entries]
