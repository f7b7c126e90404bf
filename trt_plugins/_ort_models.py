"""A graph as ONNX Runtime runs it: optimised for its execution providers, or compiled by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

from retouch.engines import Library
from retouch.engines.ort import COMPILING, OrtEngine, compiled, custom_ops_library
from retouch.errors import BuildRequestError
from retouch.trt_plugins._compile import Engine, Tell, Work
from retouch.trt_plugins._open_dims import Shape, input_shapes
from retouch.trt_plugins._options import BuildOptions
from retouch.trt_plugins._plugin_nodes import with_plugins

__all__ = ["compile_for_ort", "profile_options", "providers_of", "take_profiles"]

_PREFIXES = {"TensorrtExecutionProvider": "trt", "NvTensorRTRTXExecutionProvider": "nv"}
"""What providers' options begin with."""
_POINTS = ("min", "opt", "max")


def providers_of(options: BuildOptions) -> tuple[str, ...]:
    """The execution providers to build for: those that are asked for, or those that sessions take by themselves.

    Raises:
        BuildRequestError: plugins are asked for with a provider that takes none of this kind.
    """
    if options.plugins and any(provider in COMPILING for provider in options.devices):
        raise BuildRequestError(
            f"Expected providers that run operators themselves for plugins, got {', '.join(options.devices)}. Build "
            "without plugins, or for CUDAExecutionProvider."
        )
    return options.devices or OrtEngine().providers


def take_profiles(providers: Sequence[str]) -> bool:
    """Whether providers want to know the sizes of open dims; kernels take any."""
    return any(provider in _PREFIXES for provider in providers)


def compile_for_ort(library: Library, work: Work, options: BuildOptions, tell: Tell) -> Engine:
    """The model that ONNX Runtime makes of a graph; it names the bundle's weights file as the graph does.

    Args:
        library: ONNX Runtime.
        work: the graph, and what it is to become.
        options: what to build.
        tell: called with what is done.

    Raises:
        EngineMissingError: a provider or a library is missing.
        BuildError: ONNX Runtime refuses the graph, or a provider compiles nothing of it.
    """
    providers = providers_of(options)
    model, operators = work.graph.model, None
    if options.plugins:
        operators = custom_ops_library()
        model = onnx.ModelProto()
        model.CopyFrom(work.graph.model)
        with_plugins(model, places=True)
    tell(f"{work.name}: compile with {library.target} {library.version} for {', '.join(providers)}")
    shaped = tuple((provider, profile_options(provider, work)) for provider in providers)
    made = compiled(shaped, model, work.graph.folder, work.name, operators)
    for tensor in made.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = Path(entry.value).name  # who opens the bundle knows where that lies
    return Engine(memoryview(made.SerializeToString()), len(made.graph.node), providers)


def profile_options(provider: str, work: Work) -> dict[str, str]:
    """The profiles of an engine as options of a provider that compiles, one range of every input behind another."""
    prefix = _PREFIXES.get(provider)
    if prefix is None or not work.profiles:
        return {}
    shapes = input_shapes(work.graph.model.graph)
    opened = {name: shape for name, shape in shapes.items() if any(isinstance(dim, str) for dim in shape)}
    return {
        f"{prefix}_profile_{kind}_shapes": ",".join(
            f"{name}:{_sizes(shape, profile.dims, point)}"
            for profile in work.profiles
            for name, shape in opened.items()
        )
        for point, kind in enumerate(_POINTS)
    }


def _sizes(shape: Shape, dims: Mapping[str, tuple[int, int, int]], point: int) -> str:
    return "x".join(str(dims[dim][point] if isinstance(dim, str) else dim) for dim in shape)
