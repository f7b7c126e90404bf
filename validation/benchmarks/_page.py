"""The benchmarks as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from retouch.validation.benchmarks._figures import Figures

_INTRODUCTION = """# Benchmarks

What an edit costs against running the full model again, on ONNX Runtime. **This page is written by `make bench`; do not
edit it.**
"""
_METHOD = """
How it was measured: an edit of a centred block takes turns with the bundle's full model and the original model, in one
process; every figure is the median of {repeats} rounds after two to warm up. Ratios are edit time over the faster full
model. "CPU, 1 thread" is CPU time of the process, which is steady on shared machines; "wall, 2 threads" is time on the
clock. Edits run on Retouch's kernels where they were built ("kernels" above), in the column "stock" on ONNX Runtime's
own. Areas are of the editable positions, region policy `exact`: the block's own rows, without dilation, and what they
read beyond the block comes from the states. Patches name their dilation. GroupNorm moments are `cached`. `dense` marks
edits above the bundle's break-even, which take the dense fallback: one full run, merged with the base result.

Edits follow a full run here, which has pushed the edit's weights out of the processor's caches; edits that follow edits
are faster. Memory in huge pages makes such reads cheaper (and full runs a little): `GLIBC_TUNABLES` in the command is
what asks for them on Linux, where they are not given to everyone.
"""
_FOOTPRINT = """
Memory and start-up, medians of fresh processes on one thread. "Edit" has loaded base, preparation and edit graphs, has
made a base run and an edit, and keeps the states; "stock" is a session of the original model that has made one run. The
time to load includes checking the bundle's hashes. Memory after the imports alone was {imports} MiB.
"""


def page(facts: Mapping[str, object], figures: Sequence[Figures]) -> str:
    """The page in Markdown.

    Args:
        facts: where and how it was measured.
        figures: what was measured, one per model.
    """
    parts = [
        _INTRODUCTION,
        table(("", ""), ((name, value) for name, value in facts.items())),
        _METHOD.lstrip().format(repeats=facts["rounds"]),
        "## Time\n",
        *(_times(item) for item in figures),
        "## Memory, start-up and size\n",
        _footprints(figures),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _times(figures: Figures) -> str:
    stock = {row["case"]: f"{row['ratio']:.3f}" for row in figures.stock}
    rows = (
        (
            one["case"],
            f"{one['area']:.1%}",
            " / ".join(f"{count:,}" for count in one["rows"].values()),
            f"{one['flop_ratio']:.3f}",
            f"{one['base_ms']:.1f}",
            f"{one['edit_ms']:.1f}",
            f"**{one['ratio']:.3f}**",
            stock.get(one["case"], ""),
            f"{two['wall_ratio']:.3f}",
            one["path"],
        )
        for one, two in zip(figures.one_thread, figures.two_threads, strict=True)
    )
    head = (
        *("edit", "area", "active rows", "FLOP share", "full ms", "edit ms"),
        *("CPU, 1 thread", "stock", "wall, 2 threads", "path"),
    )
    return (
        f"### {figures.name}\n\n{figures.gflop:.3g} GFLOP a run, coverage {figures.coverage:.1%}, "
        f"{_break_even(figures.break_even)}.\n\n{table(head, rows)}"
    )


def _break_even(share: float | None) -> str:
    if share is None:
        return "break-even not measured"
    return "edits faster up to all rows" if share > 1 else f"break-even at {share:.0%} of the FLOPs"


def _footprints(figures: Sequence[Figures]) -> str:
    rows = []
    for item in figures:
        edit, stock = item.footprint["edit"], item.footprint["stock"]
        rows.append(
            (
                item.name,
                f"{edit['open_ms']:.0f} / {stock['open_ms']:.0f}",
                f"{edit['first_ms']:.0f} / {stock['first_ms']:.0f}",
                f"{_mebibytes(edit['peak_bytes'])} / {_mebibytes(stock['peak_bytes'])}",
                f"{_mebibytes(edit['rest_bytes'])} / {_mebibytes(stock['rest_bytes'])}",
                _mebibytes(item.footprint["states_bytes"]),
                f"{_mebibytes(item.footprint['bundle_bytes'])} / {_mebibytes(item.footprint['original_bytes'] or 0)}",
            )
        )
    head = (
        *("model", "load ms, edit / stock", "first result ms", "peak MiB", "at rest MiB", "states MiB"),
        "on disk MiB, bundle / original",
    )
    imports = max((item.footprint["stock"]["imports_bytes"] for item in figures), default=0)
    return f"{_FOOTPRINT.lstrip().format(imports=_mebibytes(imports))}\n{table(head, rows)}"


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.0f}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)
