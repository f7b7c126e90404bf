"""Engines without weights get those of their bundle."""

from __future__ import annotations

from typing import Any

from retouch.bundle import Bundle, relocate
from retouch.engines._library import Library
from retouch.engines.ort import prune_file
from retouch.engines.tensorrt._given_operands import with_given_operands
from retouch.engines.tensorrt._loaded import LoadedEngine
from retouch.errors import EngineError

__all__ = ["fill_weights"]


def fill_weights(library: Library, logger: Any, loaded: LoadedEngine, bundle: Bundle) -> None:  # noqa: ANN401
    """Puts the weights of a bundle's graph into an engine of that graph.

    Raises:
        EngineError: the library does not take them.
    """
    trt, messages, spec = library.trt, loaded.messages, loaded.spec
    model = with_given_operands(prune_file(bundle.path / spec.graph, spec.outputs))
    # Weights come from the folder of this path.
    place = str(relocate(model, bundle.path).resolve() / spec.graph)
    messages.clear()
    refitter = trt.Refitter(loaded.engine, logger)
    if not trt.OnnxParserRefitter(refitter, logger).refit_from_bytes(model.SerializeToString(), place):
        raise _refused(loaded, "does not take the weights of")
    missing = refitter.get_missing_weights()
    if missing or not refitter.refit_cuda_engine():
        raise _refused(loaded, f"finds no {', '.join(missing)} for" if missing else "does not put weights into")


def _refused(loaded: LoadedEngine, what: str) -> EngineError:
    return EngineError(
        f"{loaded.spec.target} {what} the engine of {loaded.spec.graph}: {loaded.messages.cause}. Build it again with "
        "`retouch build`, without --refit if that does not help."
    )
