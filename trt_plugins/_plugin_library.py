"""Networks whose operators of Retouch's are run by its plugins."""

from __future__ import annotations

import dataclasses
from typing import Any

import onnx

from retouch.engines import Library
from retouch.engines.tensorrt import plugin_library
from retouch.errors import BuildError
from retouch.trt_plugins._graphs import LoadedGraph
from retouch.trt_plugins._plugin_nodes import with_plugins

__all__ = ["with_plugins_of"]


def with_plugins_of(
    library: Library,
    builder: Any,  # noqa: ANN401  (of an optional library)
    config: Any,  # noqa: ANN401
    graph: LoadedGraph,
    *,
    serialised: bool,
) -> LoadedGraph:
    """The graph with nodes of plugins, after a builder has learnt of these.

    Args:
        library: TensorRT.
        builder: its builder.
        config: the builder's configuration.
        graph: the graph, which stays as it is.
        serialised: whether engines carry the plugin library with them.

    Raises:
        EngineMissingError: the plugin library is missing, or was compiled for another TensorRT.
        BuildError: TensorRT does not load it.
    """
    path = str(plugin_library(library))
    if builder.get_plugin_registry().load_library(path) is None:
        raise BuildError(f"Expected TensorRT {library.version} to load {path}, but it does not. Build it again.")
    if serialised:
        config.plugins_to_serialize = [path]
    # PreviewFeature.ALIASED_PLUGIN_IO_10_03 stays off: ScatterRows would write into states, which later edits read.
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    with_plugins(model)
    return dataclasses.replace(graph, model=model)
