"""Weights of language models on Retouch's kernels, as they are and as shorter numbers."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.bundle import TextBundle
from retouch.errors import EngineMissingError, RetouchError
from retouch.ort_ep import register
from retouch.text import TextModel


@pytest.mark.skipif(not register(), reason="Retouch's kernels are not there")
def test_kernels_multiply_tokens_by_weights(random_bundle: TextBundle) -> None:
    ids = np.arange(2, 40)
    plain = TextModel(random_bundle, ["CPUExecutionProvider"], threads=1).uncached(64).read(ids, 0)
    errors = []
    for weights in ("float32", "float16", "bfloat16"):
        ours = TextModel(random_bundle, threads=1, weights=weights).uncached(64).read(ids, 0)
        errors.append(float(np.abs(ours - plain).max() / np.abs(plain).max()))
    assert errors[0] < 1e-5 < errors[1] < 5e-3 and errors[1] < errors[2] < 5e-2
    with pytest.raises(RetouchError, match="'float32', 'float16', 'bfloat16'"):
        TextModel(random_bundle, weights="int4")
    with pytest.raises(EngineMissingError, match="Stock kernels take them as float32"):
        TextModel(random_bundle, ["CPUExecutionProvider"], weights="float16").uncached(64).read(ids, 0)
