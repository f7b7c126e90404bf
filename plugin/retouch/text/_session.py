"""Texts made and edited with one bundle."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from retouch.bundle import TextBundle
from retouch.engines.ort import Provider
from retouch.errors import FeedError, RunError, SamplingError
from retouch.states import StateStore
from retouch.text._edit import EditMode, Plan, Revision
from retouch.text._generation import Generation, new_id, read_only
from retouch.text._model import Context, KeysValues, TextModel, Tokens
from retouch.text._options import QUALITY, SamplerOptions, Window, checked_seed, checked_share, chosen_options
from retouch.text._reader import Reader
from retouch.text._run_files import read_text_record, read_text_run, write_text_run
from retouch.text._sampler import BlockDiffusionSampler, Callback
from retouch.text._spans import Replacement, put_in
from retouch.text._stream import TextStream
from retouch.text._wording import Pairs, Prompt, Wording
from retouch.tokens import Tokenizer

_KEYS_VALUES = "keys and values"


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
        self._wording = Wording(self.model.spec, self.model.own_tokenizer if tokenizer is None else tokenizer)
        self._store = StateStore() if store is None else store
        self._generations: dict[str, Generation] = {}

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, if there is one."""
        return self._wording.tokenizer

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
        chosen = chosen_options(options)
        if chosen.window is Window.ALL and cache:
            raise SamplingError(
                "Expected cache=False with Window.ALL: earlier blocks see later ones, so their keys and values change. "
                "Ask for Window.BLOCKS, or go without a cache."
            )
        ids = self._wording.tokens(prompt, "the prompt")
        if not len(ids):
            raise FeedError("Expected a prompt of at least one token, got an empty one. Give the text's first words.")
        sampler = BlockDiffusionSampler(self.model.spec, chosen)
        rows = sampler.rows(len(ids), length)
        context: Context = (
            self.model.context(rows) if cache else self.model.uncached(rows, window=chosen.window is Window.ALL)
        )
        return TextStream(
            self, sampler, context, ids, length, checked_seed(seed), record=record and cache, callback=callback
        )

    def edit(
        self,
        run: Generation | str,
        spans: Pairs | None = None,
        replacement: Replacement = None,
        *,
        replacements: Sequence[Replacement] | None = None,
        characters: Pairs | None = None,
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
        chosen = base.options if options is None else chosen_options(options)
        plan = Plan(
            mode,
            checked_share("disagreement", disagreement),
            base.seed if seed is None else checked_seed(seed),
            callback,
        )
        if chosen.window is not Window.BLOCKS:
            raise SamplingError("Expected Window.BLOCKS for an edit: it uses keys and values of earlier blocks.")
        changes = self._wording.patches(base, spans, characters, replacement, replacements)
        draft = put_in(base.padded, len(base.tokens), base.prompt_tokens, changes, self.model.spec)
        reason = "as asked for"
        if draft.moved_from is not None and mode is EditMode.FROZEN:
            plan, reason = replace(plan, mode=EditMode.EXACT), "the text behind a span moved"
        context = self.model.context(len(draft.tokens), self._kept(base))
        revision = Revision(BlockDiffusionSampler(self.model.spec, chosen), Reader(context), draft, plan)
        revision.run()
        tokens, padded = read_only(revision.tokens[: draft.length]), read_only(revision.tokens)
        states = context.keys_values() if record else None
        report = revision.report(base.tokens, changes, reason, time.perf_counter() - started)
        text = self.text_of(tokens)
        made = Generation(
            new_id(), tokens, draft.prompt_tokens, text, chosen, plan.seed, report, base=base, padded=padded
        )
        if states is not None:
            self.keep(made, states)
        return made

    def tokens_of(self, text: Prompt) -> Tokens:
        """The tokens of a text, or ids checked.

        Raises:
            FeedError: see :meth:`generate`; or there is no tokenizer for a text.
        """
        return self._wording.tokens(text, "the text")

    def text_of(self, tokens: Tokens) -> str:
        """The text of tokens; empty without a tokenizer."""
        return self._wording.text(tokens)

    def keep(self, made: Generation, states: KeysValues) -> None:
        """Keep a text and the keys and values of its tokens, which nobody changes any more.

        Raises:
            RunError: they do not fit into the store.
        """
        values = {name: self.model.engine.value(array) for name, array in states.items()}
        self._store.put(made.id, self.model.bundle.fingerprint, {_KEYS_VALUES: values})
        self._generations[made.id] = made

    def kept(self, run: Generation | str) -> KeysValues:
        """The keys and values of a text (read-only), by the names of the graph's inputs.

        Raises:
            RunError: see :meth:`edit`.
        """
        return self._kept(self._known(run))

    def save(self, run: Generation | str, path: str | Path) -> None:
        """Writes a text and its keys and values into a directory, in one step, for :meth:`load`.

        Raises:
            RunError: see :meth:`edit`.
            RunFileError: it cannot be written, or something else is there.
        """
        made, bundle = self._known(run), self.model.bundle
        write_text_run(Path(path), made, self._kept(made), bundle.path, bundle.fingerprint)

    def load(self, path: str | Path) -> Generation:
        """The text in a directory, kept like one that was made here; edits of it give what edits before gave.

        Raises:
            RunError: it was made with another bundle.
            RunFileError: the directory is none of a text, or was changed.
        """
        record, details = read_text_record(Path(path))
        if record.bundle_fingerprint != self.model.bundle.fingerprint:
            raise RunError(
                f"Expected a text of this bundle, but {path} was made with another one ({record.bundle}). "
                "Open that one."
            )
        text = self.text_of(np.array(record.tokens[: record.length], np.int64))
        made, states = read_text_run(Path(path), record, details, text)
        self.keep(made, states)
        return made

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
