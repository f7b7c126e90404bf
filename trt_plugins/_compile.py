"""A network becomes an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retouch.bundle import ProfileSpec
from retouch.engines import Library
from retouch.engines.tensorrt import Messages, card_name, logger
from retouch.errors import BuildError, EngineMissingError
from retouch.trt_plugins._devices import chosen_devices
from retouch.trt_plugins._graphs import LoadedGraph
from retouch.trt_plugins._native_attention import with_native_attention
from retouch.trt_plugins._open_dims import Shape, input_shapes
from retouch.trt_plugins._options import BuildOptions
from retouch.trt_plugins._parse import parse, strongly_typed
from retouch.trt_plugins._plugin_library import with_plugins_of
from retouch.trt_plugins._precision import Precision
from retouch.trt_plugins._progress import progress_monitor
from retouch.trt_plugins._refit import check_refit
from retouch.trt_plugins._timing_cache import keep_timing_cache, use_timing_cache

__all__ = ["Engine", "Tell", "Work", "compile_graph"]

Tell = Callable[[str], None]

_GLANCE = 0.2
"""Seconds between two looks for signals."""


@dataclass(frozen=True)
class Engine:
    """An engine in memory.

    Attributes:
        contents: what goes into the file.
        layers: number of layers that the graph had before the library fused them.
        devices: what it runs on.
    """

    contents: memoryview
    layers: int
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Work:
    """What becomes an engine.

    Attributes:
        name: what to call the graph in messages.
        graph: the graph.
        profiles: the sizes of its open dims.
        precision: what it computes in.
    """

    name: str
    graph: LoadedGraph
    profiles: Sequence[ProfileSpec]
    precision: Precision


def compile_graph(library: Library, work: Work, options: BuildOptions, tell: Tell) -> Engine:
    """The engine of a graph.

    Args:
        library: what builds it.
        work: the graph, and what it is to become.
        options: what to build.
        tell: called with what the library is at.

    Raises:
        BuildError: the library does not take the graph, or fails to build it.
        EngineMissingError: the library needs a GPU and finds none.
    """
    trt, messages = library.trt, Messages()
    log = logger(trt, messages)
    if options.refit:
        check_refit(library)
    builder = _builder(library, log, messages)
    network = builder.create_network(strongly_typed(trt))
    config = builder.create_builder_config()
    _set_flags(trt, config, work.precision, options)
    graph = work.graph
    if options.plugins:
        graph = with_plugins_of(library, builder, config, graph, serialised=options.version_compatible)
    if options.native_attention:
        graph = replace(graph, model=with_native_attention(graph.model))
    tell(f"{work.name}: parse")
    parser = parse(trt, network, log, graph, messages, work.name)
    devices = chosen_devices(trt, config, options.devices) if library.target.builds_without_gpu else (card_name(),)
    _add_profiles(builder, config, work)
    if options.timing_cache is not None:
        use_timing_cache(config, options.timing_cache)
    cancelled = threading.Event()
    config.progress_monitor = progress_monitor(trt, work.name, tell, cancelled)
    serialised = _in_thread(lambda: builder.build_serialized_network(network, config), cancelled)
    del parser  # it owns the network's weights
    if serialised is None:
        raise BuildError(
            f"{trt.__name__} {library.version} could not build {work.name}: {messages.cause}. If the memory is short, "
            "build fewer profiles; if it has no kernel for attention, build without --native-attention; otherwise "
            "update it, or run the bundle on ONNX Runtime."
        )
    if options.timing_cache is not None:
        keep_timing_cache(config, options.timing_cache)
    return Engine(memoryview(serialised), network.num_layers, devices)


def _builder(library: Library, log: Any, messages: Messages) -> Any:  # noqa: ANN401
    try:
        return library.trt.Builder(log)
    except (RuntimeError, TypeError) as error:  # the binding's way to say that there is no driver
        raise EngineMissingError(
            f"Expected an NVIDIA GPU with its driver to build engines for {library.target}, got: "
            f"{messages.cause if messages.errors else error}. Engines for tensorrt-rtx are built without one."
        ) from error


def _set_flags(trt: Any, config: Any, precision: Precision, options: BuildOptions) -> None:  # noqa: ANN401
    """Edits are compared with base runs, so rounding to TF32 has to be asked for."""
    if precision is Precision.TF32:
        config.set_flag(trt.BuilderFlag.TF32)
    else:
        config.clear_flag(trt.BuilderFlag.TF32)
    if options.version_compatible:
        config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
    if options.refit:
        config.set_flag(trt.BuilderFlag.REFIT)
        config.set_flag(trt.BuilderFlag.STRIP_PLAN)


def _add_profiles(builder: Any, config: Any, work: Work) -> None:  # noqa: ANN401
    shapes = input_shapes(work.graph.model.graph)
    open_inputs = {key: shape for key, shape in shapes.items() if any(isinstance(dim, str) for dim in shape)}
    for spec in work.profiles:
        profile = builder.create_optimization_profile()
        for key, shape in open_inputs.items():
            profile.set_shape(key, *(_at(shape, spec, point) for point in range(3)))
        if config.add_optimization_profile(profile) < 0:
            raise BuildError(
                f"The sizes of {work.name} for {spec.rows} rows do not belong together: {dict(spec.dims)}. This is a "
                "defect of Retouch; leave that row count out."
            )


def _at(shape: Shape, spec: ProfileSpec, point: int) -> tuple[int, ...]:
    return tuple(spec.dims[dim][point] if isinstance(dim, str) else dim for dim in shape)


def _in_thread(work: Callable[[], Any], cancelled: threading.Event) -> Any:  # noqa: ANN401
    """The result of work in a thread, so that Ctrl-C reaches this one: in the library's callbacks it would abort."""
    result: list[Any] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
            failure.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, name="retouch-build")
    try:
        thread.start()
        # Not Thread.join: interrupted, it takes the thread for finished (Python 3.11).
        while not done.wait(_GLANCE):
            pass
    finally:
        cancelled.set()
        if thread.ident is not None:
            done.wait()
    if failure:
        raise failure[0]
    return result[0]
