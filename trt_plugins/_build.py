"""Builds the engines of a bundle, those that are not there yet."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from retouch.bundle import Bundle, EngineSpec, FileSpec, Manifest, ProfileSpec, check_writable, store_engine
from retouch.engines import Library, Target, load_library
from retouch.engines.tensorrt import card_name
from retouch.errors import BundleError
from retouch.files import exclusive
from retouch.trt_plugins._batch_profiles import at_usual_batch, with_batches
from retouch.trt_plugins._compile import Work, compile_graph
from retouch.trt_plugins._graphs import BuildGraph, LoadedGraph, graphs_of, load_graph
from retouch.trt_plugins._open_dims import input_shapes
from retouch.trt_plugins._options import BatchRange, BuildOptions, precision_of
from retouch.trt_plugins._ort_models import compile_for_ort, providers_of, take_profiles
from retouch.trt_plugins._plugin_nodes import PLUGIN_VERSION
from retouch.trt_plugins._precision import Precision
from retouch.trt_plugins._profiles import profiles
from retouch.trt_plugins._row_counts import row_counts, stacked_counts

__all__ = ["BuiltEngine", "build", "outdated"]

Tell = Callable[[str], None]


@dataclass(frozen=True)
class BuiltEngine:
    """An engine of a bundle after a build.

    Attributes:
        name: its path in the bundle.
        spec: what it is.
        kept: whether it was there already and nothing it is made from changed.
        layers: the layers of its network before the library fused them, ``None`` if it was kept.
        seconds: time that building took.
    """

    name: str
    spec: EngineSpec
    kept: bool
    layers: int | None
    seconds: float


@dataclass(frozen=True)
class _Planned:
    graph: BuildGraph
    loaded: LoadedGraph
    profiles: tuple[ProfileSpec, ...]
    precision: Precision
    source: str


def build(
    bundle: Bundle | str | Path,
    options: BuildOptions,
    *,
    engines_from: str | Path | None = None,
    tell: Tell | None = None,
) -> list[BuiltEngine]:
    """The engines of a bundle, the base graph's first; those are built that are missing or out of date.

    Each engine appears in the bundle as soon as it is complete, so that an interrupted build goes on where it was. Of
    several builds of one bundle at once, one works and the others wait.

    Args:
        bundle: the bundle, or its directory.
        options: what to build.
        engines_from: another bundle, whose engines are copied where they are made from and by the same; with
            ``refit`` also those of a bundle with other weights.
        tell: called with one line before every step.

    Raises:
        EngineMissingError: what builds them is not installed, or needs a GPU and finds none.
        BuildRequestError: the options do not fit the bundle.
        BuildError: the library refuses a graph, or fails.
        BundleError: the bundle is damaged or cannot be written to.
    """
    library = load_library(options.target)
    opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    say = tell or (lambda _: None)
    others = None if engines_from is None else Bundle.open(engines_from, check="size")
    with exclusive(opened.path, lambda: say(f"{opened.path}: another build is at work, wait for it")):
        opened = Bundle.open(opened.path, check="none")  # with what that one built
        return [
            _kept(opened, plan) or _taken(opened, others, plan, say) or _made(opened, library, plan, options, say)
            for plan in _plans(opened, library, options)
        ]


def outdated(bundle: Bundle, options: BuildOptions) -> list[str]:
    """The graphs of a bundle whose engines are missing or out of date, by their files.

    Raises:
        EngineMissingError: what builds them is not installed, or needs a GPU and finds none.
        BuildRequestError: the options do not fit the bundle.
    """
    plans = _plans(bundle, load_library(options.target), options)
    return [plan.graph.file for plan in plans if _kept(bundle, plan) is None]


def _plans(bundle: Bundle, library: Library, options: BuildOptions) -> list[_Planned]:
    manifest = bundle.manifest
    precision = precision_of(manifest, options.precision)
    rows = manifest.grid(manifest.editable.grid).rows
    devices = _devices(library, options)
    counts = row_counts(options.rows, rows)
    if library.target is Target.ORT and not take_profiles(devices):
        counts = ()
    modes = options.group_norm if options.group_norm is not None else tuple(manifest.edits)
    other = None if options.batch is None else Bundle.open(options.batch.other, check="size")
    single: dict[str, tuple[int, ...]] = {}
    found = []
    for graph in graphs_of(bundle, modes, stacked=options.stacked):
        loaded = load_graph(bundle, graph, other, single)
        single.update(loaded.single)
        wanted = stacked_counts(counts, rows) if graph.stacked else counts
        ranges = _profiles(manifest, graph, loaded, wanted, options.batch)
        source = _digest(loaded, library, ranges, precision, devices, options)
        found.append(_Planned(graph, loaded, ranges, precision, source))
    return found


def _devices(library: Library, options: BuildOptions) -> tuple[str, ...]:
    """What engines are built for. Who builds for the card that is there builds anew on a machine with another one."""
    if library.target is Target.ORT:
        return providers_of(options)
    return options.devices if library.target.builds_without_gpu else (card_name(),)


def _profiles(
    manifest: Manifest, graph: BuildGraph, loaded: LoadedGraph, counts: Sequence[int], batch: BatchRange | None
) -> tuple[ProfileSpec, ...]:
    shapes = at_usual_batch(input_shapes(loaded.model.graph), loaded.batch)
    found: tuple[ProfileSpec, ...] = ()
    if graph.edit is not None:
        found = profiles(manifest, graph.edit, shapes, counts, stacked=graph.stacked)
    if batch is None or loaded.batch is None:
        return found
    rows = manifest.grid(manifest.editable.grid).rows
    return with_batches(found or (ProfileSpec(rows, {}),), batch, loaded.batch)


def _digest(
    loaded: LoadedGraph,
    library: Library,
    ranges: Sequence[ProfileSpec],
    precision: Precision,
    devices: Sequence[str],
    options: BuildOptions,
) -> str:
    """A digest of everything that an engine is made from and by."""
    parts = {
        "graph": loaded.structure if options.refit else loaded.digest,
        "target": library.target,
        "version": library.version,
        "profiles": [asdict(profile) for profile in ranges],
        "precision": precision,
        "devices": devices,
        "traits": options.traits,
        **({"plugins": PLUGIN_VERSION} if options.plugins else {}),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _kept(bundle: Bundle, plan: _Planned) -> BuiltEngine | None:
    """The engine that is there, if it was made from the same and is whole."""
    for name, spec in bundle.manifest.engines.items():
        if spec.source == plan.source:
            try:
                bundle.engine(name)
            except BundleError:
                return None
            return BuiltEngine(name, spec, kept=True, layers=None, seconds=0.0)
    return None


def _taken(bundle: Bundle, other: Bundle | None, plan: _Planned, say: Tell) -> BuiltEngine | None:
    """A copy of another bundle's engine, if it has one that was made from the same."""
    found = _kept(other, plan) if other is not None else None
    if other is None or found is None:
        return None
    check_writable(bundle.path, found.spec.target)
    start = time.perf_counter()
    say(f"{plan.graph.file}: copy the engine of {other.path}")
    name = store_engine(bundle.path, memoryview((other.path / found.name).read_bytes()), found.spec)
    return BuiltEngine(name, found.spec, kept=False, layers=None, seconds=time.perf_counter() - start)


def _made(bundle: Bundle, library: Library, plan: _Planned, options: BuildOptions, say: Tell) -> BuiltEngine:
    check_writable(bundle.path, library.target)
    start = time.perf_counter()
    work = Work(plan.graph.file, plan.loaded, plan.profiles, plan.precision)
    compile_it = compile_for_ort if library.target is Target.ORT else compile_graph
    engine = compile_it(library, work, options, say)
    spec = EngineSpec(
        graph=plan.graph.file,
        target=library.target,
        version=library.version,
        precision=plan.precision,
        devices=engine.devices,
        traits=options.traits,
        outputs=plan.graph.outputs,
        profiles=plan.profiles,
        source=plan.source,
        file=FileSpec(0, ""),
        batch_axes=plan.loaded.batch_axes,
    )
    say(f"{plan.graph.file}: write {engine.contents.nbytes / 2**20:.1f} MiB")
    name = store_engine(bundle.path, engine.contents, spec)
    stored = Bundle.open(bundle.path, check="none").manifest.engines[name]
    return BuiltEngine(name, stored, kept=False, layers=engine.layers, seconds=time.perf_counter() - start)
