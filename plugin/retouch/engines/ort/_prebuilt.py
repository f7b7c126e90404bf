"""ONNX Runtime on models that were built from a bundle ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from retouch.bundle import PLUGINS, Bundle, EngineSpec, relocate
from retouch.engines._target import Target
from retouch.engines.ort._custom_ops import custom_ops_library
from retouch.engines.ort._engine import OrtEngine, Provider
from retouch.engines.ort._program import OrtProgram
from retouch.engines.ort._prune import prune_graph
from retouch.engines.ort._runtime import load_onnxruntime
from retouch.errors import EngineError, EngineMissingError

__all__ = ["PrebuiltOrtEngine"]


class PrebuiltOrtEngine(OrtEngine):
    """Runs what ``retouch build --engine ort`` built: optimised graphs and EPContext models."""

    def __init__(self, bundle: Bundle, providers: Sequence[Provider] | None = None, threads: int | None = None) -> None:
        """Keeps the options; models are read when they are first needed.

        Args:
            bundle: the bundle.
            providers: execution providers, for which models were built; ``None`` means those of the newest models.
            threads: threads per run; ``None`` leaves the choice to onnxruntime.

        Raises:
            RetouchError: the number of threads is none, or the providers are a single name.
        """
        built = [spec.devices for spec in bundle.manifest.engines.values() if spec.target == Target.ORT]
        super().__init__(built[-1] if providers is None and built else providers, threads)
        self._bundle = bundle

    def refusal(self, graph: Path) -> str | None:
        """Why the engine cannot run a graph of the bundle, ``None`` if it can."""
        return None if self._names(graph.name, None) else f"no model of {graph.name} was built for {Target.ORT}"

    def open(self, graph: Path, outputs: Sequence[str] | None = None) -> OrtProgram:
        """A program that computes only those outputs of a graph; ``None`` means all that its model has.

        Raises:
            EngineMissingError: no model of the graph was built for these providers, or what it needs is not there.
            EngineError: it was built by another onnxruntime, or does not load.
            BundleError: its file is missing, truncated or changed.
        """
        names = self._names(graph.name, outputs)
        if not names:
            raise self._missing(graph.name)
        path, spec = self._bundle.engine(names[-1])
        self._check(spec)
        model = onnx.load(path, load_external_data=False)
        if outputs is not None:
            prune_graph(model.graph, outputs)
        folder = relocate(model, self._bundle.path)
        library = custom_ops_library() if PLUGINS in spec.traits else None
        session = self.load(model.SerializeToString(), folder, graph.name, library)
        return self._program(session)

    def _names(self, graph: str, outputs: Sequence[str] | None) -> list[str]:
        """The models of a graph that have those outputs, the newest last."""
        return [
            name
            for name, spec in self._bundle.manifest.engines.items()
            if (spec.target, spec.graph, spec.devices) == (Target.ORT, graph, self.providers)
            and (outputs is None or {*outputs} <= {*spec.outputs})
        ]

    def _missing(self, graph: str) -> EngineMissingError:
        wanted = "".join(f" --device {provider}" for provider in self.providers)
        return EngineMissingError(
            f"Expected {self._bundle.path} to have a model of {graph} with all outputs that the session asks for, for "
            f"{', '.join(self.providers)}. Build it with `retouch build {self._bundle.path} --engine ort{wanted}`, for "
            "the GroupNorm modes that the session uses (--group-norm)."
        )

    def _check(self, spec: EngineSpec) -> None:
        installed = load_onnxruntime().__version__
        if spec.version != installed:
            raise EngineError(
                f"Expected a model of {spec.graph} for onnxruntime {installed}, which is installed, got one of "
                f"{spec.version}. Build it again with `retouch build {self._bundle.path} --engine ort`, or open the "
                "session with engine='onnxruntime', which needs no build."
            )
