"""The smallest manifest that is one, and a bundle of files that hold no graphs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from retouch.bundle import (
    Bundle,
    BundleWriter,
    EditableSpec,
    EditGraphSpec,
    GridSpec,
    Manifest,
    ModelSpec,
    NeighbourhoodSpec,
    OutputSpec,
    StackSpec,
    TensorSpec,
)

MANIFEST = Manifest(
    producer="test",
    model=ModelSpec("m", "0" * 64, 18, 4),
    editable=EditableSpec("x", (2, 3), "g2x2"),
    inputs=(TensorSpec("x", "float32", (1, 1, 2, 2)),),
    outputs=(OutputSpec(TensorSpec("y", "float32", (1, 1, 2, 2)), "g2x2", (2, 3)),),
    grids=(GridSpec("g2x2", (2, 2), "x"),),
    neighbourhoods=(NeighbourhoodSpec("n", "g2x2", "g2x2", (((0,), (1,)), ((0,), (1,))), None, (1, 1)),),
    cacheables=(),
    edits={"cached": EditGraphSpec("edit.onnx", None, (), (), (), (), ("g2x2",), (), ())},
    plan=(),
    stacked={"cached": StackSpec(reason="it is the smallest")},
)
FILES = {"base.onnx": b"graph", "edit.onnx": b"graph of edits", "weights.bin": bytes(range(256)) * 64}


def write(path: Path, manifest: Manifest = MANIFEST, files: Mapping[str, bytes] = FILES) -> Bundle:
    with BundleWriter(path) as writer:
        for name, content in files.items():
            (writer.path / name).write_bytes(content)
        writer.finish(manifest)
    return Bundle.open(path)
