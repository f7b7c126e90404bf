"""What exports took, as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from retouch.validation.benchmarks import table

if TYPE_CHECKING:
    from retouch.validation.size._main import Export

_TITLES = {"torch": "from torch (a directory of diffusers)", "onnx": "from ONNX (with external data)"}
_TEXT = """# Exports of large models

What exports of a UNet of the size of Stable Diffusion 1.5's take, random weights, 64x64 latents, single precision, with
verification. **This page is written by `make bench-size`; do not edit it.**
"""
_METHOD = """
Every export runs in a process of its own, without children. Peak is that process's largest resident memory (`VmHWM` in
`/proc/self/status`, reset before every step), the libraries' own and mapped pages of weights included. Calibration,
which times full and edit model side by side, is not part of it.
"""


def page(facts: Mapping[str, object], exports: Sequence[Export]) -> str:
    """The page in Markdown.

    Args:
        facts: where and how it was measured.
        exports: what they took.
    """
    head = ("export", "weights MiB", "peak MiB", "peak / weights", "seconds", "bundle MiB", "bundle / weights")
    parts = [
        _TEXT,
        table(("", ""), ((name, value) for name, value in facts.items() if name not in ("threads", "rounds"))),
        _METHOD.lstrip(),
        table(head, map(_summary, exports)),
        *(_steps(export) for export in exports),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _summary(export: Export) -> tuple[str, ...]:
    return (
        _TITLES[export.kind],
        _mebibytes(export.weights),
        _mebibytes(export.peak),
        f"**{export.peak / export.weights:.2f}**",
        f"{export.seconds:.0f}",
        _mebibytes(export.bundle),
        f"{export.bundle / export.weights:.3f}",
    )


def _steps(export: Export) -> str:
    rows = (
        (step["name"], _mebibytes(step["peak"]), f"{step['peak'] / export.weights:.2f}", f"{step['seconds']:.1f}")
        for step in export.steps
    )
    worst = max(export.verification.values(), default=0.0)
    return (
        f"## {_TITLES[export.kind].capitalize()}\n\n{table(('step', 'peak MiB', '/ weights', 'seconds'), rows)}\n"
        f"Largest error of all checks: {worst:.1e} of the output's scale.\n"
    )


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.0f}"
