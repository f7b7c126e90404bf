"""Several edits in one run of a model that computes both branches of classifier-free guidance as a batch of two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retouch import EditRequest, EditSession, Region
from retouch.calibrate import sample_feeds
from retouch.models import Sizes, TorchOptions, export_torch
from retouch.ort_ep import register
from retouch.session import GroupNormMode

MODES: tuple[GroupNormMode, ...] = ("cached", "corrected")
KERNELS = {"cached": {"StackedAttention"}, "corrected": {"StackedAttention", "BatchStackedGroupNorm"}}


def test_edits_of_a_batch_share_a_run(tiny: Any, tmp_path: Path) -> None:
    bundle = export_torch(tiny("sd15"), tmp_path / "bundle", TorchOptions(sizes=Sizes(batch=2)))
    manifest = bundle.manifest
    editable, dims = manifest.editable.input, manifest.grid(manifest.editable.grid).dims
    masks = [np.zeros(dims, bool) for _ in range(3)]
    for place, mask in enumerate(masks):
        mask[place + 1, place : place + 2] = True
    requests = [
        EditRequest(Region.from_mask(mask, "exact"), {editable: sample_feeds(manifest, seed=seed)[editable]})
        for seed, mask in enumerate(masks, start=1)
    ]
    for mode in MODES:
        with EditSession(bundle, threads=1, group_norm=mode) as session:
            run = session.base(sample_feeds(manifest))
            together = session.edit_many(run, requests)
            assert [result.report.stacked for result in together] == [3] * 3
            for request, result in zip(requests, together, strict=True):
                alone = session.edit(run, request.feeds, region=request.region, fallback=False)
                for output, expected in alone.outputs.items():
                    scale = float(np.abs(expected).max())
                    np.testing.assert_allclose(result.outputs[output], expected, atol=5e-6 * scale)
            if register():
                taken = "\n".join(together[0].report.kernels)
                assert all(kernel in taken for kernel in KERNELS[mode]), taken
