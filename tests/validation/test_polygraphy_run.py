"""``polygraphy run`` with ``--retouch-edit``."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("polygraphy")

from polygraphy.tools.run import Run

from retouch import EditSession, Region
from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx
from retouch.validation.polygraphy_run import EditsRunner
from retouch.validation.reference_models import export_reference


@pytest.fixture(scope="module")
def model(reference_models: Path) -> Path:
    return export_reference("ddpm_unet_tiny", reference_models)


@pytest.fixture(scope="module")
def bundle(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_onnx(model, tmp_path_factory.mktemp("bundle") / "bundle", ExportOptions(verify=False))


def feeds(seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {"x": generator.standard_normal((1, 3, 16, 16)).astype(np.float32), "t": np.array([500])}


def patched(base: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = base["x"].copy()
    x[..., 4:8, 5:9] = feeds(9)["x"][..., 4:8, 5:9]
    return {**base, "x": x}


def test_polygraphy_compares_edits_with_the_full_model(model: Path, bundle: Bundle) -> None:
    polygraphy = Path(sys.executable).with_name("polygraphy")
    command = [
        polygraphy,
        "run",
        model,
        "--onnxrt",
        "--retouch-edit",
        bundle.path,
        "--iterations",
        "3",
        "--atol",
        "5e-5",
    ]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "retouch-edit-runner-N0" in done.stdout and "Passed: 3/3 iterations" in done.stdout


def parsed(*arguments: str) -> str:
    """The script that Polygraphy would run."""
    tool = Run()
    parser = tool.setup_parser()
    args = parser.parse_args(arguments)
    for group in tool.arg_groups.values():
        group.parse(args)
    script = _Script()
    for option in args.runners:
        script.runners.append(option)
    tool.arg_groups[_arguments()].add_to_script(script)
    return "\n".join(script.runners)


class _Script:
    def __init__(self) -> None:
        self.runners: list[str] = []

    def add_import(self, **_: object) -> None: ...

    def add_runner(self, text: object) -> None:
        self.runners.append(str(text))

    def get_runners(self) -> str:
        return ""


def _arguments() -> type:
    from retouch.validation.polygraphy_run._arguments import RetouchEditArgs

    return RetouchEditArgs


def test_options_reach_the_runner_in_the_order_of_the_command_line() -> None:
    options = ("--retouch-box", "1,2,3,4", "--retouch-policy", "exact", "--retouch-follow", "--onnxrt")
    script = parsed("model.onnx", "--retouch-edit", "my.bundle", *options, "--retouch-group-norm", "cached")
    order, _, made = script.partition("EditsRunner")
    assert order.split() == ["retouch-edit", "onnxrt"]
    assert made == "('my.bundle', boxes=[[1, 2, 3, 4]], policy='exact', group_norm='cached', follow=True)"


def test_edits_are_of_what_differs(bundle: Bundle) -> None:
    base = feeds(0)
    with EditsRunner(str(bundle.path), policy="exact", group_norm="cached", threads=1) as runner:
        first = runner.infer(base)["out"]
        edited = runner.infer(patched(base))["out"]
        unchanged = runner.infer(base)["out"]
    same = (edited == first).all(axis=(0, 1))
    assert not same[4:8, 5:9].any() and same.sum() == 256 - 16
    assert np.abs(unchanged - first).max() <= 2e-5 * np.abs(first).max()
    with EditSession(bundle, threads=1) as session:
        region = Region.from_boxes([(4, 5, 8, 9)], (16, 16), "exact")
        expected = session.edit(session.base(base), patched(base), region=region).outputs["out"]
    assert np.array_equal(edited, expected)


def test_other_conditions_change_everything(bundle: Bundle) -> None:
    with EditsRunner(str(bundle.path), threads=1) as runner:
        runner.infer(feeds(0))
        edited = runner.infer({**patched(feeds(0)), "t": np.array([20])})["out"]
    with EditSession(bundle, threads=1) as session:
        expected = session.base({**patched(feeds(0)), "t": np.array([20])}).outputs["out"]
    assert np.abs(edited - expected).max() <= 2e-5 * np.abs(expected).max()


def test_boxes_and_edits_in_a_row(bundle: Bundle) -> None:
    boxes = [[0, 0, 4, 4]]
    with EditsRunner(str(bundle.path), boxes, "exact", follow=True, threads=1) as runner:
        outputs = [runner.infer(feeds(seed))["out"] for seed in range(3)]
    for before, after in itertools.pairwise(outputs):
        assert ((after == before).all(axis=(0, 1)) == ~Region.from_boxes(boxes, (16, 16)).mask).all()


def test_a_second_activation_starts_afresh(bundle: Bundle) -> None:
    runner = EditsRunner(str(bundle.path), threads=1)
    with runner:
        runner.infer(feeds(0))
    with runner, EditSession(bundle, threads=1) as session:
        assert np.array_equal(runner.infer(feeds(1))["out"], session.base(feeds(1)).outputs["out"])
