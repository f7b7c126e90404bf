"""Times texts with and without a cache, and edits of them, against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypedDict

import numpy as np

from retouch.calibrate import Sample, interleaved
from retouch.text import (
    BlockDiffusionSampler,
    Context,
    EditMode,
    EditReport,
    EosRule,
    Generation,
    Reader,
    SamplerOptions,
    TextModel,
    TextSession,
)

CACHED = "cached"
UNCACHED = "uncached"
CAUSAL = "causal, token by token"
"""As an autoregressive network of this shape would be read; it would have learned to predict the next token."""

MakeContext = Callable[[int], Context]


class TextMeasurement(TypedDict):
    """One row of a benchmark.

    Attributes:
        case: what was measured.
        forwards: reads of the model, the prompt's included.
        read: tokens that those reads were asked for.
        cpu_s: CPU time of the process, median.
        wall_s: time on the clock, median.
        tokens_per_s: new tokens per second of CPU time; of an edit, those of its span.
        ratio: CPU time over that of making the text with a cache.
        identical: whether it gave the text that the cache gave; an edit, whether it kept all outside of its span. Token
            by token is another way to choose, so another text.
    """

    case: str
    forwards: int
    read: int
    cpu_s: float
    wall_s: float
    tokens_per_s: float
    ratio: float
    identical: bool


@dataclass(frozen=True)
class _Outcome:
    tokens: list[int]
    forwards: int
    read: int


def measure_text(
    session: TextSession,
    prompt: str | Sequence[int],
    length: int,
    options: SamplerOptions,
    *,
    span: int = 16,
    repeats: int = 5,
    others: Mapping[str, MakeContext] | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[TextMeasurement]:
    """A text of so many new tokens, made in every way in turn, in one process, and edits of a span in its middle.

    Ends are ignored, so that every text has the length that is asked for. A round makes every case once.

    Args:
        session: a session.
        prompt: the prompt.
        length: new tokens.
        options: how to sample.
        span: tokens of the span that edits choose anew.
        repeats: rounds that count, after one that does not.
        others: further contexts to make the text with, such as those of another runtime, by name.
        progress: called with a line before every round.
    """
    fixed = replace(options, eos=EosRule.IGNORED)
    base = session.generate(prompt, length, options=fixed)
    middle = len(base.tokens) // 2
    place = (middle, min(middle + span, len(base.tokens)))
    makers: dict[str, MakeContext] = {CACHED: session.model.context, UNCACHED: session.model.uncached}
    makers |= others or {}
    ways = {name: _maker(session.model, base, length, fixed, make) for name, make in makers.items()}
    ways[CAUSAL] = _token_by_token(session.model, base, length)
    ways |= {f"edit, {mode.value}": _editor(session, base, place, mode) for mode in EditMode}
    outcomes, times = _rounds(ways, repeats, progress)
    session.drop(base)
    new = {name: place[1] - place[0] if name.startswith("edit") else length for name in ways}
    return [
        _row(
            name, outcomes[name], times[name], times[CACHED], new[name], _is_as_base(base, outcomes[name], place, name)
        )
        for name in ways
    ]


def _maker(
    model: TextModel, base: Generation, length: int, options: SamplerOptions, make: MakeContext
) -> Callable[[], _Outcome]:
    sampler = BlockDiffusionSampler(model.spec, options)
    prompt = base.tokens[: base.prompt_tokens]

    def run() -> _Outcome:
        reader = Reader(make(sampler.rows(len(prompt), length)))
        blocks = list(sampler.blocks(reader.context, prompt, length, reader=reader))
        answer = [token for block in blocks for token in block.new.tolist()]
        return _Outcome([*prompt.tolist(), *answer], reader.reads, reader.tokens)

    return run


def _token_by_token(model: TextModel, base: Generation, length: int) -> Callable[[], _Outcome]:
    prompt, mask_id = base.tokens[: base.prompt_tokens], model.spec.mask_id

    def run() -> _Outcome:
        context = model.context(len(prompt) + length)
        answer: list[int] = []
        given, start = prompt, 0
        while len(answer) < length:
            logits = context.read_widened(given, start, block=1)[-1]
            logits[mask_id] = -np.inf
            answer.append(int(logits.argmax()))
            given, start = np.array(answer[-1:]), start + len(given)
        return _Outcome([*prompt.tolist(), *answer], length, start)

    return run


def _editor(session: TextSession, base: Generation, place: tuple[int, int], mode: EditMode) -> Callable[[], _Outcome]:
    def run() -> _Outcome:
        made = session.edit(base, [place], mode=mode)
        session.drop(made)
        assert isinstance(made.report, EditReport)
        return _Outcome(made.tokens.tolist(), made.report.forwards, made.report.recomputed)

    return run


def _rounds(
    ways: Mapping[str, Callable[[], _Outcome]], repeats: int, progress: Callable[[str], None] | None
) -> tuple[dict[str, _Outcome], dict[str, Sample]]:
    outcomes: dict[str, _Outcome] = {}

    def run(name: str) -> None:
        outcomes[name] = ways[name]()

    return outcomes, interleaved({name: partial(run, name) for name in ways}, repeats, warm_ups=1, progress=progress)


def _is_as_base(base: Generation, outcome: _Outcome, place: tuple[int, int], name: str) -> bool:
    wanted: list[int] = base.tokens.tolist()
    got = outcome.tokens
    if name.startswith("edit"):
        return wanted[: place[0]] == got[: place[0]] and wanted[place[1] :] == got[place[1] :]
    return wanted == got


def _row(name: str, outcome: _Outcome, times: Sample, cached: Sample, new: int, identical: bool) -> TextMeasurement:
    return TextMeasurement(
        case=name,
        forwards=outcome.forwards,
        read=outcome.read,
        cpu_s=times.cpu_ms / 1e3,
        wall_s=times.wall_ms / 1e3,
        tokens_per_s=1e3 * new / times.cpu_ms,
        ratio=times.cpu_ms / cached.cpu_ms,
        identical=identical,
    )
