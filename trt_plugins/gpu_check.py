"""Checks and times the CUDA kernels on a card: ``python -m retouch.trt_plugins.gpu_check``.

Needs a CUDA build of PyTorch, or CuPy, and ``make kernels``; no TensorRT, unless engines are to be timed. Writes
``gpu_check.json`` and ``gpu_check.md``. Without PyTorch there are no whole steps, and attention and convolutions are
compared with CuPy's matrix product.
Exits with 1 if a kernel is wrong, with 2 if there is no card or no library.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from retouch.engines import Target
from retouch.errors import RetouchError
from retouch.files import replace_text
from retouch.trt_plugins._card import Card
from retouch.trt_plugins._cupy_card import CupyCard, find_card
from retouch.trt_plugins._engine_timings import EngineTiming, time_engines
from retouch.trt_plugins._kernel_checks import KernelCheck, check_kernels
from retouch.trt_plugins._kernel_library import KernelLibrary
from retouch.trt_plugins._kernel_timings import Sizes, Timing, time_kernels
from retouch.trt_plugins.steps import StepSizes, StepTiming, time_steps

__all__ = ["GpuReport", "main", "page", "run"]

_LIBRARY = "build/kernels/libretouch_kernels.so"
_GIGA = 1e9
_FAILED = 1
_NOT_HERE = 2


@dataclasses.dataclass(frozen=True)
class GpuReport:
    """What was found on a card.

    Attributes:
        card: its name, and the versions of what drives it.
        checks: how far every kernel was from its reference.
        timings: how fast they were.
        steps: edit steps assembled from the kernels and PyTorch, against dense steps.
        engines: edits by engines of a bundle, against its base graph's engine.
    """

    card: str
    checks: tuple[KernelCheck, ...]
    timings: tuple[Timing, ...]
    steps: tuple[StepTiming, ...] = ()
    engines: tuple[EngineTiming, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every kernel and every step is right."""
        return all(check.passed for check in self.checks) and all(step.passed for step in self.steps)


def run(card: Card, library: KernelLibrary, sizes: Sizes | None = None, steps: StepSizes | None = None) -> GpuReport:
    """Checks the kernels, and times them, and steps made of them, if they are right."""
    sizes = sizes or Sizes()
    checks = tuple(check_kernels(card, library, rows=sizes.checked_rows))
    if not all(check.passed for check in checks):
        return GpuReport(card.name, checks, ())
    timings = tuple(time_kernels(card, library, sizes))
    timed = () if isinstance(card, CupyCard) else tuple(time_steps(card, library, steps or StepSizes()))
    return GpuReport(card.name, checks, timings, timed)


def page(report: GpuReport) -> str:
    """The report as Markdown."""
    lines = [f"# Kernels on {report.card}", "", "| kernel | type | error | tolerance | |", "|---|---|---|---|---|"]
    lines += [
        f"| {check.kernel} | {check.dtype} | {check.error:.1e} | {check.tolerance:.1e} | "
        f"{'right' if check.passed else 'WRONG'} |"
        for check in report.checks
    ]
    lines += ["", "| float16 | ms | rate | of the card's own |", "|---|---|---|---|"]
    lines += [
        f"| {timing.what} | {timing.milliseconds:.3f} | {timing.rate / _GIGA:.0f} G{timing.unit} | "
        f"{timing.share:.0%} of {timing.against} |"
        for timing in report.timings
    ]
    if report.steps:
        lines += ["", "| step, float16 | active rows | edit ms | dense ms | times faster | launch us | error | |"]
        lines += ["|---|---|---|---|---|---|---|---|", *map(_step_line, report.steps)]
    if report.engines:
        lines += ["", "| engines | active rows | edit ms | base ms | times faster |", "|---|---|---|---|---|"]
        lines += map(_engine_line, report.engines)
    return "\n".join(lines) + "\n"


def _step_line(step: StepTiming) -> str:
    times = f"{step.edit_milliseconds:.3f} | {step.dense_milliseconds:.3f} | {step.speedup:.1f}"
    verdict = f"{step.error:.1e} | {'right' if step.passed else 'WRONG'}"
    return f"| {step.step} | {step.rows} ({step.share:.0%}) | {times} | {step.launch_microseconds:.0f} | {verdict} |"


def _engine_line(run: EngineTiming) -> str:
    times = f"{run.edit_milliseconds:.3f} | {run.base_milliseconds:.3f} | {run.speedup:.1f}"
    return f"| {run.engine} | {run.rows} ({run.share:.0%}) | {times} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m retouch.trt_plugins.gpu_check", description=__doc__)
    parser.add_argument("--library", default=_LIBRARY, help=f"the kernels' library; default {_LIBRARY}")
    parser.add_argument("--tensorrt", type=Path, metavar="BUNDLE", help="time the engines built from this bundle, too")
    parser.add_argument(
        "--target", choices=[Target.TENSORRT_RTX, Target.TENSORRT], default=Target.TENSORRT_RTX, help="what runs these"
    )
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the report")
    options = parser.parse_args(arguments)
    try:
        library = KernelLibrary(options.library)
        report = run(find_card(), library)
        if options.tensorrt is not None:
            engines = tuple(time_engines(options.tensorrt, Target(options.target), StepSizes().shares))
            report = dataclasses.replace(report, engines=engines)
    except RetouchError as error:
        sys.stderr.write(f"error: {error}\n")
        return _NOT_HERE
    replace_text(options.out / "gpu_check.json", json.dumps(dataclasses.asdict(report), indent=1) + "\n")
    replace_text(options.out / "gpu_check.md", page(report))
    sys.stdout.write(page(report))
    return 0 if report.passed else _FAILED


if __name__ == "__main__":
    raise SystemExit(main())
