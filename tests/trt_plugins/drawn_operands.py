"""Random operands of the kernels, and how close results have to be."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from tests.trt_plugins.host_kernels import DTYPES

TOLERANCE = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.2e-2}
FEW = settings(max_examples=25, deadline=None)
TYPE = st.sampled_from(sorted(DTYPES))


def drawn(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return generator.standard_normal(shape).astype(DTYPES[dtype])


def close(got: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = np.abs(got.astype(np.float64) - expected).max(initial=0.0)
    assert error <= TOLERANCE[dtype] * scale, f"{dtype}: {error} of {scale}"


def table(
    generator: np.random.Generator, active: int, cached: int, halo: int, row: tuple[int, ...], dtype: str
) -> dict[str, np.ndarray]:
    return {
        "rows": drawn(generator, (active, *row), dtype),
        "cached": drawn(generator, (cached, *row), dtype),
        "halo": generator.permutation(cached)[:halo].astype(np.int64),
        "pad": np.zeros((1, *row), DTYPES[dtype]),
    }


def activated(x: np.ndarray, activation: str) -> np.ndarray:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return {
        "": x,
        "Silu": x / (1 + np.exp(-x)),
        "Gelu": 0.5 * x * (1 + erf(x / math.sqrt(2))) if x.size else x,
        "TanhGelu": 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    }[activation]
