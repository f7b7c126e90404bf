"""Tiny networks of kinds that no reference model has, exported by torch and edited through sessions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from retouch import EditSession, Region, RegionPolicy
from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx

Export = Callable[..., "Exported"]


@dataclass(frozen=True)
class Exported:
    """A verified bundle, the module that it came from, and an input."""

    bundle: Bundle
    module: torch.nn.Module
    feed: np.ndarray

    @property
    def heavy_and_dense(self) -> list[str]:
        """Nodes with FLOPs that every edit computes whole."""
        rows = self.bundle.manifest.plan
        return [f"{row.op} {row.node}: {row.reason}" for row in rows if row.plan == "densified" and row.flops]

    def full(self, feed: np.ndarray) -> np.ndarray:
        """What the module itself gives."""
        with torch.no_grad():
            return self.module(torch.from_numpy(feed)).numpy()


@pytest.fixture(scope="package")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Export:
    """Exports a module whose only input has a shape; its positions lie on all axes but the batch and one more."""

    def run(module: torch.nn.Module, shape: tuple[int, ...], axes: tuple[int, ...], opset: int = 18) -> Exported:
        path = tmp_path_factory.mktemp("network")
        feed = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module.eval(),
                (torch.from_numpy(feed),),
                input_names=["x"],
                opset_version=opset,
                dynamo=True,
                verbose=False,
            )
        assert program is not None
        program.save(str(path / "model.onnx"))
        bundle = export_onnx(path / "model.onnx", path / "bundle", ExportOptions(editable="x", axes=axes))
        return Exported(bundle, module, feed)

    return run


def assert_on_rows(network: Exported) -> None:
    """Nothing heavy is computed whole, and every check of the export is as close as small models are."""
    assert network.heavy_and_dense == []
    assert network.bundle.manifest.coverage >= 0.99
    for check, error in network.bundle.manifest.verification.items():
        assert error <= (2e-5 if check in ("all_rows", "original") else 5e-6), check


def assert_edits(network: Exported, box: tuple[int, ...], **options: Any) -> None:
    """Edits of a session: kept positions to the bit, and with all positions active what the module gives."""
    manifest, feed = network.bundle.manifest, network.feed
    dims = manifest.grid(manifest.editable.grid).dims
    region = Region.from_boxes([box], dims, RegionPolicy(dilation=1))
    changed = feed.copy()
    inside = np.broadcast_to(
        np.expand_dims(region.mask, [axis for axis in range(feed.ndim) if axis not in manifest.editable.axes]),
        feed.shape,
    )
    changed[inside] = np.random.default_rng(8).standard_normal(int(inside.sum())).astype(np.float32)
    with EditSession(network.bundle, threads=1, **options) as session:
        run = session.base({"x": feed})
        result = session.edit(run, {"x": changed}, region=region, fallback=False)
        (name,) = result.outputs
        base, got = run.outputs[name], result.outputs[name]
        kept = np.abs(got - base).max(axis=tuple(a for a in range(got.ndim) if a not in manifest.outputs[0].axes)) == 0
        active = region.active(manifest.grids, manifest.grid(manifest.editable.grid)).mask(manifest.outputs[0].grid)
        assert kept[~active].all()
        assert not kept[active].all()
        everything = session.edit(run, {"x": changed}, region=Region.full(dims), fallback=False)
        scale = np.abs(base).max()
        corrected = options.get("group_norm") == "corrected" or "corrected" not in manifest.edits
        if corrected:
            assert np.abs(everything.outputs[name] - network.full(changed)).max() <= 2e-5 * scale
        followed = session.edit(result.commit(), {"x": feed}, region=region, fallback=False)
        assert followed.report.active_rows
