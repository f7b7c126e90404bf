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
from retouch.text._options import SamplerOptions, Window, check_share, checked_seed, chosen_options
from retouch.text._reader import Reader
from retouch.text._sampler import BlockDiffusionSampler
from retouch.text._spans import Replacement, put_in
from retouch.text._step import Callback
from retouch.text._wording import Pairs, Wording


@dataclass(frozen=True)
class Candidate:
    """An edit of a text as it is asked for.

    Attributes:
        spans: spans of tokens, counted from the prompt's first: first token, and the token behind the last one.
        replacement: what comes in the only span's place: as many tokens of the model's choice (``None``), another
            number of them (:class:`Masks`), a text, or ids.
        replacements: the same for each of several spans.
        characters: the spans as places in the text instead. A token that a place is inside of belongs to the span; a
            text that replaces it keeps the characters that do not.
        mode: what is done with blocks behind a span. Spans that change the text's length move what follows, which then
            is read again in every mode.
        disagreement: ``VERIFY`` chooses tokens anew where another has a confidence above this.
        options: how to sample; ``None`` means as the base. Edits settle blocks one by one, whatever ``multi_block`` is.
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
        check_share("disagreement", wanted.disagreement)
        plan = Plan(wanted.mode, wanted.disagreement, seed, callback)
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
