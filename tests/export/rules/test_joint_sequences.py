"""Rows beside other tokens: joint attention of image and text, with the text computed anew or left as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from retouch import EditRequest, EditSession, Region
from retouch.bundle import Bundle
from retouch.errors import ExportError, FeedError
from retouch.export import ExportOptions, export_onnx

# Two joint blocks: image tokens 4x4, three text tokens before or behind them, and a prompt that is read twice.
BLOCK = """
    {out}_q = MatMul({x}, wq)
    {out}_k = MatMul({x}, wk)
    {out}_v = MatMul({x}, wv)
    {out}_t = Transpose<perm = [0, 2, 1]>({out}_k)
    {out}_s = MatMul({out}_q, {out}_t)
    {out}_p = Softmax<axis = -1>({out}_s)
    {out}_a = MatMul({out}_p, {out}_v)
    {out} = Add({out}_a, {x})
"""
IMAGE_FIRST = """
    j0 = Concat<axis = 1>(rows, c)
    {first}
    i1, t1 = Split<axis = 1>(j1, sizes)
    i2 = Add(i1, rows)
    t2 = Tanh(t1)
    j2 = Concat<axis = 1>(i2, t2)
    {second}
    i3 = Slice(j3, zero, many, one)
"""
TEXT_FIRST = """
    j0 = Concat<axis = 1>(c, rows)
    {first}
    t1 = Slice(j1, zero, three, one)
    i1 = Slice(j1, three, end, one)
    i2 = Add(i1, rows)
    t2 = Tanh(t1)
    j2 = Concat<axis = 1>(t2, i2)
    {second}
    i3 = Slice(j3, three, end, one)
"""
AROUND = """
    j0 = Concat<axis = 1>(c, rows, c)
    {first}
    t1, i1, u1 = Split<axis = 1>(j1, around)
    i2 = Add(i1, rows)
    t2 = Mul(t1, u1)
    j2 = Concat<axis = 1>(t2, i2, t1)
    {second}
    t3, i3, u3 = Split<axis = 1>(j3, around)
"""
ORDERS = {"image_first": IMAGE_FIRST, "text_first": TEXT_FIRST, "around": AROUND}


def written(order: str, folder: Path, batch: int = 1) -> Path:
    body = ORDERS[order].format(first=BLOCK.format(x="j0", out="j1"), second=BLOCK.format(x="j2", out="j3"))
    text = f"""
    <ir_version: 10, opset_import: ["" : 18]>
    joint (float[{batch},6,4,4] x, float[{batch},3,6] c) => (float[{batch},6,4,4] y)
    <int64[2] sizes = {{16, 3}}, int64[3] around = {{3, 16, 3}}, int64[1] zero = {{0}}, int64[1] three = {{3}},
     int64[1] many = {{16}}, int64[1] one = {{1}}, int64[1] end = {{9223372036854775807}},
     int64[3] flat = {{{batch}, 6, 16}}, int64[4] image = {{{batch}, 6, 4, 4}}>
    {{
        pixels = Reshape(x, flat)
        rows = Transpose<perm = [0, 2, 1]>(pixels)
        {body}
        back = Transpose<perm = [0, 2, 1]>(i3)
        y = Reshape(back, image)
    }}
    """
    model = onnx.parser.parse_model(text)
    generator = np.random.default_rng(5)
    for name in ("wq", "wk", "wv"):
        array = generator.standard_normal((6, 6)).astype(np.float32) * 0.5
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path = folder / f"{order}.onnx"
    onnx.save(model, path)
    return path


def exported(order: str, folder: Path, text: str, batch: int = 1) -> Bundle:
    path = written(order, folder, batch)
    options = ExportOptions(editable="x", axes=(2, 3), text=text)
    return export_onnx(path, folder / f"{order}.{text}", options)


def feeds(seed: int, batch: int = 1) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    shapes = {"x": (batch, 6, 4, 4), "c": (batch, 3, 6)}
    return {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("order", ORDERS)
def test_recomputed_text_gives_the_full_run(order: str, batch: int, tmp_path: Path) -> None:
    bundle = exported(order, tmp_path, "recompute", batch)
    assert {row.plan for row in bundle.manifest.plan} >= {"incremental", "recomputed"}
    assert not [row for row in bundle.manifest.plan if row.plan == "densified"]
    assert "computes anew" in str(bundle.manifest.stacked["cached"].reason)
    base, new = feeds(0, batch), feeds(1, batch)
    expected = onnxruntime.InferenceSession(written(order, tmp_path, batch)).run(None, new)[0]
    with EditSession(bundle) as session:
        run = session.base(base)
        # Another prompt too: nothing of the base run is left.
        result = session.edit(run, new, region=Region.full((4, 4)), fallback=False)
        again = session.edit(run, {"x": new["x"]}, region=Region.from_rows([5], (4, 4)), record=True, fallback=False)
        following = session.edit(again.commit(), new, region=Region.full((4, 4)), fallback=False)
        requests = [EditRequest(Region.from_rows([row], (4, 4)), {"x": new["x"]}) for row in (5, 9)]
        alone = session.edit_many(run, requests)
    assert np.abs(result.outputs["y"] - expected).max() <= 2e-5
    assert np.abs(following.outputs["y"] - expected).max() <= 2e-5
    assert all("tokens that every edit computes anew" in one.report.reason for one in alone)
    np.testing.assert_array_equal(alone[0].outputs["y"], again.outputs["y"])


@pytest.mark.parametrize("order", ORDERS)
def test_frozen_text_costs_nothing(order: str, tmp_path: Path) -> None:
    bundle = exported(order, tmp_path, "frozen")
    assert bundle.manifest.coverage == 1.0
    assert "recomputed" not in {row.plan for row in bundle.manifest.plan}
    assert bundle.manifest.stacked["cached"].graph is not None
    assert "all_rows" not in bundle.manifest.verification
    # What frozen text makes an edit of all rows miss is no fault, and said.
    assert 1e-3 < bundle.manifest.verification["frozen_text.cached"] < 2.0
    recomputed = exported(order, tmp_path, "recompute")
    assert "frozen_text.cached" not in recomputed.manifest.verification
    counts = {grid.id: 1 for grid in bundle.manifest.grids}
    assert bundle.manifest.flop_ratio(counts) <= recomputed.manifest.flop_ratio(counts)


def test_another_prompt_needs_recomputed_text(tmp_path: Path) -> None:
    with EditSession(exported("text_first", tmp_path, "frozen")) as session:
        run = session.base(feeds(0))
        region = Region.from_rows([5], (4, 4))
        with pytest.raises(FeedError, match=r"'c'.*text=recompute"):
            session.edit(run, feeds(1), region=region)
        # The same prompt once more is no change.
        session.edit(run, {"x": feeds(1)["x"], "c": feeds(0)["c"]}, region=region)


def test_policies_have_names(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="'recompute' or 'frozen', got 'keep'"):
        exported("text_first", tmp_path, "keep")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y = Slice(j, one, ten, one)", "elsewhere than where it was joined"),
        ("y = Slice(j, two, end, one, two)", "with steps"),
        ("t = Tanh(x)  j2 = Concat<axis = 1>(t, t)  y = Slice(j2, zero, six, one)", "rows with rows"),
    ],
)
def test_other_cuts_stay_dense(body: str, reason: str, tmp_path: Path, export: Any) -> None:
    constants = ", ".join(f"int64[1] {n} = {{{v}}}" for n, v in
                          {"zero": 0, "one": 1, "two": 2, "six": 6, "ten": 10, "end": 1 << 62}.items())  # fmt: skip
    bundle = export(
        f"""joint (float[1,6,4] x, float[1,3,4] c) => (float[1,n,4] y) <{constants}> {{
            j = Concat<axis = 1>(c, x)
            {body}
        }}""",
        axes=(1,),
    )
    assert any(reason in (row.reason or "") for row in bundle.manifest.plan), bundle.manifest.plan
