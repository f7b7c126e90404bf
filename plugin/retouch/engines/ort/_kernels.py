"""Which nodes of a session run on Retouch's own kernels."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from retouch.ort_ep import PROVIDER

if TYPE_CHECKING:
    import onnxruntime

RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"
"""The entry of a session's configuration without which onnxruntime forgets what it assigned."""


def kernels_of(session: onnxruntime.InferenceSession) -> dict[str, int]:
    """The number of nodes per operator that Retouch's kernels took."""
    parts = [part for part in session.get_provider_graph_assignment_info() if part.ep_name == PROVIDER]
    return dict(sorted(Counter(node.op_type for part in parts for node in part.get_nodes()).items()))
