"""Texts made and edited with one bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retouch.bundle import TextBundle
from retouch.engines.ort import Provider, WeightStorage
from retouch.errors import SamplingError
from retouch.states import StateStore
from retouch.text._candidate import Candidate, EditTask
from retouch.text._edit import EditMode
from retouch.text._generation import Generation
from retouch.text._kept_texts import KeptTexts
from retouch.text._model import Context, TextModel, Tokens
from retouch.text._options import QUALITY, SamplerOptions, Window, checked_seed, chosen_options
from retouch.text._sampler import BlockDiffusionSampler
from retouch.text._spans import Replacement
from retouch.text._step import Callback
from retouch.text._stream import TextStream
from retouch.text._together import Together
from retouch.text._wording import Pairs, Prompt, Wording
from retouch.tokens import Tokenizer


class TextSession(KeptTexts):
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
        weights: WeightStorage | str = WeightStorage.FLOAT32,
    ) -> None:
        """Opens the bundle.

        Args:
            bundle: the bundle, or its directory.
            providers: execution providers that keep tensors in host memory; ``None`` means the CPU.
            threads: threads per run; ``None`` leaves the choice to the engine.
            tokenizer: a tokenizer that fits the model; ``None`` means the bundle's own, if it has one.
            store: where keys and values are kept; ``None`` means in memory, until the session closes.
            weights: how the model's weights are kept; see :class:`TextModel`.

        Raises:
            FeedError: the tokenizer has other ids than the model.
            SamplingError: all tokens of the model see each other, so that no block can be finished.
        """
        model = TextModel(bundle, providers, threads, weights)
        if not model.spec.block_causal:
            raise SamplingError(
                f"Expected a model whose blocks see earlier blocks only, but in {model.spec.family} all tokens see "
                "each other. Use retouch.text.full_attention.FullAttentionSampler, or `retouch text fill`."
            )
        wording = Wording(model.spec, model.own_tokenizer if tokenizer is None else tokenizer)
        super().__init__(model, wording, StateStore() if store is None else store)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, if there is one."""
        return self._wording.tokenizer

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
        if cache:
            _check_cached(chosen)
        ids = self._wording.prompt(prompt)
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
            spans: spans of tokens; :class:`Candidate` says more of this and what follows.
            replacement: what comes in the only span's place.
            replacements: what comes in each span's place.
            characters: the spans as places in the text instead.
            mode: what is done with blocks behind a span.
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
        base = self._known(run)
        wanted = Candidate(
            spans,
            replacement,
            replacements=replacements,
            characters=characters,
            mode=mode,
            disagreement=disagreement,
            options=options,
            seed=seed,
        )
        task = EditTask(self.model.spec, self._wording, base, wanted, callback)
        context = self.model.context(task.rows, self._kept(base))
        made = task.run(context)
        if record:
            self.keep(made, context.keys_values())
        return made

    def edit_many(
        self, run: Generation | str, candidates: Sequence[Candidate], *, record: bool = True
    ) -> list[Generation]:
        """Several edits of one text at once, each as :meth:`edit` makes it alone.

        Every candidate goes its own way; reads that are due at the same time are made as one.

        Args:
            run: the base, or its id.
            candidates: the edits.
            record: whether to keep what further edits need.

        Raises:
            FeedError, RegionError, RunError, SamplingError: see :meth:`edit`; nothing is made then.
        """
        base = self._known(run)
        together = Together(self.model, self._wording, record=record)
        return self._keep_all(together.edits(base, self._kept(base), candidates))

    def generate_many(
        self,
        prompts: Sequence[Prompt],
        length: int,
        *,
        options: SamplerOptions | str = QUALITY,
        seeds: Sequence[int] | None = None,
        record: bool = True,
    ) -> list[Generation]:
        """Several prompts with an answer each, all at once; each as :meth:`generate` makes it alone.

        Args:
            prompts: texts, or token ids.
            length: the most new tokens of each.
            options: how to sample, or the name of a preset.
            seeds: a seed for each of them; ``None`` means 0 for all.
            record: whether to keep keys and values for edits.

        Raises:
            FeedError, NonFiniteError, SamplingError: see :meth:`generate`; nothing is made then. Also if there are
                not as many seeds as prompts.
        """
        chosen = chosen_options(options)
        given = [0] * len(prompts) if seeds is None else [checked_seed(seed) for seed in seeds]
        if len(given) != len(prompts):
            raise SamplingError(f"Expected one seed for each of {len(prompts)} prompts, got {len(given)}.")
        _check_cached(chosen)
        sampler = BlockDiffusionSampler(self.model.spec, chosen)
        ids = [self._wording.prompt(prompt) for prompt in prompts]
        together = Together(self.model, self._wording, record=record)
        return self._keep_all(together.generations(sampler, ids, length, given))

    def tokens_of(self, text: Prompt) -> Tokens:
        """The tokens of a text, or ids checked.

        Raises:
            FeedError: see :meth:`generate`; or there is no tokenizer for a text.
        """
        return self._wording.tokens(text, "the text")


def _check_cached(options: SamplerOptions) -> None:
    if options.window is Window.ALL:
        raise SamplingError(
            "Expected cache=False with Window.ALL: earlier blocks see later ones, so their keys and values change. "
            "Ask for Window.BLOCKS, or go without a cache."
        )
