"""The engine that a session runs on, and where its states are kept."""

from __future__ import annotations

from collections.abc import Sequence

from retouch.bundle import Bundle
from retouch.engines import Engine, Target
from retouch.engines.ort import OrtEngine, PrebuiltOrtEngine, Provider, WeightStorage
from retouch.engines.tensorrt import TensorRtEngine
from retouch.errors import RetouchError
from retouch.states import DeviceTier, StateStore

ORT = "onnxruntime"
ENGINES = (ORT, *(target.value for target in Target))


def checked_engine(
    name: str,
    providers: Sequence[Provider] | None,
    threads: int | None,
    weights: WeightStorage = WeightStorage.FLOAT32,
) -> str:
    """The name of an engine that takes those options.

    Raises:
        RetouchError: there is no such engine, or it has no such options.
    """
    if name not in ENGINES:
        raise RetouchError(f"Expected engine to be one of {', '.join(map(repr, ENGINES))}, got {name!r}.")
    if name not in (ORT, Target.ORT) and (providers is not None or threads is not None):
        raise RetouchError(
            f"Expected no providers and no threads for engine {name!r}, which runs on a GPU; got {providers!r} and "
            f"{threads!r}. They are options of {ORT!r} and {Target.ORT.value!r}."
        )
    if name != ORT and weights is not WeightStorage.FLOAT32:
        raise RetouchError(
            f"Expected weights as they are for engine {name!r}, got {weights}. Such an engine gets its "
            "precision when it is built (retouch build --precision)."
        )
    return name


def start_engine(
    name: str,
    bundle: Bundle,
    providers: Sequence[Provider] | None,
    threads: int | None,
    weights: WeightStorage = WeightStorage.FLOAT32,
) -> Engine:
    """The engine of that name.

    Raises:
        RetouchError: the bundle is for another batch than its graphs, which this engine runs as they are.
        EngineMissingError: what it needs is not installed, or there is no GPU.
    """
    if name == ORT and bundle.batch is not None:
        raise RetouchError(
            f"Expected an engine that was built for batches of {bundle.batch}, got {ORT!r}: graphs have the batch of "
            f"their export. Name the engine that was built ({', '.join(ENGINES[1:])})."
        )
    if name == ORT:
        return OrtEngine(providers, threads, weights)
    if name == Target.ORT:
        return PrebuiltOrtEngine(bundle, providers, threads)
    return TensorRtEngine(bundle, Target(name))


def make_store(name: str) -> StateStore:
    """A store for what runs on an engine keep, where the engine has it."""
    return StateStore() if name in (ORT, Target.ORT) else StateStore(DeviceTier())
