"""Code is completed and two of its spans are edited, live, with what that costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from retouch.calibrate import Sample, interleaved
from retouch.models.code_lm import PATTERNS_MODEL
from retouch.models.decoders import export_language_model
from retouch.text import Candidate, EditMode, EditReport, EosRule, Generation, TextSession, preset
from retouch.text_view import TextView

__all__ = ["demo_main"]

_PROMPT = "class WidthOwner:\n    def __init__(self, width, owner):\n"
_SPAN = 16
_CANDIDATES = 8
_DRAWN = 0.8  # temperature: a greedy choice would give the same span again


@dataclass(frozen=True)
class Row:
    """What a way to a text costs.

    Attributes:
        name: what was done.
        forwards: reads of the model; of several edits each one's own, mean.
        read: tokens that they were of, likewise.
        cpu_ms: CPU time of the process, median; of several edits at once, each one's share.
        wall_ms: time on the clock, likewise.
        ratio: CPU time over that of making the text again.
    """

    name: str
    forwards: float
    read: float
    cpu_ms: float
    wall_ms: float
    ratio: float


def demo_main(
    out: Annotated[Path, typer.Option(help="Where bundle, texts, picture and table go.")] = Path("out/demo-text"),
    model: Annotated[Path, typer.Option(help="Directory of a network.")] = PATTERNS_MODEL,
    prompt: Annotated[str, typer.Option(help="The beginning of a function or class.")] = _PROMPT,
    argument: Annotated[str, typer.Option(help="What is replaced where it first occurs.")] = "owner",
    replacement: Annotated[str, typer.Option(help="What comes in its place.")] = "title",
    tokens: Annotated[int, typer.Option(min=2 * _SPAN, help="New tokens.")] = 240,
    sampler: Annotated[str, typer.Option("--preset", help="How to sample.")] = "quality",
    repeats: Annotated[int, typer.Option(min=1, help="How often everything is measured.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 1,
) -> None:
    """Completes code, renames an argument (exact), and chooses sixteen tokens anew (frozen), once and eight at once."""
    out.mkdir(parents=True, exist_ok=True)
    bundle = export_language_model(model, out / "bundle")
    options = replace(preset(sampler), eos=EosRule.IGNORED)
    with TextSession(bundle, threads=threads) as session:
        base = _shown(session, session.tokens_of(prompt), partial(session.generate, prompt, tokens, options=options))
        edits = _edits(base, prompt.index(argument), argument, replacement, session.model.spec.eos_id)
        made = {
            name: _shown(session, base.padded, partial(_edit, session, base, candidate))
            for name, candidate in edits.items()
        }
        several = _several(edits["frozen"])
        made |= dict(zip(_letters(len(several)), session.edit_many(base, several), strict=True))
        rows = _rows(session, base, edits, several, repeats)
        session.save(base, out / "base.text")
    _report(out, base, made, rows)


def _edits(base: Generation, place: int, argument: str, replacement: str, eos_id: int) -> dict[str, Candidate]:
    """The edits by their modes. What is chosen anew is the beginning of a second text, where much is possible."""
    ends = np.flatnonzero(base.tokens[:-_SPAN] == eos_id)
    start = int(ends[0]) + 1 if ends.size else len(base.tokens) // 2
    drawn = replace(base.options, temperature=_DRAWN, top_p=0.95, edit_threshold=None)
    return {
        "exact": Candidate(characters=[(place, place + len(argument))], replacement=replacement),
        "frozen": Candidate([(start, start + _SPAN)], mode=EditMode.FROZEN, options=drawn, seed=1),
    }


def _several(frozen: Candidate) -> list[Candidate]:
    return [replace(frozen, seed=seed) for seed in range(1, _CANDIDATES + 1)]


def _letters(count: int) -> list[str]:
    return [f"frozen, candidate {index + 1}" for index in range(count)]


def _edit(
    session: TextSession, base: Generation, wanted: Candidate, callback: Callable[..., None] | None = None
) -> Generation:
    return session.edit(
        base,
        wanted.spans,
        wanted.replacement,
        characters=wanted.characters,
        mode=wanted.mode,
        options=wanted.options,
        seed=wanted.seed,
        callback=callback,
    )


def _one_by_one(session: TextSession, base: Generation, candidates: Sequence[Candidate]) -> list[Generation]:
    return [_edit(session, base, one) for one in candidates]


def _shown(session: TextSession, before: np.ndarray, make: Callable[..., Generation]) -> Generation:
    """What is made, shown on a terminal while it is."""
    with TextView(session.tokenizer, session.model.spec.mask_id, before, len(before)) as view:
        return make(callback=view.told)


def _rows(
    session: TextSession, base: Generation, edits: Mapping[str, Candidate], several: Sequence[Candidate], repeats: int
) -> list[Row]:
    prompt, length = base.tokens[: base.prompt_tokens].tolist(), len(base.tokens) - base.prompt_tokens
    again = partial(session.generate, prompt, length, options=base.options)
    ways: dict[str, Callable[[], list[Generation]]] = {
        "make it again": lambda: [again()],
        "make it again, without a cache": lambda: [again(cache=False)],
        **{f"edit, {name}": partial(_one_by_one, session, base, [one]) for name, one in edits.items()},
        f"{len(several)} frozen edits one by one, each": partial(_one_by_one, session, base, several),
        f"{len(several)} frozen edits at once, each": lambda: session.edit_many(base, several),
    }
    made = {name: make() for name, make in ways.items()}
    costs = interleaved({name: partial(_dropped, session, make) for name, make in ways.items()}, repeats)
    return [_row(name, made[name], costs[name], costs["make it again"]) for name in ways]


def _dropped(session: TextSession, make: Callable[[], list[Generation]]) -> None:
    for made in make():
        session.drop(made)


def _row(name: str, made: Sequence[Generation], cost: Sample, again: Sample) -> Row:
    reports, count = [one.report for one in made], len(made)
    forwards = sum(report.forwards for report in reports)
    read = sum(report.recomputed if isinstance(report, EditReport) else report.read for report in reports)
    cpu_ms = cost.cpu_ms / count
    return Row(name, forwards / count, read / count, cpu_ms, cost.wall_ms / count, cpu_ms / again.cpu_ms)


def _report(out: Path, base: Generation, made: Mapping[str, Generation], rows: Sequence[Row]) -> None:
    console = Console(record=True, width=110)
    panels = [_panel("base", base, base), *(_panel(name, one, base) for name, one in made.items() if "," not in name)]
    console.print(Group(*panels, _table(rows)))
    console.save_svg(str(out / "texts.svg"), title="retouch")
    texts = {"base": base.text, **{name: one.text for name, one in made.items()}}
    data = {"texts": texts, "rows": [asdict(row) for row in rows]}
    (out / "texts.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    console.print(f"texts, picture and table in {out}")


def _panel(name: str, made: Generation, base: Generation) -> Panel:
    """A text; what differs from the base is marked, from both ends."""
    text = Text(made.text)
    if made is not base:
        start = _shared(base.text, made.text)
        end = _shared(base.text[start:][::-1], made.text[start:][::-1])
        text.stylize("bold black on yellow", start, len(made.text) - end)
    return Panel(text, title=f"{name}: {made.report}", title_align="left")


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _table(rows: Sequence[Row]) -> Table:
    table = Table("what", "reads", "tokens read", "CPU ms", "wall ms", "to making it again")
    for row in rows:
        ratio = f"1 / {1 / row.ratio:.1f}" if row.ratio < 1 else f"{row.ratio:.1f}"
        table.add_row(
            row.name, f"{row.forwards:.3g}", f"{row.read:.0f}", f"{row.cpu_ms:.1f}", f"{row.wall_ms:.1f}", ratio
        )
    return table
