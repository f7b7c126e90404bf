"""Several finished blocks edited together, so that earlier ones may follow from later ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from retouch.text._choice import choose
from retouch.text._model import Logits, Tokens
from retouch.text._options import MaskChoice, SamplerOptions
from retouch.text._settle import Tally
from retouch.text._step import Mask


@dataclass(frozen=True, eq=False)
class GroupTask:
    """Blocks without masks to edit together.

    Attributes:
        tokens: their tokens [N].
        fixed: which of them must stay [N].
        read: gives the logits [N, vocabulary] for tokens [N] that all see each other.
        draw: gives what a step is drawn from.
        told: called with tokens and edited positions after every change.
    """

    tokens: Tokens
    fixed: Mask
    read: Callable[[Tokens], Logits]
    draw: Callable[[int], np.random.Generator]
    told: Callable[[Tokens, Mask], None]


def edit_group(task: GroupTask, options: SamplerOptions, mask_id: int, tally: Tally) -> Tokens:
    """The tokens after as many reads as change something, at most ``max_post_steps``.

    LLaDA2.1's report (arXiv 2602.08676) says that earlier blocks are revised once later ones are decoded, and no more;
    no code of it is public. Here a read lets a group of blocks see each other, and tokens are replaced by the rule for
    single blocks. Edits that lead back to where the group was, or that a token sees more often than ``patience``, end
    it.
    """
    options = replace(options, mask_choice=MaskChoice.EXCLUDED)
    assert options.edit_threshold is not None
    tokens, seen, edits = task.tokens, {task.tokens.tobytes()}, np.zeros(len(task.tokens), np.int64)
    for step in range(options.max_post_steps):
        tally.forwards += 1
        draw = None if options.greedy else task.draw(step)
        choice = choose(task.read(tokens), tokens, options, mask_id, draw)
        sure = choice.confidence > np.float32(options.edit_threshold)
        edited = ~task.fixed & sure & (choice.tokens != tokens)
        if not edited.any():
            return tokens
        tokens = np.where(edited, choice.tokens, tokens)
        tally.edited += int(edited.sum())
        task.told(tokens, edited)
        edits += edited
        circles = tokens.tobytes() in seen if options.greedy else bool(edits.max() > options.patience)
        if circles:
            tally.oscillations += 1
            return tokens
        seen.add(tokens.tobytes())
    tally.exhausted += 1
    return tokens
