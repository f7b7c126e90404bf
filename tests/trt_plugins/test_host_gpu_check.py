"""What a card would be asked, asked of the host: the checks find wrong kernels, the report says what was measured."""

from __future__ import annotations

import json
import re
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch.errors import EngineMissingError
from retouch.trt_plugins import gpu_check
from retouch.trt_plugins._card import Buffer
from retouch.trt_plugins._cupy_card import find_card
from retouch.trt_plugins._kernel_checks import check_kernels
from retouch.trt_plugins._kernel_library import TYPES, KernelLibrary
from retouch.trt_plugins._kernel_timings import Sizes
from retouch.trt_plugins.steps import StepSizes

STEPS = StepSizes(
    (0.1, 1.0),
    {"side": 3, "blocks": 1, "heads": 1, "width": 8},
    {"side": 2, "channels": (4,), "attention": 0, "groups": 2},
    "cpu",
    "float32",
)
SMALL = Sizes(12, (1 << 12,), 16, 4, (8,), 1, (16,), 40, (32,), (8, 8, 8))


class Host:
    """The host as a card."""

    name = "host"
    stream = None

    def upload(self, array: np.ndarray) -> Buffer:
        copy = np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()
        return Buffer(copy.ctypes.data, copy)

    def download(self, buffer: Buffer, like: np.ndarray) -> np.ndarray:
        return buffer.owner.view(like.dtype).reshape(like.shape)

    def milliseconds(self, run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e3

    def burst_milliseconds(self, run: Callable[[], object]) -> float:
        return self.milliseconds(self.captured(run))

    def captured(self, run: Callable[[], object]) -> Callable[[], None]:
        def start() -> None:
            run()

        return start

    def synchronise(self) -> None:
        pass

    def matmul_milliseconds(self, rows: int, depth: int, columns: int) -> float:
        left, right = np.ones((rows, depth)), np.ones((depth, columns))
        return self.milliseconds(lambda: left @ right)

    def copy_milliseconds(self, size: int) -> float:
        return self.milliseconds(lambda: np.ones(size, np.uint8).copy())

    def attention_milliseconds(self, heads: int, queries: int, keys: int, width: int) -> float:
        q, k = np.ones((heads, queries, width)), np.ones((heads, keys, width))
        return self.milliseconds(lambda: np.einsum("hqd,hkd->hqk", q, k))

    def conv_milliseconds(self, size: int, channels: int) -> float:
        columns, weight = np.ones((size * size, 9 * channels)), np.ones((9 * channels, channels))
        return self.milliseconds(lambda: columns @ weight)


class Broken(KernelLibrary):
    """Adds a little to the scale of attention."""

    def call(self, name: str, *arguments: Any) -> None:
        if name == "edit_attention":
            arguments = (*arguments[:-3], arguments[-3] * 1.05, *arguments[-2:])
        super().call(name, *arguments)


def test_every_kernel_is_checked_and_timed(host_library: Path) -> None:
    report = gpu_check.run(Host(), KernelLibrary(host_library), SMALL, STEPS)
    assert report.passed
    kernels = (
        "gather_rows",
        "masked_merge",
        "scatter_rows",
        "edit_conv",
        "row_linear",
        "edit_attention",
        "group_moments",
        "edit_group_norm",
    )
    assert [(c.dtype, c.kernel) for c in report.checks] == [
        (dtype, kernel) for dtype in ("float32", "float16", "bfloat16") for kernel in kernels
    ]
    assert [timing.what.partition(",")[0] for timing in report.timings] == [
        "gather_rows",
        "scatter_rows in place",
        "row_linear",
        "edit_conv",
        "edit_attention",
        "group_moments",
        "edit_group_norm",
    ]
    assert all(timing.rate > 0 and timing.share > 0 for timing in report.timings)
    assert all(step.launch_microseconds > 0 for step in report.steps)
    assert [(step.step, step.rows) for step in report.steps] == [("DiT", 1), ("DiT", 9), ("UNet", 1), ("UNet", 4)]
    text = gpu_check.page(report)
    assert "| UNet | 4 (100%) |" in text and "engines" not in text
    assert text.startswith("# Kernels on host") and "WRONG" not in text and "% of attention |" in text


def test_a_wrong_kernel_is_found_and_nothing_is_timed(host_library: Path) -> None:
    report = gpu_check.run(Host(), Broken(host_library), SMALL)
    assert not report.passed and report.timings == ()
    assert {check.kernel for check in report.checks if not check.passed} == {"edit_attention"}
    assert gpu_check.page(report).count("WRONG") >= 2


def test_other_data_gives_the_same_verdict(host_library: Path) -> None:
    assert all(check.passed for check in check_kernels(Host(), KernelLibrary(host_library), rows=9, seed=5))


def test_without_a_card_or_a_library(
    tmp_path: Path, host_library: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gpu_check.main(["--library", str(host_library), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert re.search("Expected a CUDA card, but this torch sees none.*Nothing was checked", told.err) and not told.out
    monkeypatch.setattr(gpu_check, "find_card", Host)
    assert gpu_check.main(["--library", str(tmp_path / "nothing.so"), "--out", str(tmp_path / "out")]) == 2
    assert re.search("kernels' library at .*nothing.so.*make kernels", capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


class Full(KernelLibrary):
    """Gives up at the first norm behind the checks, as a card whose memory is full."""

    norms = 0

    def call(self, name: str, *arguments: Any) -> None:
        self.norms += name == "edit_group_norm"
        if self.norms > len(TYPES):
            raise RuntimeError("CUDA out of memory")
        super().call(name, *arguments)


def test_what_was_found_before_a_failure_is_reported(
    host_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_check, "find_card", Host)
    monkeypatch.setattr(gpu_check, "Sizes", lambda: SMALL)
    monkeypatch.setattr(gpu_check, "StepSizes", lambda: STEPS)
    monkeypatch.setattr(gpu_check, "KernelLibrary", Full)
    command = ["--library", str(host_library), "--out", str(tmp_path / "new" / "folder")]
    assert gpu_check.main([*command, "--tensorrt", str(tmp_path / "none")]) == 1
    report = json.loads((tmp_path / "new" / "folder" / "gpu_check.json").read_text())
    assert len(report["timings"]) == 6 and len(report["checks"]) == len(TYPES) * 8
    times, steps, engines = report["failures"]
    assert times == "times of kernels, behind 6 of them: RuntimeError: CUDA out of memory"
    assert steps.startswith("steps, behind 0") and engines.startswith("engines, behind 0 of them: ")
    assert capsys.readouterr().out.count("**Not finished**") == 3


class Cupy(types.ModuleType):
    """Stands in for CuPy, whose arrays behave as numpy's, on the host."""

    def __init__(self) -> None:
        super().__init__("cupy")
        self.__version__ = "14"
        properties = {"name": b"Fake 4090", "major": 8, "minor": 9}
        runtime = types.SimpleNamespace(
            getDeviceCount=lambda: 1,
            getDeviceProperties=lambda _: properties,
            runtimeGetVersion=lambda: 13000,
            deviceSynchronize=lambda: None,
        )
        self.cuda = types.SimpleNamespace(
            runtime=runtime,
            Event=Moment,
            get_elapsed_time=lambda start, stop: (stop.at - start.at) * 1e3,
            get_current_stream=lambda: types.SimpleNamespace(ptr=0),
        )

    def asarray(self, array: np.ndarray) -> Any:
        return array.copy().view(Held)

    def asnumpy(self, array: Any) -> np.ndarray:
        return np.asarray(array).copy()

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Held(np.ndarray):
    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.ctypes.data)


class Moment:
    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass


def test_cupy_serves_where_torch_reaches_no_card(host_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(EngineMissingError, match="this torch sees none.*Without torch: Expected cupy"):
        find_card()
    monkeypatch.setitem(sys.modules, "cupy", Cupy())
    report = gpu_check.run(find_card(), KernelLibrary(host_library), SMALL)
    assert report.passed and report.card == "Fake 4090 (8.9), CUDA 13000, cupy 14"
    assert {timing.against for timing in report.timings} == {"copy", "matmul"}
    assert report.steps == () and "step" not in gpu_check.page(report)


def test_the_command_writes_its_report(host_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_check, "find_card", Host)
    monkeypatch.setattr(gpu_check, "Sizes", lambda: SMALL)
    monkeypatch.setattr(gpu_check, "StepSizes", lambda: STEPS)
    assert gpu_check.main(["--library", str(host_library), "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "gpu_check.json").read_text())["card"] == "host"
    assert (tmp_path / "gpu_check.md").read_text().startswith("# Kernels on host")
