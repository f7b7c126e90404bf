"""Texts made and edited with one bundle."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from retouch.bundle import TextBundle
from retouch.engines.ort import Provider
from retouch.errors import FeedError, RegionError, RunError, SamplingError
from retouch.states import StateStore
from retouch.text._edit import EditMode, Plan, Revision
from retouch.text._generation import EditReport, Generation, TextReport
from retouch.text._model import CachedContext, Context, KeysValues, TextModel, Tokens
from retouch.text._options import QUALITY, SamplerOptions, Window, preset
from retouch.text._places import Places
from retouch.text._sampler import BlockDiffusionSampler, Callback, FinishedBlock, Reader
from retouch.text._settle import Tally
from retouch.text._spans import Draft, Patch, Replacement, patches, put_in, replacement_tokens
from retouch.tokens import Tokenizer, check_tokens

_KEYS_VALUES = "keys and values"

Prompt = str | Sequence[int]


class TextSession:
    r"""Makes texts with a text bundle, keeps their keys and values, and edits them.

    Example:
        >>> with TextSession("code.bundle") as session:
        ...     run = session.generate("class WidthHeight:\n", 200)
        ...     edited = session.edit(run, characters=[(40, 56)], mode=EditMode.FROZEN)
        ...     print(edited.text, edited.report)
    """

    def __init__(
        self,
        bundle: TextBundle | str | Path,
        providers: Sequence[Provider] | None = None,
        threads: int | None = None,
        *,
        tokenizer: Tokenizer | None = None,
        store: StateStore | None = None,
    ) -> None:
        """Opens the bundle.

        Args:
            bundle: the bundle, or its directory.
            providers: execution providers that keep tensors in host memory; ``None`` means the CPU.
            threads: threads per run; ``None`` leaves the choice to the engine.
            tokenizer: a tokenizer that fits the model; ``None`` means the bundle's own, if it has one.
            store: where keys and values are kept; ``None`` means in memory, until the session closes.

        Raises:
            FeedError: the tokenizer has other ids than the model.
        """
        self.model = TextModel(bundle, providers, threads)
        self.tokenizer = self.model.own_tokenizer if tokenizer is None else tokenizer
        if self.tokenizer is not None:
            _check_tokenizer(self.tokenizer, self.model)
        self._store = StateStore() if store is None else store
        self._generations: dict[str, Generation] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the texts that this session made, and their keys and values."""
        for run in list(self._generations):
            self.drop(run)

    def runs(self) -> tuple[str, ...]:
        """The ids of the texts that can be edited, the oldest first."""
        kept = set(self._store.ids(self.model.bundle.fingerprint))
        return tuple(run for run in self._generations if run in kept)

    def drop(self, run: Generation | str) -> None:
        """Forget a text, and its keys and values."""
        name = run if isinstance(run, str) else run.id
        self._generations.pop(name, None)
        self._store.drop(name)

    def generate(
        self,
        prompt: Prompt,
        length: int,
        *,
        options: SamplerOptions | str = QUALITY,
        seed: int = 0,
        cache: bool = True,
        record: bool = True,
        callback: Callback | None = None,
    ) -> Generation:
        """A prompt with an answer of at most so many tokens.

        Args:
            prompt: a text, or token ids.
            length: the most new tokens.
            options: how to sample, or the name of a preset.
            seed: seed of what is drawn: equal seeds give equal texts, with and without a cache.
            cache: whether keys and values of finished blocks are kept instead of being computed in every read. They
                are exact.
            record: whether to keep them afterwards, for edits; needs ``cache``.
            callback: called after every change. What it raises ends the sampling, and nothing of it is kept.

        Raises:
            FeedError: the prompt is empty, or holds the mask, or ids or characters that the model does not have.
            NonFiniteError: the model gives NaN or infinity.
            SamplingError: an option is out of range, or prompt and answer are longer than the model's longest text.
        """
        stream = self.stream(prompt, length, options=options, seed=seed, cache=cache, record=record, callback=callback)
        for _ in stream:
            pass
        return stream.generation

    def stream(
        self,
        prompt: Prompt,
        length: int,
        *,
        options: SamplerOptions | str = QUALITY,
        seed: int = 0,
        cache: bool = True,
        record: bool = True,
        callback: Callback | None = None,
    ) -> TextStream:
        """The same block by block: iterate over it; see :meth:`generate`."""
        chosen = preset(options) if isinstance(options, str) else options
        if chosen.window is Window.ALL and cache:
            raise SamplingError(
                "Expected cache=False with Window.ALL: earlier blocks see later ones, so their keys and values change. "
                "Ask for Window.BLOCKS, or go without a cache."
            )
        ids = self.tokens_of(prompt, "the prompt")
        if not len(ids):
            raise FeedError("Expected a prompt of at least one token, got an empty one. Give the text's first words.")
        sampler = BlockDiffusionSampler(self.model.spec, chosen)
        rows = sampler.rows(len(ids), length)
        context: Context = (
            self.model.context(rows) if cache else self.model.uncached(rows, window=chosen.window is Window.ALL)
        )
        return TextStream(self, sampler, context, ids, length, _seed(seed), record=record and cache, callback=callback)

    def edit(
        self,
        run: Generation | str,
        spans: Sequence[tuple[int, int]] | None = None,
        replacement: Replacement = None,
        *,
        replacements: Sequence[Replacement] | None = None,
        characters: Sequence[tuple[int, int]] | None = None,
        mode: EditMode = EditMode.EXACT,
        disagreement: float = 0.9,
        options: SamplerOptions | str | None = None,
        seed: int | None = None,
        record: bool = True,
        callback: Callback | None = None,
    ) -> Generation:
        """A text with something else in the place of spans. The base stays as it is.

        Blocks before the first span are not read: their keys and values are those of the base, and exact. The model
        chooses from what stands before a span and in its block; what stands in later blocks it does not see.

        Args:
            run: the base, or its id.
            spans: spans of tokens, counted from the prompt's first: first token, and the token behind the last one.
            replacement: what comes in the span's place: as many tokens of the model's choice (``None``), another number
                of them (:class:`Masks`), a text, or ids.
            replacements: the same for each of several spans.
            characters: the spans as places in the text instead. A token that a place is inside of belongs to the span;
                a text that replaces it keeps the characters that do not.
            mode: what is done with blocks behind a span. Spans that change the text's length move what follows, which
                then is read again in every mode.
            disagreement: ``VERIFY`` chooses tokens anew where another has a confidence above this.
            options: how to sample; ``None`` means as the base.
            seed: seed of what is drawn; ``None`` means the base's.
            record: whether to keep what further edits need.
            callback: called after every change.

        Raises:
            FeedError: a replacement holds the mask, or ids or characters that the model does not have.
            RegionError: a span is out of range, overlaps another, or selects nothing and puts nothing in.
            RunError: the run is unknown, was not recorded, was dropped or evicted, or is of another bundle.
            SamplingError: an option is out of range, or one that edits do not have.
        """
        started = time.perf_counter()
        base = self._known(run)
        chosen = base.options if options is None else preset(options) if isinstance(options, str) else options
        plan = Plan(mode, _share(disagreement), base.seed if seed is None else _seed(seed), callback)
        if chosen.window is not Window.BLOCKS:
            raise SamplingError("Expected Window.BLOCKS for an edit: it uses keys and values of earlier blocks.")
        changes = self._patches(base, spans, replacement, replacements, characters)
        draft = put_in(base.padded, len(base.tokens), base.prompt_tokens, changes, self.model.spec)
        reason = "as asked for"
        if draft.moved_from is not None and mode is EditMode.FROZEN:
            plan, reason = replace(plan, mode=EditMode.EXACT), "the text behind a span moved"
        context = self.model.context(len(draft.tokens), self._kept(base))
        reader = Reader(context)
        revision = Revision(self.model.spec, BlockDiffusionSampler(self.model.spec, chosen), reader, draft, plan)
        revision.run()
        report = _report(base, draft, changes, plan, reason, revision, reader, time.perf_counter() - started)
        made = self._made(base, draft, revision, chosen, plan.seed, report)
        if record:
            self.keep(made, context)
        return made

    def tokens_of(self, text: Prompt, what: str) -> Tokens:
        """The tokens of a text, or ids checked.

        Raises:
            FeedError: see :meth:`generate`; or there is no tokenizer for a text.
        """
        spec = self.model.spec
        if not isinstance(text, str):
            return check_tokens(text, spec.vocabulary, spec.mask_id, what)
        return check_tokens(self._tokenizer_for(what).encode(text), spec.vocabulary, spec.mask_id, what)

    def text_of(self, tokens: Tokens) -> str:
        """The text of tokens; empty without a tokenizer."""
        return "" if self.tokenizer is None else "".join(self.tokenizer.pieces(tokens.tolist()))

    def keep(self, made: Generation, context: CachedContext) -> None:
        """Keep a text and the keys and values of its tokens, which nobody changes any more.

        Raises:
            RunError: they do not fit into the store.
        """
        values = {name: self.model.engine.value(array) for name, array in context.keys_values.items()}
        self._store.put(made.id, self.model.bundle.fingerprint, {_KEYS_VALUES: values})
        self._generations[made.id] = made

    def kept(self, run: Generation | str) -> KeysValues:
        """The keys and values of a text (read-only), by the names of the graph's inputs.

        Raises:
            RunError: see :meth:`edit`.
        """
        return self._kept(self._known(run))

    def _kept(self, base: Generation) -> KeysValues:
        values = self._store.get(base.id, self.model.bundle.fingerprint, _KEYS_VALUES)
        return {name: value.numpy() for name, value in values.items()}

    def _known(self, run: Generation | str) -> Generation:
        name = run if isinstance(run, str) else run.id
        if name not in self._generations:
            raise RunError(
                f"Expected the id of a text that this session keeps, but {name!r} was not recorded, was dropped, or is "
                f"another session's. Kept are: {', '.join(self.runs()) or 'none'}."
            )
        return self._generations[name]

    def _patches(
        self,
        base: Generation,
        spans: Sequence[tuple[int, int]] | None,
        replacement: Replacement,
        replacements: Sequence[Replacement] | None,
        characters: Sequence[tuple[int, int]] | None,
    ) -> list[Patch]:
        if (spans is None) == (characters is None):
            raise RegionError("Expected either spans of tokens or characters, got both or neither. Give one of them.")
        places = spans if characters is None else characters
        assert places is not None
        given = _one_each(replacement, replacements, len(places))
        if characters is not None:
            pieces = self._tokenizer_for("places in the text").pieces(base.tokens.tolist())
            found = [Places(pieces).span(place, text) for place, text in zip(characters, given, strict=True)]
            spans, given = [span for span, _ in found], [text for _, text in found]
        assert spans is not None
        tokens = [self._replacement(one) for one in given]
        return patches(spans, tokens, len(base.tokens), self.model.spec)

    def _replacement(self, given: Replacement) -> Tokens | None:
        if given is None:
            return None
        if isinstance(given, str):
            return self.tokens_of(given, "the replacement")
        return replacement_tokens(given, self.model.spec)

    def _made(
        self,
        base: Generation,
        draft: Draft,
        revision: Revision,
        options: SamplerOptions,
        seed: int,
        report: EditReport,
    ) -> Generation:
        tokens = _read_only(revision.tokens[: draft.length])
        text = self.text_of(tokens)
        padded = _read_only(revision.tokens)
        return Generation(_new_id(), tokens, draft.prompt_tokens, text, options, seed, report, base=base, padded=padded)

    def _tokenizer_for(self, what: str) -> Tokenizer:
        if self.tokenizer is None:
            raise FeedError(
                f"Expected token ids for {what}: the bundle came without a tokenizer. Give ids, or a tokenizer=..."
            )
        return self.tokenizer


class TextStream:
    """An answer under way: an iterator of its blocks."""

    def __init__(
        self,
        session: TextSession,
        sampler: BlockDiffusionSampler,
        context: Context,
        prompt: Tokens,
        length: int,
        seed: int,
        *,
        record: bool,
        callback: Callback | None,
    ) -> None:
        self._session = session
        self._sampler = sampler
        self._context = context
        self._prompt = prompt
        self._seed = seed
        self._record = record
        self._tally = Tally()
        self._reader = Reader(context)
        self._started = time.perf_counter()
        self._blocks: list[FinishedBlock] = []
        self._made: Generation | None = None
        self._source = sampler.blocks(
            context, prompt, length, seed=seed, callback=callback, tally=self._tally, reader=self._reader
        )

    def __iter__(self) -> Iterator[FinishedBlock]:
        for block in self._source:
            self._blocks.append(block)
            if block.last:
                self._finish()
            yield block

    @property
    def generation(self) -> Generation:
        """The whole, once the last block was taken.

        Raises:
            SamplingError: it was not.
        """
        if self._made is None:
            raise SamplingError("Expected the stream to be at its end. Take its blocks first, or call generate.")
        return self._made

    def _finish(self) -> None:
        prompt, size = self._prompt, self._session.model.spec.block
        answer = np.concatenate([block.new for block in self._blocks])
        whole = prompt[: len(prompt) // size * size]
        padded = _read_only(np.concatenate((whole, *(block.tokens for block in self._blocks))))
        if self._record:
            self._reader.finish()
        report = TextReport.of(
            self._tally,
            tokens=len(answer),
            prefilled=len(whole),
            reads=self._reader.reads,
            read=self._reader.tokens,
            cached=isinstance(self._context, CachedContext),
            seconds=time.perf_counter() - self._started,
        )
        tokens = _read_only(padded[: len(prompt) + len(answer)])
        text = self._session.text_of(tokens)
        options, seed = self._sampler.options, self._seed
        self._made = Generation(_new_id(), tokens, len(prompt), text, options, seed, report, padded=padded)
        if self._record:
            assert isinstance(self._context, CachedContext)
            self._session.keep(self._made, self._context)


def _report(
    base: Generation,
    draft: Draft,
    changes: Sequence[Patch],
    plan: Plan,
    reason: str,
    revision: Revision,
    reader: Reader,
    seconds: float,
) -> EditReport:
    if draft.moved_from is None:
        changed = int(np.count_nonzero(revision.tokens[: draft.length] != base.tokens))
    else:
        changed = sum(max(len(patch.tokens), patch.end - patch.start) for patch in changes) + revision.disagreed
    return EditReport(
        mode=plan.mode.value,
        reason=reason,
        forwards=reader.reads,
        recomputed=reader.tokens,
        settled=revision.settled,
        refreshed=revision.refreshed,
        kept=revision.kept,
        changed=changed,
        disagreed=revision.disagreed,
        edited=revision.tally.edited,
        oscillations=revision.tally.oscillations,
        seconds=seconds,
    )


def _one_each(replacement: Replacement, replacements: Sequence[Replacement] | None, count: int) -> list[Replacement]:
    if replacements is None and replacement is not None and count != 1:
        raise RegionError(f"Expected replacements=[...] with one for each of {count} spans, got a single replacement.")
    given = [replacement] * count if replacements is None else list(replacements)
    if len(given) != count or (replacements is not None and replacement is not None):
        raise RegionError(f"Expected one replacement for each of {count} spans, got {len(given)}. Give as many.")
    return given


def _check_tokenizer(tokenizer: Tokenizer, model: TextModel) -> None:
    spec = model.spec
    has = (tokenizer.vocabulary, tokenizer.mask_id, tokenizer.eos_id)
    wants = (spec.vocabulary, spec.mask_id, spec.eos_id)
    if has != wants:
        raise FeedError(
            f"Expected a tokenizer with vocabulary, mask and end {wants}, as the model has, got {has}. Take the one "
            "that the model was trained with."
        )


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SamplingError(f"Expected a seed that is an integer of at least 0, got {seed!r}.")
    return seed


def _share(value: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise SamplingError(f"Expected disagreement to be a number from 0 to 1, got {value!r}.")
    return float(value)


def _new_id() -> str:
    return secrets.token_hex(6)


def _read_only(tokens: Tokens) -> Tokens:
    kept = tokens.copy()
    kept.setflags(write=False)
    return kept
