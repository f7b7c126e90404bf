"""Texts of models in which all tokens see each other, filled block after block."""

from __future__ import annotations

import time

import numpy as np

from retouch.errors import SamplingError
from retouch.text._generation import read_only
from retouch.text._model import TextModel, Tokens
from retouch.text._options import check_count
from retouch.text._step import Callback, Step
from retouch.text._wording import Prompt, Wording
from retouch.text.full_attention._denoising import Denoising, Reading
from retouch.text.full_attention._filled import FilledText, RowsReport
from retouch.text.full_attention._no_cache import NoCache
from retouch.text.full_attention._policy import CachePolicy
from retouch.text.full_attention._unmask import Measure, UnmaskOptions, likeliest, surest
from retouch.tokens import Tokenizer


class FullAttentionSampler:
    """Fills texts as LLaDA and Dream do: greedily, block after block, the surest masks of a block first.

    Example:
        >>> sampler = FullAttentionSampler(TextModel("llada.bundle"), BlockCache(Kept.DUAL))
        >>> made = sampler.generate(prompt_ids, 128)
        >>> print(made.report)
    """

    def __init__(
        self,
        model: TextModel,
        policy: CachePolicy | None = None,
        options: UnmaskOptions | None = None,
        *,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        """Loads nothing yet.

        Args:
            model: the model; one with causal blocks works as well, and sees everything here.
            policy: which rows forwards compute; ``None`` means all, without a cache.
            options: how masks are set.
            tokenizer: a tokenizer that fits the model; ``None`` means the bundle's own, if it has one.

        Raises:
            FeedError: the tokenizer has other ids than the model.
        """
        self.policy: CachePolicy = NoCache() if policy is None else policy
        self.options = UnmaskOptions() if options is None else options
        self.model = model
        self._wording = Wording(model.spec, model.own_tokenizer if tokenizer is None else tokenizer)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, if there is one."""
        return self._wording.tokenizer

    def generate(
        self, prompt: Prompt, length: int, *, audit: bool = False, callback: Callback | None = None
    ) -> FilledText:
        """A prompt with so many tokens of answer. What is kept meanwhile belongs to this call alone.

        Args:
            prompt: a text, or token ids.
            length: new tokens.
            audit: whether to run the model itself beside every forward and report how far the cache is from it. Takes
                at least the time that the cache saves; the text stays the same.
            callback: called after every change.

        Raises:
            FeedError: the prompt is empty, or holds the mask, or ids or characters that the model does not have.
            SamplingError: the text would be longer than the model's longest, or the policy does not fit the model.
        """
        started = time.perf_counter()
        ids = self.tokens_of(prompt)
        denoising = self.begin(ids, length, audit=audit)
        end, revised = self.fill(denoising, callback)
        tokens = read_only(denoising.tokens[:end])
        seconds, errors = time.perf_counter() - started, None
        if denoising.audit is not None:
            seconds, errors = seconds - denoising.audit.seconds, denoising.audit.errors()
        report = RowsReport.of(denoising.tally, end - len(ids), revised, seconds, errors)
        return FilledText(tokens, len(ids), self._wording.text(tokens), report)

    def tokens_of(self, prompt: Prompt) -> Tokens:
        """The tokens of a prompt.

        Raises:
            FeedError: see :meth:`generate`.
        """
        return self._wording.prompt(prompt)

    def begin(self, prompt: Tokens, length: int, *, audit: bool = False) -> Denoising:
        """A text of masks behind a prompt, for callers that set tokens themselves.

        Args:
            prompt: the prompt's tokens.
            length: masks behind it.
            audit: see :meth:`generate`.

        Raises:
            SamplingError: see :meth:`generate`.
        """
        spec = self.model.spec
        check_count("the number of new tokens", length, 1)
        if len(prompt) + length > spec.positions:
            raise SamplingError(
                f"Expected at most {spec.positions} tokens of prompt and answer together, got {len(prompt)} + "
                f"{length}. Ask for fewer, or shorten the prompt."
            )
        tokens = np.concatenate((prompt, np.full(length, spec.mask_id)))
        return Denoising(self.model, self.policy, tokens, len(prompt), audit=audit)

    def fill(self, denoising: Denoising, callback: Callback | None = None) -> tuple[int, int]:
        """Fills a text that :meth:`begin` gave; where it ends, and how many tokens were revised.

        Args:
            denoising: the text.
            callback: called after every change.
        """
        spec, revised, prompt, told = self.model.spec, 0, denoising.prompt, callback or (lambda _: None)
        size = self.options.block or spec.block
        for low in range(prompt, len(denoising.tokens), size):
            block = (low, min(low + size, len(denoising.tokens)))
            revised += self._fill_block(denoising, block, told)
            ends = np.flatnonzero(denoising.tokens[prompt : block[1]] == spec.eos_id)
            if self.options.stop_at_end and ends.size:
                return prompt + int(ends[0]) + 1, revised
        return len(denoising.tokens), revised

    def _fill_block(self, denoising: Denoising, block: tuple[int, int], told: Callback) -> int:
        masks, step, revised = block[1] - block[0], 0, 0
        while (masked := denoising.masked[block[0] : block[1]]).any():
            positions = block[0] + np.flatnonzero(masked)
            reading = denoising.read(block, positions)
            tokens, confidence = likeliest(reading.logits, self.model.spec.mask_id, self.options.measure)
            places = surest(confidence, self.options, self.options.transfers(step, masks))
            replaced, by = self._revisions(denoising, reading)
            denoising.set(np.concatenate((positions[places], replaced)), np.concatenate((tokens[places], by)))
            told(_step(denoising.tokens, positions[places], replaced))
            revised, step = revised + len(replaced), step + 1
        return revised

    def _revisions(self, denoising: Denoising, reading: Reading) -> tuple[Tokens, Tokens]:
        """Positions of tokens to replace, and what by."""
        if not len(reading.revisable):
            return reading.revisable, reading.revisable
        tokens, confidence = likeliest(reading.revised_logits, self.model.spec.mask_id, Measure.PROBABILITY)
        differs = (tokens != denoising.tokens[reading.revisable]) & (confidence > np.float32(reading.revise))
        return reading.revisable[differs], tokens[differs]


def _step(tokens: Tokens, filled: Tokens, edited: Tokens) -> Step:
    every = np.arange(len(tokens))
    return Step(0, tokens.copy(), np.isin(every, filled), np.isin(every, edited))
