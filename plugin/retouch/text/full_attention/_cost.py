"""What computing rows costs, in floating-point operations."""

from __future__ import annotations

from dataclasses import dataclass

from retouch.bundle import DecoderSpec


@dataclass(frozen=True)
class RowCost:
    """The price of rows of a model; a multiplication and an addition count as two operations."""

    spec: DecoderSpec

    def row(self, layer: int, seen: int) -> int:
        """One row of a layer that sees so many rows."""
        spec = self.spec
        heads = (2 * spec.heads + 2 * spec.kv_heads) * spec.head_dim * spec.hidden
        return 2 * (heads + self._feed_forward(layer)) + 4 * spec.heads * spec.head_dim * seen

    def values(self) -> int:
        """The values of one row of a layer, computed to see how much they changed."""
        return 2 * self.spec.hidden * self.spec.kv_heads * self.spec.head_dim

    def logits(self) -> int:
        """The logits of one row."""
        return 2 * self.spec.hidden * self.spec.vocabulary

    def full(self, rows: int, logits: int) -> int:
        """All rows of a text, and the logits of some."""
        return sum(rows * self.row(layer, rows) for layer in range(self.spec.layers)) + logits * self.logits()

    def _feed_forward(self, layer: int) -> int:
        spec = self.spec
        if spec.experts is None or not spec.has_experts(layer):
            return 3 * spec.hidden * spec.intermediate
        experts = spec.experts
        return spec.hidden * (3 * (experts.used * experts.width + experts.shared_width) + experts.count)
