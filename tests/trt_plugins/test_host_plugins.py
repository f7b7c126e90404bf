"""The plugin library: every plugin's life, and how TensorRT's own registry takes it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from retouch.bundle import Bundle
from retouch.errors import EngineMissingError
from retouch.trt_plugins import BuildOptions, Target, build
from tests.trt_plugins.fake_builder import FakeTensorRt
from tests.trt_plugins.fake_cuda import FakeCuda, driver
from tests.trt_plugins.host_plugins import compile_harness, compile_library

OPERATORS = ["EditAttention", "EditConv", "EditGroupNorm", "GatherRows", "MaskedMerge", "RowLinear", "ScatterRows"]
REGISTRY = """
import ctypes, os, sys
import numpy as np
import tensorrt_rtx as trt
import tensorrt_rtx_libs

# As programs have it that are linked with TensorRT: its symbols are there for who comes later.
ctypes.CDLL(os.path.join(os.path.dirname(tensorrt_rtx_libs.__file__), "libtensorrt_rtx.so.1"), ctypes.RTLD_GLOBAL)
ctypes.CDLL(sys.argv[1])
registry = trt.get_plugin_registry()
assert not [creator for creator in registry.all_creators if creator.plugin_namespace == "ai.retouch"]
handle = registry.load_library(sys.argv[1])
assert handle is not None
creators = {creator.name: creator for creator in registry.all_creators if creator.plugin_namespace == "ai.retouch"}
scale = trt.PluginField("scale", np.array([0.25], np.float32), trt.PluginFieldType.FLOAT32)
plugin = creators["EditAttention"].create_plugin("node", trt.PluginFieldCollection([scale]), trt.TensorRTPhase.BUILD)
core = plugin.get_capability_interface(trt.PluginCapabilityType.CORE)
assert (core.plugin_name, core.plugin_version, core.plugin_namespace) == ("EditAttention", "3", "ai.retouch")
print(*sorted(creators))
del plugin, core, creators
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, host_library: Path) -> Path:
    return compile_library(tmp_path_factory.mktemp("plugins"), host_library)


@pytest.fixture(scope="module")
def harness(library: Path) -> Path:
    return compile_harness(library.parent)


@pytest.mark.parametrize("version", ["0", "1"])
def test_every_plugin_lives_as_tensorrt_has_it(library: Path, harness: Path, version: str) -> None:
    done = subprocess.run([str(harness), str(library), version], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == OPERATORS


def test_a_real_registry_lists_the_creators_and_makes_plugins(library: Path) -> None:
    command = [sys.executable, "-c", REGISTRY, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == OPERATORS


def test_builds_with_plugins_load_them_and_parse_their_nodes(
    library: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    major = ctypes.c_int32()
    ctypes.CDLL(str(library)).retouch_trt_describe(ctypes.byref(major), ctypes.byref(ctypes.c_int32()))
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", FakeCuda())
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver())
    monkeypatch.setenv("RETOUCH_TRT_PLUGINS", str(library))
    other = FakeTensorRt(f"{10 if major.value == 11 else 11}.0.0")
    monkeypatch.setitem(sys.modules, "tensorrt", other)
    options = BuildOptions(Target.TENSORRT, plugins=True, version_compatible=True, rows=("all",))
    said = f"compiled for TensorRT {other.__version__[:2]} .*got TensorRT {major.value}"
    with pytest.raises(EngineMissingError, match=said):
        build(bundle, options)
    trt = FakeTensorRt(f"{major.value}.1.0")
    monkeypatch.setitem(sys.modules, "tensorrt", trt)
    with monkeypatch.context() as patch, pytest.raises(EngineMissingError, match="interface 99, got .*make plugins"):
        patch.setattr("retouch.engines.tensorrt._plugins._INTERFACE", 99)
        build(bundle, options)
    engines = build(bundle, options)
    assert {engine.spec.traits for engine in engines} == {("version-compatible", "plugins")}
    assert set(trt.libraries) == set(trt.serialised) == {str(library)}
    assert trt.previews == set()  # plugins that write into their inputs would write into states
    nodes = [node for model in trt.parsed for node in model.graph.node if node.domain == "ai.retouch"]
    assert {"EditConv"} <= {node.op_type for node in nodes if not node.op_type.startswith("Rows")}
    for node in nodes:
        named = {attribute.name for attribute in node.attribute}
        keeps_body = node.op_type.startswith("Rows")
        assert keeps_body or {"plugin_namespace", "plugin_version"} <= named
