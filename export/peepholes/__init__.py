"""Local simplifications of an edit graph before it is split and saved."""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.node_builder import NodeBuilder

__all__ = ["apply_peepholes"]


def apply_peepholes(builder: NodeBuilder, outputs: list[ir.Value]) -> None:
    """Applies all peepholes in place."""
