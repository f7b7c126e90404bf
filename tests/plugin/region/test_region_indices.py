"""Index inputs against a reference that visits every row and entry."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retouch.bundle import GridSpec, NeighbourhoodSpec
from retouch.errors import BundleError, RegionError
from retouch.region import (
    ActiveRows,
    AxisIndices,
    AxisWeights,
    Region,
    index_inputs,
    linear_axis,
    nearest_axis,
    transposed_axis,
    window_axis,
)

PAD = None
Axis = tuple[AxisIndices, AxisIndices | None, AxisWeights | None, int]
KINDS = ("window", "transposed", "nearest", "linear")


@st.composite
def axes(draw: st.DrawFn, kind: str, size_in: int, size_out: int) -> Axis:
    """Sources, taps, weights and tap count along one axis."""
    kernel, stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pad, dilation = draw(st.integers(-1, 2)), draw(st.integers(1, 2))
    if kind == "window":
        return window_axis(size_in, size_out, kernel, stride, pad, dilation), None, None, 1
    if kind == "transposed":
        return *transposed_axis(size_in, size_out, kernel, stride, pad, dilation), None, kernel
    if kind == "nearest":
        return nearest_axis(size_in, size_out, size_out / size_in), None, None, 1
    sources, weights = linear_axis(size_in, size_out, size_out / size_in)
    return sources, None, weights, 1


def spec_of(lists: list[Axis]) -> NeighbourhoodSpec:
    sources, taps, weights, counts = zip(*lists, strict=True)
    return NeighbourhoodSpec(
        id="n0",
        source="source",
        target="target",
        sources=sources,
        taps=taps if taps[0] is not None else None,
        tap_counts=counts,
        weights=weights if weights[0] is not None else None,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[NeighbourhoodSpec, ActiveRows]:
    """A neighbourhood between two grids, and rows active on them that need not match."""
    ndim = draw(st.integers(1, 3))
    dims = st.lists(st.integers(1, (9, 6, 4)[ndim - 1]), min_size=ndim, max_size=ndim).map(tuple)
    source, target = draw(dims), draw(dims)
    kind = draw(st.sampled_from(KINDS))
    lists = [draw(axes(kind, size_in, size_out)) for size_in, size_out in zip(source, target, strict=True)]
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    share = draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
    masks = {"source": random.random(source) < share, "target": random.random(target) < share}
    return spec_of(lists), ActiveRows.from_masks(masks)


def entries(spec: NeighbourhoodSpec, row: int, active: ActiveRows) -> list[tuple[int | None, int, float]]:
    """The (source row or PAD, tap, weight) that a target row reads, in order."""
    source_dims = active.dims["source"]
    coordinates = np.unravel_index(row, active.dims["target"])
    sources = [axis[c] for axis, c in zip(spec.sources, coordinates, strict=True)]
    result: list[tuple[int | None, int, float]] = []
    for choice in itertools.product(*(range(len(axis)) for axis in sources)):
        place = [axis[t] for axis, t in zip(sources, choice, strict=True)]
        taps = [0] * len(place)
        if spec.taps is not None:
            taps = [axis[c][t] for axis, c, t in zip(spec.taps, coordinates, choice, strict=True)]
        weight = 1.0
        if spec.weights is not None:
            weight = math.prod(axis[c][t] for axis, c, t in zip(spec.weights, coordinates, choice, strict=True))
        if -1 in place:
            result.append((PAD, 0, weight))
        else:
            tap = int(np.ravel_multi_index(taps, spec.tap_counts))
            result.append((int(np.ravel_multi_index(place, source_dims)), tap, weight))
    return result


@given(cases())
def test_matches_the_reference(case: tuple[NeighbourhoodSpec, ActiveRows]) -> None:
    spec, active = case
    grids = [GridSpec(grid, dims, "x") for grid, dims in active.dims.items()]
    inputs = index_inputs(active, [spec], grids)
    expected = [entries(spec, int(row), active) for row in active.rows["target"]]
    read = {source for row in expected for source, _, _ in row if source is not PAD}
    own = active.rows["source"].tolist()
    halo = sorted(read - set(own))
    table = [*own, *halo, PAD]
    taps = math.prod(spec.tap_counts)
    width = math.prod(len(axis[0]) for axis in spec.sources)

    neighbours = inputs["neighbours.n0"]
    assert inputs["halo.n0"].tolist() == halo
    assert neighbours.shape == (len(expected), width)
    decoded = [[(table[entry // taps], entry % taps) for entry in row] for row in neighbours.tolist()]
    assert decoded == [[(source, tap) for source, tap, _ in row] for row in expected]
    for name in ("rows.source", "rows.target", "neighbours.n0", "halo.n0"):
        assert inputs[name].dtype == np.int64
    np.testing.assert_array_equal(inputs["rows.target"], active.rows["target"])

    assert ("weights.n0" in inputs) == (spec.weights is not None)
    if spec.weights is not None:
        weights = inputs["weights.n0"]
        assert weights.dtype == np.float32
        assert weights.shape == (len(expected), width)
        reference = np.array([[weight for _, _, weight in row] for row in expected]).reshape(weights.shape)
        np.testing.assert_allclose(weights, reference, rtol=1e-6)


def local_table(active: ActiveRows, inputs: dict[str, NDArray[np.int64]], values: NDArray[np.float32]) -> torch.Tensor:
    """[active rows; halo rows; zero row] of ``values`` [rows, channels]."""
    pad = np.zeros((1, *values.shape[1:]), np.float32)
    return torch.from_numpy(np.concatenate([values[active.rows["source"]], values[inputs["halo.n0"]], pad]))


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), (3, 0, 1), (1, 2, 2)])
def test_gathered_rows_convolve(stride: int, padding: int, dilation: int) -> None:
    random = np.random.default_rng(0)
    image = torch.from_numpy(random.standard_normal((1, 3, 9, 10)).astype(np.float32))
    kernel = torch.from_numpy(random.standard_normal((4, 3, 3, 3)).astype(np.float32))
    full = torch.nn.functional.conv2d(image, kernel, stride=stride, padding=padding, dilation=dilation)[0]
    target = tuple(full.shape[1:])
    axis = [window_axis(size, out, 3, stride, padding, dilation) for size, out in zip((9, 10), target, strict=True)]
    spec = NeighbourhoodSpec("n0", "source", "target", tuple(axis), None, (1, 1))
    active = ActiveRows.from_masks({"source": random.random((9, 10)) < 0.3, "target": random.random(target) < 0.3})
    inputs = index_inputs(active, [spec], [])
    table = local_table(active, inputs, image[0].permute(1, 2, 0).reshape(90, 3).numpy())
    patches = table[torch.from_numpy(inputs["neighbours.n0"])]
    rows = torch.einsum("mtc,oct->mo", patches, kernel.reshape(4, 3, 9))
    expected = full.reshape(4, -1)[:, torch.from_numpy(active.rows["target"].copy())].T
    torch.testing.assert_close(rows, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), (3, 0, 1), (2, 1, 2)])
def test_gathered_taps_convolve_transposed(stride: int, padding: int, dilation: int) -> None:
    random = np.random.default_rng(0)
    image = torch.from_numpy(random.standard_normal((1, 3, 5, 6)).astype(np.float32))
    kernel = torch.from_numpy(random.standard_normal((3, 4, 3, 3)).astype(np.float32))
    full = torch.nn.functional.conv_transpose2d(image, kernel, stride=stride, padding=padding, dilation=dilation)[0]
    target = tuple(full.shape[1:])
    lists = [transposed_axis(size, out, 3, stride, padding, dilation) for size, out in zip((5, 6), target, strict=True)]
    sources, taps = zip(*lists, strict=True)
    spec = NeighbourhoodSpec("n0", "source", "target", sources, taps, (3, 3))
    active = ActiveRows.from_masks({"source": random.random((5, 6)) < 0.3, "target": random.random(target) < 0.3})
    inputs = index_inputs(active, [spec], [])
    values = torch.einsum("hwc,cot->hwto", image[0].permute(1, 2, 0), kernel.reshape(3, 4, 9)).reshape(30, 9, 4)
    table = local_table(active, inputs, values.numpy()).reshape(-1, 4)
    rows = table[torch.from_numpy(inputs["neighbours.n0"])].sum(dim=1)
    expected = full.reshape(4, -1)[:, torch.from_numpy(active.rows["target"].copy())].T
    torch.testing.assert_close(rows, expected, rtol=1e-4, atol=1e-5)


def test_several_neighbourhoods_of_a_region() -> None:
    fine, coarse = GridSpec("fine", (8, 8), "x"), GridSpec("coarse", (4, 4), "x")
    active = Region.from_boxes([(2, 2, 4, 4)], (8, 8), "exact").active([fine, coarse], fine)
    down = NeighbourhoodSpec("down", "fine", "coarse", (window_axis(8, 4, 2, 2),) * 2, None, (1, 1))
    up = NeighbourhoodSpec("up", "coarse", "fine", (nearest_axis(4, 8, 2.0, "asymmetric", "floor"),) * 2, None, (1, 1))
    inputs = index_inputs(active, [down, up], [fine])
    assert set(inputs) == {"rows.fine", "neighbours.down", "halo.down", "neighbours.up", "halo.up"}
    assert inputs["neighbours.down"].tolist() == [[0, 1, 2, 3]]
    assert inputs["neighbours.up"].tolist() == [[0], [0], [0], [0]]
    assert inputs["halo.down"].size == inputs["halo.up"].size == 0


SPEC = NeighbourhoodSpec("n7", "source", "target", (window_axis(4, 4, 3, 1, 1),), None, (1,))


def test_unknown_grid() -> None:
    active = ActiveRows.full([GridSpec("target", (4,), "x")])
    with pytest.raises(RegionError, match="No active rows were computed for grid 'source', only for 'target'; pass"):
        index_inputs(active, [SPEC], [])
    with pytest.raises(RegionError, match="No active rows were computed for grid 'other', only for 'target'; pass"):
        index_inputs(active, [], [GridSpec("other", (4,), "x")])


@pytest.mark.parametrize(
    ("changes", "misfit"),
    [
        (
            {"sources": SPEC.sources * 2},
            "expected as many axes as its grids (4,) -> (4,), got 2 axes and tap counts (1,)",
        ),
        ({"tap_counts": (1, 1)}, "expected as many axes as its grids (4,) -> (4,), got 1 axes and tap counts (1, 1)"),
        ({"sources": (window_axis(4, 3, 3, 1, 1),)}, "expected 4 lists of 3 source coordinates, got 3 lists of [3]"),
        (
            {"sources": (((0,), (1, 2), (2,), (3,)),)},
            "expected 4 lists of 1 source coordinates, got 4 lists of [1, 2]",
        ),
        ({"sources": (((),) * 4,)}, "expected 4 lists of 1 source coordinates, got 4 lists of [0]"),
        ({"sources": (((0,), (1,), (4,), (3,)),)}, "expected source coordinates of at least -1 and less than 4, got 4"),
        (
            {"sources": (((0,), (-2,), (1,), (3,)),)},
            "expected source coordinates of at least -1 and less than 4, got -2",
        ),
        ({"taps": (((0, 0, 1),) * 4,)}, "expected taps of at least 0 and less than 1, got 1"),
        ({"taps": (((0,),) * 4,)}, "expected 4 lists of 3 taps, got 4 lists of [1]"),
        ({"weights": (((0.5, 0.5),) * 4,)}, "expected 4 lists of 3 weights, got 4 lists of [2]"),
    ],
)
def test_neighbourhood_that_does_not_fit(changes: dict[str, object], misfit: str) -> None:
    spec = dataclasses.replace(SPEC, **changes)  # type: ignore[arg-type]
    active = ActiveRows.full([GridSpec("source", (4,), "x"), GridSpec("target", (4,), "x")])
    with pytest.raises(BundleError) as error:
        index_inputs(active, [spec], [])
    assert str(error.value) == f"Neighbourhood 'n7' does not fit its grids: {misfit}; export the bundle again."
