"""Compares a decoder's graphs with the reference and with each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.errors import VerificationError
from retouch.export.decoder._graph import zeros
from retouch.export.decoder._reference import reference_logits
from retouch.export.decoder._rows_checks import check_rows, relative_error
from retouch.export.decoder._rows_graph import RowsKind
from retouch.export.decoder._weights import DecoderWeights
from retouch.export.verify.runner import Runner

__all__ = ["check_graphs"]

_TOLERANCE = 1e-4
_BLOCKS = 3

Array = NDArray[Any]


def check_graphs(spec: DecoderSpec, weights: DecoderWeights, folder: Path) -> dict[str, float]:
    """The largest error of every check, relative to the largest logit.

    Raises:
        VerificationError: one is above the tolerance.
    """
    ids = np.random.default_rng(0).integers(0, spec.vocabulary, min(_BLOCKS * spec.block, spec.positions))
    causal, full = (reference_logits(spec, weights, ids, block) for block in (spec.block, spec.positions))
    whole = Runner.open(folder / "full.onnx")
    errors = {
        "block-causal": relative_error(spec, _run_full(whole, ids, spec.block), causal),
        "full attention": relative_error(spec, _run_full(whole, ids, spec.positions), full),
    }
    del whole
    if spec.block_causal:
        errors |= _check_decode(spec, folder, ids, causal)
    for kind in RowsKind:
        errors |= check_rows(spec, weights, Runner.open(folder / f"{kind.value}.onnx"), kind, ids, full)
    _judge(errors)
    return errors


def _check_decode(spec: DecoderSpec, folder: Path, ids: Array, causal: Array) -> dict[str, float]:
    errors = {}
    cached = _Cached(Runner.open(folder / "decode.onnx"), spec, len(ids))
    cut = (len(ids) - 1) // spec.block * spec.block
    if cut:  # a model of one block has nothing before it
        errors["prefill"] = relative_error(spec, cached.run(ids[:cut], 0), causal[:cut])
    cached.run(np.full(len(ids) - cut, spec.mask_id), cut)  # what the next run has to replace
    errors["decode"] = relative_error(spec, cached.run(ids[cut:], cut), causal[cut:])
    return errors


class _Cached:
    def __init__(self, runner: Runner, spec: DecoderSpec, rows: int) -> None:
        self._runner, self._block = runner, spec.block
        self._kept: dict[str, Array] = zeros(spec, rows)

    def run(self, ids: Array, start: int) -> Array:
        tokens = _tokens(ids, start)
        numbers = {"valid": start + len(ids), "block": self._block}
        feeds = {name: np.array([value], np.int64) for name, value in numbers.items()}
        results = self._runner.run({**tokens, "write_index": tokens["positions"], **feeds, **self._kept})
        self._kept = {name: results[f"{name}.next"] for name in self._kept}
        logits: Array = results["logits"][0]
        return logits


def _run_full(runner: Runner, ids: Array, block: int) -> Array:
    logits: Array = runner.run({**_tokens(ids, 0), "block": np.array([block], np.int64)})["logits"][0]
    return logits


def _tokens(ids: Array, start: int) -> dict[str, Array]:
    return {"ids": ids[None].astype(np.int64), "positions": np.arange(start, start + len(ids))[None]}


def _judge(errors: Mapping[str, float]) -> None:
    for name, error in errors.items():
        if not error <= _TOLERANCE:
            raise VerificationError(
                f"Expected the check {name} to be within {_TOLERANCE} of the reference, got {error:.1e}. The weights "
                "may hold NaN or be too large for single precision; nothing was written."
            )
