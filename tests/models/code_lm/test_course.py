"""Training that is stopped goes on as if it had not been."""

from __future__ import annotations

from pathlib import Path

import torch

from retouch.models.code_lm import Corpus, training_patterns
from retouch.models.code_lm._course import Course, Plan
from retouch.models.code_lm._network import CodeLm
from retouch.models.code_lm._objective import Losses
from retouch.tokens import code_characters


class StoppedError(Exception):
    """Somebody pressed Ctrl-C."""


def test_a_stopped_training_repeats_what_it_lost(network: CodeLm, tmp_path: Path) -> None:
    corpus = Corpus.of(training_patterns(5), code_characters())
    plan = Plan(steps=4, batch=2, length=16, save_every=0.0)

    def fresh(folder: str) -> Course:
        torch.manual_seed(0)
        return Course(tmp_path / folder, CodeLm(network.config), plan)

    def stop(step: int, _: Losses) -> None:
        if step == 3:
            raise StoppedError

    straight = fresh("straight")
    straight.run(corpus, lambda *_: None)
    broken = fresh("broken")
    try:
        broken.run(corpus, stop)
    except StoppedError:
        broken = fresh("broken")
    assert broken.step == 2
    broken.run(corpus, lambda *_: None)
    for one, other in zip(straight.network.parameters(), broken.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    logs = [(tmp_path / name / "log.jsonl").read_text() for name in ("straight", "broken")]
    assert logs[0] == logs[1]
    assert logs[0].count("\n") == 4
