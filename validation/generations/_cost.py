"""What an edit of a finished generation costs against generating again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retouch.calibrate import Sample, interleaved
from retouch.sampling import Recording, TextToImage
from retouch.validation.generations._cases import Case
from retouch.validation.generations._quality import GUIDANCE, STEPS, embeddings, generated
from retouch.validation.generations._stock import StockPipeline

__all__ = ["Cost", "measure_cost"]

_STOCK = ["CPUExecutionProvider"]


@dataclass(frozen=True)
class Cost:
    """Medians of one edit and of what it is compared with, all with 20 steps, guidance and decoding.

    Attributes:
        area: share of the image inside the region.
        policy: the region's policy.
        threads: threads per run.
        edit: the edit, on Retouch's own kernels where they are there.
        edit_stock: the edit on stock kernels.
        again: generating again with stock sessions.
        recorded: generating with Retouch, every step recorded.
        engine: what the edit ran on.
    """

    area: float
    policy: str
    threads: int
    edit: Sample
    edit_stock: Sample
    again: Sample
    recorded: Sample
    engine: str

    @property
    def overhead(self) -> float:
        """What recording adds to a generation, as a share of one by stock sessions."""
        return self.recorded.cpu_ms / self.again.cpu_ms - 1.0

    @property
    def pays_after(self) -> float:
        """Edits after which recording has paid for itself, against generating again every time."""
        return self.overhead * self.again.cpu_ms / max(self.again.cpu_ms - self.edit.cpu_ms, 1e-9)


def measure_cost(path: Path, case: Case, threads: int, policy: str, repeats: int = 9) -> Cost:
    """The cost of a case, in turn with what it is compared with."""
    stock = StockPipeline(path, threads)
    with TextToImage(path, threads=threads) as own, TextToImage(path, _STOCK, threads) as plain:
        text = embeddings(own, case.after.caption)
        base, other = generated(own, case), generated(plain, case)
        edited = own.edit(base, case.region, case.after.caption, policy=policy)
        samples = interleaved(
            {
                "again": lambda: stock.generate(text, guidance=GUIDANCE, steps=STEPS, seed=case.seed),
                "edit": lambda: own.edit(base, case.region, case.after.caption, policy=policy),
                "edit_stock": lambda: plain.edit(other, case.region, case.after.caption, policy=policy),
                "recorded": lambda: generated(own, case, Recording()).close(),
            },
            repeats,
        )
        report = edited.trajectory.report
        assert report is not None, "an edit has one"
        return Cost(case.region.area, policy, threads, engine=report.runs[0][0].engine, **samples)
