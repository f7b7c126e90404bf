"""Random operands of every operator, by the names that they have in its function."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir

from retouch.export.ops import functions

OPSET = 18
ROWS, POSITIONS, HALO, SAMPLES, CHANNELS, COLUMNS, TAPS, GROUPS, HEADS = 7, 20, 5, 2, 6, 8, 4, 2, 2
INDICES = frozenset({"halo", "neighbours", "index", "grouping", "form", "owner", "edits", "runs", "row"})
ATTRIBUTES = {"transB": 0, "groups": GROUPS, "axis": 0, "end": 1}
CONSTANTS = frozenset({"weight", "form", "grouping", "runs", "row"})


def function_of(op: str) -> onnx.FunctionProto:
    """The function of an operator."""
    (found,) = functions(OPSET, [op])
    return ir.serde.serialize_function(found)


def attributes_of(function: onnx.FunctionProto) -> dict[str, int]:
    """Values for the attributes that a function takes."""
    return {name: ATTRIBUTES[name] for name in function.attribute}


def operands_of(op: str, names: list[str]) -> dict[str, np.ndarray]:
    """Operands that fit each other."""
    rng = np.random.default_rng(len(op))
    shapes = _shapes(op)
    indices = _indices(op, rng)
    made: dict[str, np.ndarray] = {}
    for name in names:
        if name in indices:
            made[name] = np.asarray(indices[name], np.int64)
        elif name == "moments":
            made[name] = (np.abs(rng.standard_normal(shapes[name])) + 1).astype(np.float32)
        else:
            made[name] = np.asarray(rng.standard_normal(shapes[name]), np.float32)
    return made


def _shapes(op: str) -> Mapping[str, tuple[int, ...]]:
    if "Attention" in op:
        kept = (POSITIONS, HEADS, CHANNELS // HEADS)
        flat = dict.fromkeys(("query", "key", "value"), (ROWS, CHANNELS))
        return {**flat, "cached_key": kept, "cached_value": kept, "bias": (ROWS, POSITIONS + ROWS), "scale": ()}
    sample = (SAMPLES,) if op.startswith("Batch") else ()
    row, own = (*sample, CHANNELS), CHANNELS if "Norm" in op or op.removeprefix("Batch").startswith("Rows") else COLUMNS
    if "Depthwise" in op:
        own = CHANNELS
    weights = {
        "DepthwiseEditConv": (TAPS, CHANNELS),
        "BatchDepthwiseEditConv": (TAPS, 1, CHANNELS),
        "RowLinear": (CHANNELS, COLUMNS),
        "GroupedEditConv": (COLUMNS, TAPS * CHANNELS // GROUPS),
    }
    weight = next(
        (shape for name, shape in weights.items() if name in op and name.startswith("Batch") == op.startswith("Batch")),
        None,
    )
    weight = weight or next((shape for name, shape in weights.items() if name in op), (COLUMNS, TAPS * CHANNELS))
    return {
        "rows": (ROWS, *row),
        "cached": (POSITIONS, *row),
        "pad": (1, *row),
        "value": (1, CHANNELS, POSITIONS),
        "weight": weight,
        "bias": (own,),
        "gate": (*sample, own),
        "residual": (ROWS, *sample, own),
        "factor": (own,),
        "shift": (*sample, own),
        "moments": (2, *(sample or (1,)), GROUPS),
        "share": (),
        "epsilon": (),
    }


def _indices(op: str, rng: np.random.Generator) -> Mapping[str, object]:
    chosen = rng.permutation(POSITIONS)[:ROWS]
    samples = SAMPLES if op.startswith("Batch") else 1
    return {
        "halo": rng.permutation(POSITIONS)[:HALO],
        "neighbours": rng.integers(0, ROWS + HALO + 1, (ROWS, TAPS)),
        "index": chosen[:, None] if op in ("MaskedMerge", "EditAttention") else chosen,
        "grouping": [samples, GROUPS, CHANNELS // GROUPS],
        "runs": [1, GROUPS, -1, POSITIONS],
        "row": [CHANNELS],
        "form": [-1, SAMPLES, COLUMNS],
        "owner": np.sort(rng.integers(0, 3, ROWS)),
        "edits": np.arange(3),
    }
