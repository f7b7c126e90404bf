"""Training that can be stopped at any time and goes on as if it had not been."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from retouch.models.code_lm._corpus import Corpus
from retouch.models.code_lm._network import CodeLm
from retouch.models.code_lm._objective import Losses, Objective

__all__ = ["Course", "Plan"]

_WARM_UP = 50
_DECAY = 0.5  # share of the steps over which the rate falls to nothing
_MUON_RATE = 6.67  # times AdamW's


@dataclass(frozen=True)
class Plan:
    """How long and how fast to train.

    Attributes:
        steps: steps in all, those before an interruption included; ``None`` where time decides.
        seconds: CPU time of the process in all, that before an interruption included; ``None`` where steps decide.
        batch: texts of a step.
        length: tokens of a text.
        rate: AdamW's learning rate.
        save_every: seconds between checkpoints.
    """

    steps: int | None = None
    seconds: float | None = None
    batch: int = 16
    length: int = 256
    rate: float = 3e-3
    save_every: float = 120.0

    def done(self, step: int, seconds: float) -> float:
        """Which share of the training is done; 1 at its end. Both limits count where both are given."""
        by_steps = 0.0 if self.steps is None else step / self.steps
        by_time = 0.0 if self.seconds is None else seconds / self.seconds
        return max(by_steps, by_time)

    def rate_at(self, step: int, done: float) -> float:
        """The learning rate of a step: it rises over the first steps and falls over the last share to nothing."""
        return self.rate * min(1.0, (step + 1) / _WARM_UP, (1 - done) / _DECAY)


class Course:
    """A network in training. Matrices of the layers learn by Muon, the rest by AdamW.

    Everything random in a step is drawn from a generator that is seeded with the step's number.

    Attributes:
        network: the network.
        step: how many steps are done.
        seconds: CPU time that they took.
    """

    def __init__(self, folder: Path, network: CodeLm, plan: Plan) -> None:
        self.network = network
        self.step = 0
        self.seconds = 0.0
        self._plan = plan
        self._folder = folder
        matrices = [p for p in network.model.layers.parameters() if p.ndim == 2]
        others = [p for p in network.parameters() if not any(p is matrix for matrix in matrices)]
        self._optimizers: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(matrices, plan.rate * _MUON_RATE, weight_decay=0.01, adjust_lr_fn="original"),
            torch.optim.AdamW(others, plan.rate, betas=(0.9, 0.98), weight_decay=0.01),
        )
        folder.mkdir(parents=True, exist_ok=True)
        if self._checkpoint.exists():
            self._load()

    def run(self, corpus: Corpus, objective: Objective, report: Callable[[int, float, Losses], None]) -> None:
        """Trains to the end of the plan; ``report`` gets every step's number, the CPU time so far, and losses."""
        shares = corpus.shares()
        saved, log = time.monotonic(), list[dict[str, float]]()
        clock = time.process_time() - self.seconds
        while (done := self._plan.done(self.step, self.seconds)) < 1:
            generator = torch.Generator().manual_seed(self.step)
            windows = corpus.windows(self._plan.batch, self._plan.length, generator)
            found = objective(self.network, windows, shares, generator)
            self._advance(found.weighted, self._plan.rate_at(self.step, done))
            self.seconds = time.process_time() - clock
            log.append({"step": self.step, "seconds": round(self.seconds, 2), **found.figures()})
            report(self.step, self.seconds, found)
            if time.monotonic() - saved > self._plan.save_every or self._plan.done(self.step, self.seconds) >= 1:
                self._save(log)
                saved, log = time.monotonic(), []

    @property
    def _checkpoint(self) -> Path:
        return self._folder / "checkpoint.pt"

    @property
    def _log(self) -> Path:
        return self._folder / "log.jsonl"

    def _advance(self, loss: torch.Tensor, rate: float) -> None:
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimizer, scale in zip(self._optimizers, (_MUON_RATE, 1.0), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * scale
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1

    def _save(self, log: list[dict[str, float]]) -> None:
        state = {
            "step": self.step,
            "seconds": self.seconds,
            "network": self.network.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
        }
        staged = self._checkpoint.with_suffix(".new")
        torch.save(state, staged)
        staged.replace(self._checkpoint)
        with self._log.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in log)

    def _load(self) -> None:
        state = torch.load(self._checkpoint, weights_only=True)
        self.step, self.seconds = state["step"], state["seconds"]
        self.network.load_state_dict(state["network"])
        for optimizer, kept in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)
