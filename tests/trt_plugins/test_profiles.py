"""Profiles admit the regions that they are made for, of any outline, and the last one admits every region."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retouch.bundle import Bundle, EngineSpec, FileSpec
from retouch.errors import BuildRequestError
from retouch.region import POLICIES, Region
from retouch.trt_plugins._open_dims import Shape, input_shapes, sizes_of
from retouch.trt_plugins._profiles import profiles
from retouch.trt_plugins._row_counts import row_counts, stacked_counts

COUNTS = (10, 64, 256)


def shapes_of(bundle: Bundle) -> dict[str, Shape]:
    return input_shapes(onnx.load(bundle.path / "edit.onnx", load_external_data=False).graph)


def sizes(bundle: Bundle, region: Region) -> dict[str, int]:
    manifest = bundle.manifest
    active = region.active(manifest.grids, manifest.grid(manifest.editable.grid))
    return sizes_of([active], manifest, manifest.edits["cached"], shapes_of(bundle))


@pytest.fixture(scope="module")
def engine(read_only_bundle: Bundle) -> EngineSpec:
    manifest = read_only_bundle.manifest
    made = profiles(manifest, manifest.edits["cached"], shapes_of(read_only_bundle), COUNTS)
    return EngineSpec("edit.onnx", "tensorrt-rtx", "1", "float32", (), (), (), made, "", FileSpec(0, ""))


def box(y: int, x: int, height: int, width: int) -> NDArray[np.bool_]:
    mask = np.zeros((16, 16), np.bool_)
    mask[y : y + height, x : x + width] = True
    return mask


def test_open_dims_are_rows_and_halos(read_only_bundle: Bundle) -> None:
    manifest = read_only_bundle.manifest
    found = sizes(read_only_bundle, Region.from_mask(box(4, 4, 4, 4), "exact"))
    counts = {f"M_{grid.id}": (4 * 4 if grid.rows == 256 else 2 * 2) for grid in manifest.grids}
    assert counts.items() <= found.items()
    # A ring around 4x4 positions, one position wide, is what the first convolution reads besides.
    assert found["H_g16x16_g16x16_k3x3_p1x1"] == 6 * 6 - 4 * 4


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_last_profile_admits_every_region(
    read_only_bundle: Bundle, engine: EngineSpec, data: st.DataObject
) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=256, max_size=256).filter(any))
    policy = data.draw(st.sampled_from(sorted(POLICIES)))
    found = sizes(read_only_bundle, Region.from_mask(np.array(bits).reshape(16, 16), policy))
    assert engine.profiles[-1].admits(found)


@settings(max_examples=60, deadline=None)
@given(
    y=st.integers(0, 15),
    x=st.integers(0, 15),
    height=st.integers(1, 16),
    width=st.integers(1, 16),
    places=st.integers(0, 2),
)
def test_boxes_fit_the_profile_of_their_row_count(
    read_only_bundle: Bundle, engine: EngineSpec, y: int, x: int, height: int, width: int, places: int
) -> None:
    mask = box(y, x, height, width)
    if places:  # the same box again elsewhere
        mask |= np.roll(mask, 8, axis=places - 1)
    rows = int(mask.sum())
    found = sizes(read_only_bundle, Region.from_mask(mask, "exact"))
    chosen = engine.profile_of(found)
    assert chosen is not None
    assert engine.profiles[chosen].rows >= rows
    # Thin strips on odd places touch more rows of the coarse grid than compact ones: the next profile may serve them.
    smallest = next(number for number, profile in enumerate(engine.profiles) if profile.rows >= rows)
    assert chosen <= smallest + 1


def test_compact_boxes_get_the_smallest_profile(read_only_bundle: Bundle, engine: EngineSpec) -> None:
    for side, rows in ((3, 10), (8, 64), (16, 256)):
        for start in (0, (16 - side) // 2, 16 - side):
            found = sizes(read_only_bundle, Region.from_mask(box(start, start, side, side), "exact"))
            chosen = engine.profile_of(found)
            assert chosen is not None and engine.profiles[chosen].rows == rows


@settings(max_examples=40, deadline=None)
@given(
    places=st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), min_size=1, max_size=8),
    policy=st.sampled_from(["exact", "fast"]),
)
def test_stacks_of_blocks_fit_the_profile_of_their_row_count(
    read_only_bundle: Bundle, places: list[tuple[int, int]], policy: str
) -> None:
    """Edits of 2 x 2 positions each, wherever they are."""
    manifest = read_only_bundle.manifest
    spec = manifest.stacked["cached"].graph
    assert spec is not None
    shapes = input_shapes(onnx.load(read_only_bundle.path / spec.file, load_external_data=False).graph)
    (profile,) = profiles(manifest, spec, shapes, (64,), stacked=True)
    assert all(least <= usual <= largest for least, usual, largest in profile.dims.values())
    grid = manifest.grid(manifest.editable.grid)
    edits = [Region.from_mask(box(y, x, 2, 2), policy).active(manifest.grids, grid) for y, x in places]
    found = sizes_of(edits, manifest, spec, shapes)
    if found[f"M_{grid.id}"] <= 64:
        assert profile.admits(found)


def test_points_of_a_profile_are_in_order_and_halos_may_be_empty(engine: EngineSpec) -> None:
    for profile in engine.profiles:
        for name, (least, usual, largest) in profile.dims.items():
            assert 0 <= least <= usual <= largest, name
            assert not name.startswith("H_") or least == 0
            assert not name.startswith("M_") or least == 1


@pytest.mark.parametrize(
    ("texts", "counts"),
    [
        (("2%", "10%", "all"), (5, 26, 256)),
        (("7", "7", "3"), (3, 7)),
        (("0.1%",), (1,)),
        (("100%", "all", "256"), (256,)),
        ((" 12.5% ",), (32,)),
    ],
)
def test_row_counts(texts: tuple[str, ...], counts: tuple[int, ...]) -> None:
    assert row_counts(texts, 256) == counts


@pytest.mark.parametrize("text", ["0", "257", "-1", "0%", "101%", "some", "", "1.5", "2 %"])
def test_row_counts_that_are_none(text: str) -> None:
    with pytest.raises(BuildRequestError, match=r"a row count from 1 to 256, a share of the rows like 2%, or all; got"):
        row_counts((text,), 256)


def test_stacks_have_at_most_a_quarter_of_the_rows() -> None:
    assert stacked_counts((5, 26, 256), 256) == (5, 26, 64)
    assert stacked_counts((200, 256), 256) == (64,)
    assert stacked_counts((1, 2), 2) == (1,)


def test_no_row_counts() -> None:
    with pytest.raises(BuildRequestError, match="at least one row count"):
        row_counts((), 256)
