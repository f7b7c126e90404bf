"""The small UNet exported for several batches, and edits of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from retouch import EditSession, Region
from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx

SMALL = Region.from_boxes([(3, 3, 6, 6)], shape=(16, 16), policy="exact")


def exported(model: Path, folder: Path, batch: int, share: Path | None = None, precision: str | None = None) -> Bundle:
    """The model's bundle for a batch, its weights in another one's file if there is one to share."""
    changed = onnx.load(model)
    for value in (changed.graph.input[0], changed.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    path = folder / f"batch{batch}.onnx"
    onnx.save(changed, path)
    options = ExportOptions(editable="x", min_coverage=0.0, share=share, precision=precision, verify=False)
    return export_onnx(path, folder / f"batch{batch}", options)


def edits(session: EditSession, batch: int, dtype: str = "float32") -> list[np.ndarray]:
    """A base run, an edit of it, its states, and an edit of what it commits."""
    x = np.random.default_rng(batch).standard_normal((batch, 4, 16, 16)).astype(dtype)
    run = session.base({"x": x, "step": np.full(1, 0.5, dtype)})
    edit = session.edit(run, {"x": x + np.asarray(1, dtype)}, region=SMALL, record=True, fallback=False)
    committed = edit.commit()
    later = session.edit(committed, {"step": np.full(1, 0.25, dtype)}, region=SMALL, fallback=False)
    states = [committed.states[name].numpy() for name in sorted(committed.states)]
    return [run.outputs["y"], edit.outputs["y"], later.outputs["y"], *states]
