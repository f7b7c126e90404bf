"""Builds that cannot be carried out say why, whatever is installed."""

from __future__ import annotations

import sys
import types

import pytest

from retouch.bundle import Bundle, StackSpec
from retouch.engines import load_library
from retouch.errors import BuildRequestError, EngineMissingError
from retouch.trt_plugins import BuildOptions, Precision, Target, build
from retouch.trt_plugins._graphs import graphs_of
from retouch.trt_plugins._options import precision_of


@pytest.mark.parametrize(
    ("target", "remedy"), [(Target.TENSORRT, "tensorrt-cu13>=10"), (Target.TENSORRT_RTX, r"retouch\[trt\]")]
)
def test_a_library_that_is_not_installed(
    target: Target, remedy: str, read_only_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, target.module, None)
    with pytest.raises(EngineMissingError, match=f"Expected the package {target.module} .*{remedy}"):
        build(read_only_bundle, BuildOptions(target))


@pytest.mark.parametrize(("target", "version"), [(Target.TENSORRT, "8.6.1"), (Target.TENSORRT_RTX, "2.0.0")])
def test_a_library_of_another_major_version(target: Target, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(target.module)
    module.__version__ = version
    monkeypatch.setitem(sys.modules, target.module, module)
    with pytest.raises(EngineMissingError, match=rf"of major version .*, got {version}.*ONNX Runtime's own"):
        load_library(target)


def test_options_that_a_target_does_not_have() -> None:
    with pytest.raises(BuildRequestError, match="no compute capabilities for tensorrt, .*got 8.9"):
        BuildOptions(Target.TENSORRT, devices=("8.9",))
    with pytest.raises(BuildRequestError, match="feature of tensorrt; tensorrt-rtx has none"):
        BuildOptions(Target.TENSORRT_RTX, version_compatible=True)


def test_precisions_that_the_graphs_do_not_have(read_only_bundle: Bundle) -> None:
    manifest = read_only_bundle.manifest
    assert precision_of(manifest, None) is Precision.FLOAT32
    assert precision_of(manifest, Precision.TF32) is Precision.TF32
    for other in (Precision.FLOAT16, Precision.BFLOAT16):
        with pytest.raises(BuildRequestError, match=f"precision float32 or tf32, .* got {other}.*--precision {other}"):
            precision_of(manifest, other)


def test_modes_that_a_bundle_does_not_have(read_only_bundle: Bundle) -> None:
    with pytest.raises(BuildRequestError, match="modes among cached, which the bundle has, got corrected"):
        graphs_of(read_only_bundle, ["corrected"])
    with pytest.raises(BuildRequestError, match="got none"):
        graphs_of(read_only_bundle, [])


def test_stacks_of_a_bundle_that_has_none(read_only_bundle: Bundle) -> None:
    manifest = read_only_bundle.manifest
    assert [graph.stacked for graph in graphs_of(read_only_bundle, ["cached"], stacked=True)][-1]
    without = Bundle(read_only_bundle.path, manifest.replace(stacked={"cached": StackSpec(None, "it sums over rows")}))
    with pytest.raises(
        BuildRequestError, match="to have a stacked graph for cached moments, but it has none: it sums over rows"
    ):
        graphs_of(without, ["cached"], stacked=True)
