"""An edit as it is asked for, and what is made of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

from retouch.bundle import DecoderSpec
from retouch.errors import SamplingError
from retouch.text._edit import EditMode, Plan, Revision
from retouch.text._generation import Generation, new_id, read_only
from retouch.text._model import Context
from retouch.text._options import SamplerOptions, Window, checked_seed, checked_share, chosen_options
from retouch.text._reader import Reader
from retouch.text._sampler import BlockDiffusionSampler, Callback
from retouch.text._spans import Replacement, put_in
from retouch.text._wording import Pairs, Wording


@dataclass(frozen=True)
class Candidate:
    """An edit of a text, one of several that are made at once; :meth:`TextSession.edit` says what its members mean.

    Attributes:
        spans: spans of tokens.
        replacement: what comes in the only span's place.
        replacements: what comes in each span's place.
        characters: the spans as places in the text instead.
        mode: what is done with blocks behind a span.
        disagreement: ``VERIFY`` chooses tokens anew where another has a confidence above this.
        options: how to sample; ``None`` means as the base.
        seed: seed of what is drawn; ``None`` means the base's.
    """

    spans: Pairs | None = None
    replacement: Replacement = None
    _: KW_ONLY
    replacements: Sequence[Replacement] | None = None
    characters: Pairs | None = None
    mode: EditMode = EditMode.EXACT
    disagreement: float = 0.9
    options: SamplerOptions | str | None = None
    seed: int | None = None


class EditTask:
    """An edit that was checked, and waits for a context.

    Attributes:
        rows: how many tokens the context has to hold.
    """

    def __init__(
        self, spec: DecoderSpec, wording: Wording, base: Generation, wanted: Candidate, callback: Callback | None = None
    ) -> None:
        """Checks the edit.

        Raises:
            FeedError, RegionError, SamplingError: see :meth:`TextSession.edit`.
        """
        chosen = base.options if wanted.options is None else chosen_options(wanted.options)
        seed = base.seed if wanted.seed is None else checked_seed(wanted.seed)
        plan = Plan(wanted.mode, checked_share("disagreement", wanted.disagreement), seed, callback)
        if chosen.window is not Window.BLOCKS:
            raise SamplingError("Expected Window.BLOCKS for an edit: it uses keys and values of earlier blocks.")
        self._changes = wording.patches(base, wanted.spans, wanted.characters, wanted.replacement, wanted.replacements)
        self._draft = put_in(base.padded, len(base.tokens), base.prompt_tokens, self._changes, spec)
        self._reason = "as asked for"
        if self._draft.moved_from is not None and wanted.mode is EditMode.FROZEN:
            plan, self._reason = replace(plan, mode=EditMode.EXACT), "the text behind a span moved"
        self._sampler = BlockDiffusionSampler(spec, chosen)
        self._wording, self._base, self._plan = wording, base, plan
        self.rows = len(self._draft.tokens)

    def run(self, context: Context) -> Generation:
        """The edited text. The context holds keys and values of the base, and then those of what comes of it."""
        started, draft = time.perf_counter(), self._draft
        revision = Revision(self._sampler, Reader(context), draft, self._plan)
        revision.run()
        tokens, padded = read_only(revision.tokens[: draft.length]), read_only(revision.tokens)
        report = revision.report(self._base.tokens, self._changes, self._reason, time.perf_counter() - started)
        return Generation(
            new_id(),
            tokens,
            draft.prompt_tokens,
            self._wording.text(tokens),
            self._sampler.options,
            self._plan.seed,
            report,
            base=self._base,
            padded=padded,
        )
