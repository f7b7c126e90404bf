"""Which of a bundle's engines runs a graph, and whether it can run here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retouch.bundle import VERSION_COMPATIBLE, Bundle, EngineSpec, Manifest
from retouch.engines._library import Library
from retouch.engines._target import Target
from retouch.engines.tensorrt._cuda import Cuda
from retouch.errors import EngineError, EngineMissingError

__all__ = ["choose_engine", "missing_engine", "read_engine"]

_CURRENT = "current"
"""How TensorRT-RTX names the card of the machine that builds."""


def choose_engine(
    manifest: Manifest, target: Target, graph: str, outputs: Sequence[str] | None, cuda: Cuda
) -> str | None:
    """The name of the engine of a graph that has those outputs; ``None`` if there is none.

    If there are several, the one that was built last comes last and is taken, of those that run on the card.
    """
    names = [
        name
        for name, spec in manifest.engines.items()
        if spec.target == target and spec.graph == graph and (outputs is None or {*outputs} <= {*spec.outputs})
    ]
    here = [name for name in names if _runs_on(manifest.engines[name], cuda)]
    return (here or names)[-1] if names else None


def _runs_on(spec: EngineSpec, cuda: Cuda) -> bool:
    return not spec.devices or bool({cuda.capability, cuda.name, _CURRENT} & {*spec.devices})


def missing_engine(bundle: Path, manifest: Manifest, target: Target, graph: str) -> EngineMissingError:
    """Says that there is no engine for what is asked of a graph, and how to get one."""
    there = sorted({spec.graph for spec in manifest.engines.values() if spec.target == target})
    return EngineMissingError(
        f"Expected {bundle} to have an engine of {graph} for {target} with all outputs that the session asks for, got "
        f"engines of {', '.join(there) or 'no graph'}. Build it with `retouch build {bundle} --engine {target}`, with "
        "the GroupNorm modes that the session uses (--group-norm)."
    )


def read_engine(bundle: Bundle, name: str, library: Library, cuda: Cuda) -> bytes:
    """The contents of an engine's file, if this library runs it on this card.

    Raises:
        BundleError: the file is missing, truncated or changed.
        EngineError: it was built by another version, or for other cards.
    """
    path, spec = bundle.engine(name)
    _check(bundle.path, spec, library, cuda)
    return path.read_bytes()


def _check(bundle: Path, spec: EngineSpec, library: Library, cuda: Cuda) -> None:
    again = f"Build it again with `retouch build {bundle} --engine {spec.target}`"
    compatible = VERSION_COMPATIBLE in spec.traits and _major(spec.version) == _major(library.version)
    if spec.version != library.version and not compatible:
        raise EngineError(
            f"Expected an engine of {spec.graph} for {spec.target} {library.version}, which is installed, got one of "
            f"{spec.version}: engines run on the version that built them. {again}, or install {spec.version}."
        )
    if not _runs_on(spec, cuda):
        raise EngineError(
            f"Expected an engine of {spec.graph} for {cuda.name} (compute capability {cuda.capability}), got one for "
            f"{', '.join(spec.devices)}. {again} on a machine with such a card, or for it with --device."
        )


def _major(version: str) -> str:
    return version.split(".", maxsplit=1)[0]
