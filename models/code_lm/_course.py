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
from retouch.models.code_lm._objective import Losses, losses

__all__ = ["Course", "Plan"]

_WARM_UP = 50
_DECAY = 0.5  # share of the steps over which the rate falls to nothing
_MUON_RATE = 6.67  # times AdamW's


@dataclass(frozen=True)
class Plan:
    """How long and how fast to train.

    Attributes:
        steps: steps in all, those before an interruption included.
        batch: texts of a step.
        length: tokens of a text.
        rate: AdamW's learning rate.
        save_every: seconds between checkpoints.
    """

    steps: int
    batch: int = 32
    length: int = 256
    rate: float = 3e-3
    save_every: float = 120.0

    def rate_at(self, step: int) -> float:
        """The learning rate of a step: it rises over the first steps and falls over the last."""
        return self.rate * min(1.0, (step + 1) / _WARM_UP, (self.steps - step) / (_DECAY * self.steps))


class Course:
    """A network in training. Matrices of the layers learn by Muon, the rest by AdamW.

    Everything random in a step is drawn from a generator that is seeded with the step's number.

    Attributes:
        network: the network.
        step: how many steps are done.
    """

    def __init__(self, folder: Path, network: CodeLm, plan: Plan) -> None:
        self.network = network
        self.step = 0
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

    def run(self, corpus: Corpus, report: Callable[[int, Losses], None]) -> None:
        """Trains to the end of the plan; ``report`` gets every step's number and losses."""
        shares = corpus.shares()
        saved, log = time.monotonic(), []
        while self.step < self._plan.steps:
            generator = torch.Generator().manual_seed(self.step)
            found = losses(
                self.network, corpus.windows(self._plan.batch, self._plan.length, generator), shares, generator
            )
            self._advance(found.weighted)
            log.append([self.step, *(round(x.item(), 4) for x in (found.masked, found.noised, found.clean))])
            report(self.step, found)
            if time.monotonic() - saved > self._plan.save_every or self.step == self._plan.steps:
                self._save(log)
                saved, log = time.monotonic(), []

    @property
    def _checkpoint(self) -> Path:
        return self._folder / "checkpoint.pt"

    @property
    def _log(self) -> Path:
        return self._folder / "log.jsonl"

    def _advance(self, loss: torch.Tensor) -> None:
        rate = self._plan.rate_at(self.step)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimizer, scale in zip(self._optimizers, (_MUON_RATE, 1.0), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * scale
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1

    def _save(self, log: list[list[float]]) -> None:
        state = {
            "step": self.step,
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
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        for optimizer, kept in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)
