"""Training that can be stopped at any time and goes on as if it had not been."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["Plan", "Training", "adamw"]

_WARM_UP = 50
_DECAY = 0.3  # share of the steps over which the rate falls to nothing


def adamw(trained: Sequence[torch.Tensor], rate: float) -> torch.optim.Optimizer:
    """The optimizer of networks that learn fast enough."""
    import torch

    return torch.optim.AdamW(trained, rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True)


@dataclass(frozen=True)
class Plan:
    """How long and how fast to train.

    Attributes:
        steps: steps in all, those before an interruption included.
        rate: the learning rate; it rises over the first steps and falls over the last.
        average: share of the averaged weights that a step keeps.
        save_every: seconds between checkpoints.
        optimizer: what makes the optimizer from what is trained and the rate.
    """

    steps: int
    rate: float
    average: float = 0.998
    save_every: float = 120.0
    optimizer: Callable[[Sequence[torch.Tensor], float], torch.optim.Optimizer] = field(default=adamw, repr=False)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        left = (self.steps - step) / (_DECAY * self.steps)
        return self.rate * min(1.0, (step + 1) / _WARM_UP, left)


class Training:
    """A network in training, with its optimizer, the average of its weights, and a log of its losses.

    Everything random in a step is drawn from a generator that is seeded with the step's number, so a training that
    was stopped repeats the same steps from its last checkpoint.

    Attributes:
        folder: where ``checkpoint.pt`` and ``log.jsonl`` lie.
        network: the network, with its latest weights.
        step: how many steps are done.
    """

    def __init__(self, folder: Path, network: torch.nn.Module, plan: Plan) -> None:
        self.folder = folder
        self.network = network
        self.step = 0
        self._plan = plan
        self._trained = [p for p in network.parameters() if p.requires_grad]
        self._average = [p.detach().clone() for p in self._trained]
        self._optimizer = plan.optimizer(self._trained, plan.rate)
        folder.mkdir(parents=True, exist_ok=True)
        if self._checkpoint.exists():
            self._load()

    def run(self, loss: Callable[[torch.Generator], torch.Tensor], report: Callable[[int, float], None]) -> None:
        """Trains to the end of the plan; ``report`` gets every step's number and loss."""
        import torch

        saved = time.monotonic()
        losses: list[tuple[int, float]] = []
        while self.step < self._plan.steps:
            value = loss(torch.Generator().manual_seed(self.step))
            self._advance(value)
            losses.append((self.step, value.item()))
            report(*losses[-1])
            if time.monotonic() - saved > self._plan.save_every or self.step == self._plan.steps:
                self._save(losses)
                saved, losses = time.monotonic(), []

    def averaged(self) -> dict[str, torch.Tensor]:
        """The network's state with the averaged weights."""
        state = self.network.state_dict()
        names = [name for name, p in self.network.named_parameters() if p.requires_grad]
        return {**state, **dict(zip(names, self._average, strict=True))}

    def losses(self) -> list[tuple[int, float]]:
        """Number and loss of every step up to the last checkpoint."""
        log = self.folder / "log.jsonl"
        return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    def _advance(self, loss: torch.Tensor) -> None:
        import torch

        for group in self._optimizer.param_groups:
            group["lr"] = self._plan.rate_at(self.step)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._trained, 1.0)
        self._optimizer.step()
        kept = min(self._plan.average, (1 + self.step) / (10 + self.step))
        torch._foreach_lerp_(self._average, [p.detach() for p in self._trained], 1 - kept)
        self.step += 1

    def _save(self, losses: list[tuple[int, float]]) -> None:
        import torch

        state = {
            "step": self.step,
            "network": self.network.state_dict(),
            "average": self._average,
            "optimizer": self._optimizer.state_dict(),
        }
        torch.save(state, self._checkpoint.with_suffix(".new"))
        self._checkpoint.with_suffix(".new").replace(self._checkpoint)
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as log:
            log.writelines(json.dumps(entry) + "\n" for entry in losses)

    def _load(self) -> None:
        import torch

        state = torch.load(self._checkpoint, weights_only=True)
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self._average = state["average"]
        self._optimizer.load_state_dict(state["optimizer"])
        entries = [entry for entry in self.losses() if entry[0] <= self.step]
        (self.folder / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
