"""Compares the graphs of chosen rows with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.export.decoder._graph import zeros
from retouch.export.decoder._reference import reference_rows
from retouch.export.decoder._rows_graph import RowsKind
from retouch.export.decoder._weights import DecoderWeights
from retouch.export.verify.runner import Runner

__all__ = ["check_rows", "relative_error"]

_KEEP = 0.25

Array = NDArray[Any]


def check_rows(
    spec: DecoderSpec, weights: DecoderWeights, runner: Runner, kind: RowsKind, ids: Array, full: Array
) -> dict[str, float]:
    """The errors of computing all rows, and of computing others in every layer afterwards, for other tokens.

    Args:
        spec: the model's shape.
        weights: its weights.
        runner: runs the graph.
        kind: which rows it computes.
        ids: tokens [N].
        full: their logits with full attention [N, vocabulary].
    """
    count, draw = len(ids), np.random.default_rng(1)
    every = np.arange(count)
    states = zeros(spec, count) | {f"added.{n}": np.zeros((count, spec.hidden), np.float32) for n in range(spec.layers)}
    results = runner.run(_feeds(spec, ids, [every] * spec.layers, every, 0) | states)
    states = {name: results[f"{name}.next"] for name in states}
    errors = {f"{kind.value}, all": relative_error(spec, results["logits"][0], full)}
    changed = np.where(draw.random(count) < 0.3, draw.integers(0, spec.vocabulary, count), ids)
    rows = [np.sort(draw.permutation(count)[: max(1, count // 4)]) for _ in range(spec.layers)]
    context = every if kind is RowsKind.CHOSEN else np.sort(draw.permutation(count)[: max(1, count // 2)])
    keep = _KEEP if kind is RowsKind.FOCUS else 0.0
    wanted = reference_rows(spec, weights, changed, states, rows, context, keep)
    results = runner.run(_feeds(spec, changed, rows, context, keep) | states)
    return {**errors, f"{kind.value}, some": relative_error(spec, results["logits"][0], wanted)}


def relative_error(spec: DecoderSpec, got: Array, wanted: Array) -> float:
    """The largest error of logits [N, vocabulary], relative to the largest logit.

    Where two experts are nearly equal, rounding decides which one a token uses, and its logits differ for a reason. So
    of models with experts the error counts that three quarters of the tokens stay within.
    """
    by_token = np.sort(np.abs(got - wanted).max(-1))
    if not np.isfinite(by_token).all():
        return float("inf")
    place = len(by_token) - 1 if spec.experts is None else (len(by_token) - 1) * 3 // 4
    return float(by_token[place] / np.abs(wanted).max())


def _feeds(spec: DecoderSpec, ids: Array, rows: list[Array], context: Array, keep: float) -> dict[str, Array]:
    return {
        "ids": ids[None].astype(np.int64),
        "wanted": np.arange(len(ids)),
        "candidates": np.zeros(0, np.int64),
        "count": np.zeros(1, np.int64),
        "context": context,
        "keep": np.array([keep], np.float32),
        **{f"rows.{layer}": rows[layer] for layer in range(spec.layers)},
    }
