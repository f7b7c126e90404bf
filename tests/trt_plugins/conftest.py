"""Tests of the TensorRT part; engines are built where TensorRT-RTX is installed, which the header of the run says."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx
from tests.trt_plugins.host_kernels import HostKernels, compile_host
from tests.trt_plugins.host_ort_ops import ort_headers
from tests.trt_plugins.host_plugins import missing

REQUIRED = "RETOUCH_REQUIRE_TRT"
COMPILER = shutil.which("g++")
INSTALLED = importlib.util.find_spec("tensorrt_rtx") is not None

if os.environ.get(REQUIRED) == "1" and not (INSTALLED and COMPILER):
    raise pytest.UsageError(f'{REQUIRED}=1, but there is no tensorrt_rtx (pip install "retouch[trt]") or no g++')

collect_ignore_glob = [
    *([] if INSTALLED else ["test_rtx_*.py", "runner"]),
    *([] if COMPILER else ["test_host_*.py"]),
    *([] if INSTALLED and not missing() else ["test_host_plugins.py"]),
    *([] if ort_headers() else ["test_host_ort_ops.py"]),
    *([] if COMPILER and shutil.which("nvcc") else ["test_nvcc.py"]),
]

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
image (float[1,4,16,16] x, float[1] step) => (float[1,4,16,16] y) {
    shift = Mul(step, direction)
    channels = Constant<value_ints = [1, 8, 1, 1]>()
    bias = Reshape(shift, channels)
    a = Conv<pads = [1, 1, 1, 1]>(x, first, first_bias)
    b = Add(a, bias)
    c = Sigmoid(b)
    down = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(c, second)
    scales = Constant<value = float[4] {1, 1, 2, 2}>()
    up = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
        (down, "", scales)
    both = Concat<axis = 1>(c, up)
    y = Conv(both, third)
}
"""
WEIGHTS = {
    "direction": (8,),
    "first": (8, 4, 3, 3),
    "first_bias": (8,),
    "second": (8, 8, 3, 3),
    "third": (4, 16, 1, 1),
}


def pytest_report_header() -> str:
    engines = "installed" if INSTALLED else "not installed, no engines are built"
    kernels = COMPILER or "not tested, there is no g++"
    cards = shutil.which("nvcc") or "not compiled, there is no nvcc"
    plugins = f"not tested, there is no {missing()}" if missing() else "tested"
    operators = "tested" if ort_headers() else "not tested, there are no headers of ONNX Runtime"
    return (
        f"TensorRT-RTX: {engines}; CUDA kernels on the host: {kernels}, for cards: {cards}; plugins: {plugins}; "
        f"operators for ONNX Runtime: {operators}"
    )


@pytest.fixture(scope="session")
def host_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels as a library that runs them on the host."""
    return compile_host(tmp_path_factory.mktemp("kernels"))


def write_model(folder: Path) -> Path:
    """A small UNet: two levels, a skip connection, a condition."""
    model = onnx.parser.parse_model(MODEL)
    generator = np.random.default_rng(0)
    for name, shape in WEIGHTS.items():
        array = generator.standard_normal(shape, dtype=np.float32) / 4
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path = folder / "small.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def read_only_bundle(model: Path) -> Bundle:
    """Its bundle, for tests that do not build into it."""
    return export_onnx(model, model.parent / "bundle", ExportOptions(editable="x", min_coverage=0.0))


@pytest.fixture
def bundle(model: Path, tmp_path: Path) -> Bundle:
    return export_onnx(model, tmp_path / "bundle", ExportOptions(editable="x", min_coverage=0.0, verify=False))


@pytest.fixture
def sharing(model: Path, bundle: Bundle, tmp_path: Path) -> Bundle:
    """A bundle of the same model for images of twice the height, which reads the weights of another one."""
    larger = onnx.load(model)
    for value in (larger.graph.input[0], larger.graph.output[0]):
        value.type.tensor_type.shape.dim[2].dim_value = 32
    onnx.save(larger, tmp_path / "larger.onnx")
    options = ExportOptions(editable="x", min_coverage=0.0, share=bundle.path, verify=False)
    return export_onnx(tmp_path / "larger.onnx", tmp_path / "sharing", options)


@pytest.fixture(scope="session")
def kernels(host_library: Path) -> HostKernels:
    """The kernels, compiled for the host."""
    return HostKernels(host_library)
