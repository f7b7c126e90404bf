"""Rotary position embeddings with cached cosines and sines."""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.decompose._pass import Fused, decomposition

__all__: list[str] = []


@decomposition("RotaryEmbedding")
def _rotary(fused: Fused) -> ir.Value:
    """Su et al., RoFormer, 2021: pairs of channels turned by an angle that grows with the position.

    The input is [B, H, S, D], or [B, S, H * D] with the number of heads as an attribute; caches are [positions, D / 2].
    """
    x, positions, heads = fused.required(0), fused.required(1), fused.integer("num_heads")
    rank = fused.rank(x)
    if fused.integer("rotary_embedding_dim"):
        raise fused.error("it turns a part of the channels only")
    if fused.integer("is_packed_batching") or rank not in (3, 4) or (rank == 3 and not heads):
        raise fused.error("its batches are packed, or its rank and number of heads are not known")
    if rank == 3:
        split = fused.op("Reshape", x, fused.ints(0, 0, heads, -1))
        turned = _turned(fused, split, _angles(fused, positions, axis=2))
        return fused.op("Reshape", turned, fused.op("Shape", x))
    return _turned(fused, x, _angles(fused, positions, axis=1))


def _angles(fused: Fused, positions: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    """Cosines and sines [B, S, D / 2] of the positions, with an axis for the heads."""
    if fused.rank(positions) != 2:
        raise fused.error("its positions are not given as [batch, length]")
    cosines, sines = (fused.op("Gather", fused.required(index), positions, axis=0) for index in (2, 3))
    return fused.op("Unsqueeze", cosines, fused.ints(axis)), fused.op("Unsqueeze", sines, fused.ints(axis))


def _turned(fused: Fused, x: ir.Value, angles: tuple[ir.Value, ir.Value]) -> ir.Value:
    if fused.integer("interleaved"):
        raise fused.error("its pairs are interleaved")
    cosines, sines = angles
    first, second = fused.tape.op_multi_out("Split", [x], {"axis": -1, "num_outputs": 2}, num_outputs=2)
    real = fused.op("Sub", fused.op("Mul", first, cosines), fused.op("Mul", second, sines))
    imaginary = fused.op("Add", fused.op("Mul", first, sines), fused.op("Mul", second, cosines))
    return fused.op("Concat", real, imaginary, axis=-1)
