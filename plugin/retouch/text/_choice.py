"""The model's choice at every position, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retouch.errors import NonFiniteError
from retouch.text._model import Logits, Tokens
from retouch.text._options import MaskChoice, SamplerOptions


@dataclass(frozen=True, eq=False)
class Choice:
    """What a read of a block led to.

    Attributes:
        tokens: the chosen token of every position [B].
        confidence: its probability [B].
        masks: at how many of the positions that were asked for the mask was the likeliest token.
    """

    tokens: Tokens
    confidence: NDArray[np.float32]
    masks: int


def choose(
    logits: Logits, block: Tokens, options: SamplerOptions, mask_id: int, draw: np.random.Generator | None
) -> Choice:
    """The choice at every position of a block.

    Greedily, the likeliest token and its probability. With a temperature, tokens are drawn by inverting the cumulated
    distribution, after scaling, top-k and top-p in this order, and the confidence is the probability that they were
    drawn with.

    Args:
        logits: of the block [B, vocabulary].
        block: the tokens that the model saw [B].
        options: how to choose.
        mask_id: id of the mask.
        draw: what is drawn from; ``None`` if nothing is.

    Raises:
        NonFiniteError: a logit is NaN, or all of a position's are infinite.
    """
    scores = logits if options.stutter_penalty == 0 else _penalised(logits, block, options.stutter_penalty)
    others = scores.copy()
    others[:, mask_id] = -np.inf
    masks = int(np.count_nonzero((scores[:, mask_id] > others.max(-1)) & (block == mask_id)))
    if options.mask_choice is MaskChoice.EXCLUDED:
        scores = others
    if draw is None:
        tokens = scores.argmax(-1)
        # The likeliest token's share of the exponentials: its own is 1.
        confidence = 1 / np.exp(scores - scores.max(-1, keepdims=True)).sum(-1)
    else:
        shares = _softmax(_filtered(scores / np.float32(options.temperature), options))
        tokens = _drawn(shares, draw)
        confidence = shares[np.arange(len(shares)), tokens]
    if not np.isfinite(confidence).all():
        position = int(np.flatnonzero(~np.isfinite(confidence))[0])
        raise NonFiniteError(
            f"The model's logits at position {position} of the block hold NaN or infinity. Check its weights, or "
            "export it in single precision."
        )
    return Choice(tokens, confidence, masks)


def _penalised(logits: Logits, block: Tokens, penalty: float) -> Logits:
    lowered = logits.copy()
    lowered[np.arange(1, len(block)), block[:-1]] -= np.float32(penalty)
    return lowered


def _filtered(scores: Logits, options: SamplerOptions) -> Logits:
    if options.top_k is not None and options.top_k < scores.shape[-1]:
        least = np.partition(scores, -options.top_k, axis=-1)[:, -options.top_k, None]
        scores = np.where(scores < least, np.float32(-np.inf), scores)
    if options.top_p is not None and options.top_p < 1:
        order = np.argsort(-scores, axis=-1, kind="stable")
        before = np.cumsum(np.take_along_axis(_softmax(scores), order, -1), -1)
        # A token stays if those before it do not have enough yet: the first one always does.
        beyond = np.concatenate((np.zeros_like(before[:, :1], dtype=bool), before[:, :-1] > options.top_p), -1)
        left_out = np.zeros_like(beyond)
        np.put_along_axis(left_out, order, beyond, -1)
        scores = np.where(left_out, np.float32(-np.inf), scores)
    return scores


def _drawn(shares: NDArray[np.float32], draw: np.random.Generator) -> Tokens:
    cumulated = np.cumsum(shares, -1, dtype=np.float64)
    # Scaled by the sum, which rounding leaves beside 1; a draw is below 1, so it never falls behind the last token.
    target = draw.random((len(shares), 1)) * cumulated[:, -1:]
    tokens: Tokens = (cumulated <= target).sum(-1)
    return tokens


def _softmax(scores: Logits) -> NDArray[np.float32]:
    shares: NDArray[np.float32] = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return shares
