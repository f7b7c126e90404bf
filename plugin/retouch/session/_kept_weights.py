"""What edits err whose weights are kept as shorter numbers."""

from __future__ import annotations

from retouch.bundle import Manifest
from retouch.engines.ort import WeightStorage


def weights_check(weights: WeightStorage) -> str:
    """The name under which a manifest's verification has the error of a storage."""
    return f"weights.{weights}"


def weights_error(manifest: Manifest, weights: WeightStorage) -> float | None:
    """The largest error of edits with weights in that storage, as a share of the output's scale.

    ``None`` where it was not measured.
    """
    return 0.0 if weights is WeightStorage.FLOAT32 else manifest.verification.get(weights_check(weights))
