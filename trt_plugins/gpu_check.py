"""Checks and times the CUDA kernels on a card: ``python -m retouch.trt_plugins.gpu_check``.

Needs a CUDA build of PyTorch, or CuPy, and ``make kernels``; no TensorRT, unless engines are to be timed. Writes
``gpu_check.json`` and ``gpu_check.md``. Without PyTorch there are no whole steps, and attention and convolutions are
compared with CuPy's matrix product.
Exits with 1 if a kernel is wrong or the card failed on the way, with 2 if there is no card or no library: nothing was
checked then.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

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

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class GpuReport:
    """What was found on a card.

    Attributes:
        card: its name, and the versions of what drives it.
        checks: how far every kernel was from its reference.
        timings: how fast they were.
        steps: edit steps assembled from the kernels and PyTorch, against dense steps.
        engines: edits by engines of a bundle, against its base graph's engine.
        failures: where the card, or a library, gave up; what was found before is there.
    """

    card: str
    checks: tuple[KernelCheck, ...]
    timings: tuple[Timing, ...]
    steps: tuple[StepTiming, ...] = ()
    engines: tuple[EngineTiming, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every kernel and every step is right, and everything went to its end."""
        right = [check.passed for check in self.checks] + [step.passed for step in self.steps]
        return not self.failures and all(right)


def run(card: Card, library: KernelLibrary, sizes: Sizes | None = None, steps: StepSizes | None = None) -> GpuReport:
    """Checks the kernels, and times them, and steps made of them, if they are right."""
    sizes = sizes or Sizes()
    failures: list[str] = []
    checks = _found("checks of kernels", check_kernels(card, library, rows=sizes.checked_rows), failures)
    if failures or not all(check.passed for check in checks):
        return GpuReport(card.name, checks, (), failures=tuple(failures))
    timings = _found("times of kernels", time_kernels(card, library, sizes), failures)
    timed: tuple[StepTiming, ...] = ()
    if not isinstance(card, CupyCard):
        timed = _found("steps", time_steps(card, library, steps or StepSizes()), failures)
    return GpuReport(card.name, checks, timings, timed, failures=tuple(failures))


def _found(what: str, items: Iterator[_T], failures: list[str]) -> tuple[_T, ...]:
    """The items as far as they come, and why no more come: a full memory or a lost card loses nothing that is known."""
    found: list[_T] = []
    try:
        for item in items:
            found.append(item)  # noqa: PERF402  (what came before a failure is kept)
    except (RetouchError, RuntimeError, MemoryError) as error:  # the latter two are PyTorch's and CuPy's
        failures.append(f"{what}, behind {len(found)} of them: {type(error).__name__}: {error}")
    return tuple(found)


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
    for failure in report.failures:
        lines += ["", f"**Not finished**: {failure}"]
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
        card = find_card()
        library = KernelLibrary(options.library)
        options.out.mkdir(parents=True, exist_ok=True)
    except (RetouchError, OSError) as error:
        sys.stderr.write(f"error: {error} Nothing was checked.\n")
        return _NOT_HERE
    report = run(card, library)
    if options.tensorrt is not None:
        report = _with_engines(report, options.tensorrt, Target(options.target))
    replace_text(options.out / "gpu_check.json", json.dumps(dataclasses.asdict(report), indent=1) + "\n")
    replace_text(options.out / "gpu_check.md", page(report))
    sys.stdout.write(page(report))
    return 0 if report.passed else _FAILED


def _with_engines(report: GpuReport, bundle: Path, target: Target) -> GpuReport:
    failures = [*report.failures]
    engines = _found("engines", time_engines(bundle, target, StepSizes().shares), failures)
    return dataclasses.replace(report, engines=engines, failures=tuple(failures))


if __name__ == "__main__":
    raise SystemExit(main())
