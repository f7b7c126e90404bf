"""``retouch build``: engines built ahead of time, of a bundle or by a build file."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from retouch.bundle import Bundle, update_manifest
from retouch.cli._export_directory import export_any
from retouch.cli._profiles import profile_request
from retouch.cli._recipe import Recipe, build_options, choice, export_options, read_recipe, recipe_digest
from retouch.cli._results import JSON_HELP, result_console, write_json
from retouch.cli._steps import Steps
from retouch.errors import BuildRequestError, BundleError
from retouch.files import exclusive, linked_copy
from retouch.models import is_pipeline
from retouch.trt_plugins import BuildOptions, BuiltEngine, Precision, Target, build, outdated

_STALE = 3
_BUILD_FILE = ".toml"

_What = Annotated[Path, typer.Argument(metavar="BUNDLE|FILE.toml", help="Directory of the bundle, or a build file.")]
_Engine = Annotated[str | None, typer.Option(help=f"What runs the engines: {', '.join(Target)}.")]
_Precision = Annotated[
    str | None, typer.Option(help="What they compute in; tf32 rounds products of float32. Default: as the bundle.")
]
_Profile = Annotated[
    list[str] | None,
    typer.Option(
        help="rows=: active rows of the editable grid, each with a profile; batch=LEAST..MOST: batches to serve."
    ),
]
_OtherBatch = Annotated[
    Path | None, typer.Option(metavar="BUNDLE", help="For batch=: the same model, exported for another batch.")
]
_GroupNorm = Annotated[
    list[str] | None, typer.Option(help="GroupNorm modes to build edit graphs of; default: all that the bundle has.")
]
_Device = Annotated[
    list[str] | None,
    typer.Option(help="What to build for: a compute capability like 8.9 (tensorrt-rtx), an execution provider (ort)."),
]
_Compatible = Annotated[
    bool, typer.Option("--version-compatible", help="Let newer TensorRTs of the same major version run the engines.")
]
_Plugins = Annotated[
    bool, typer.Option("--plugins", help="Run Retouch's operators by its CUDA kernels; tensorrt and ort.")
]
_Native = Annotated[
    bool, typer.Option("--native-attention", help="Attention by the library's own layer: half precision, not ort.")
]
_Stacked = Annotated[bool, typer.Option("--stacked", help="Engines for several edits of one base run at once, too.")]
_Refit = Annotated[
    bool, typer.Option("--refit", help="Engines without weights, which they take from the bundle when they are loaded.")
]
_TimingCache = Annotated[
    Path | None, typer.Option(metavar="FILE", help="What tensorrt measured, kept for later builds.")
]
_From = Annotated[
    Path | None, typer.Option("--engines-from", metavar="BUNDLE", help="Copy engines that are made from the same.")
]
_Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="With a build file: another place for the bundle.")
]
_Check = Annotated[bool, typer.Option("--check", help="Build nothing; exit with 3 if something is out of date.")]
_Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)]


def build_command(
    what: _What,
    engine: _Engine = None,
    precision: _Precision = None,
    profile: _Profile = None,
    group_norm: _GroupNorm = None,
    device: _Device = None,
    version_compatible: _Compatible = False,
    plugins: _Plugins = False,
    native_attention: _Native = False,
    stacked: _Stacked = False,
    refit: _Refit = False,
    timing_cache: _TimingCache = None,
    other_batch: _OtherBatch = None,
    engines_from: _From = None,
    output: _Output = None,
    check: _Check = False,
    json_file: _Json = None,
) -> None:
    """Builds what inference libraries run, ahead of time: engines of the base graph and of the edit graphs.

    Only what is missing or out of date is built; an interrupted build leaves no half engine. A build file names a model
    too, which is exported first if it or its options changed.

    Exits with 0 if everything is there, 1 if a library is missing or refuses a graph, 2 on bad input, and 3 if
    --check finds something to build.
    """
    flags = {
        "version_compatible": version_compatible,
        "plugins": plugins,
        "native_attention": native_attention,
        "stacked": stacked,
        "refit": refit,
    }
    options = _options(engine, precision, profile, group_norm, device, flags, timing_cache, other_batch)
    if what.suffix == _BUILD_FILE:
        if options is not None:
            raise BuildRequestError("A build file says what to build: leave the options out, or give a bundle.")
        _by_file(what, output, engines_from, check, json_file)
        return
    if output is not None:
        raise BuildRequestError("--output is for build files: engines of a bundle go into the bundle.")
    _build(Bundle.open(what), [options or BuildOptions(Target.TENSORRT_RTX)], engines_from, check, json_file)


def _options(
    engine: str | None,
    precision: str | None,
    profile: list[str] | None,
    group_norm: list[str] | None,
    device: list[str] | None,
    flags: Mapping[str, bool],
    timing_cache: Path | None,
    other_batch: Path | None,
) -> BuildOptions | None:
    """What the command line asks for, ``None`` if it says nothing."""
    if not any((engine, precision, profile, group_norm, device, timing_cache, other_batch, *flags.values())):
        return None
    asked = profile_request(profile or (), other_batch)
    return BuildOptions(
        target=choice(Target, engine or Target.TENSORRT_RTX, "--engine"),
        precision=None if precision is None else choice(Precision, precision, "--precision"),
        rows=asked.rows,
        group_norm=None if group_norm is None else tuple(group_norm),
        devices=tuple(device or ()),
        timing_cache=timing_cache,
        batch=asked.batch,
        **flags,
    )


def _by_file(file: Path, output: Path | None, engines_from: Path | None, check: bool, json_file: str | None) -> None:
    recipe = read_recipe(file)
    if output is not None:
        recipe = dataclasses.replace(recipe, bundle=str(output))
    engines = [build_options(engine) for engine in recipe.engine]
    digest = recipe_digest(recipe.model)
    if check:
        _check_by_file(recipe, _exported(recipe, digest), engines, json_file)
        return
    console = Console(stderr=True)
    with exclusive(
        file, lambda: console.print(f"{file}: another build is at work, wait for it", markup=False, soft_wrap=True)
    ):
        bundle = _exported(recipe, digest)
        if bundle is not None:
            _build(bundle, engines, engines_from, check, json_file)
            return
        with _previous(recipe, engines) as previous:
            _build(_export(recipe, digest), engines, engines_from or previous, check, json_file)


def _check_by_file(
    recipe: Recipe, bundle: Bundle | None, engines: Sequence[BuildOptions], json_file: str | None
) -> None:
    if bundle is not None:
        _build(bundle, engines, None, True, json_file)
        return
    write_json(json_file, {"bundle": recipe.bundle, "outdated": [recipe.bundle]})
    Console(stderr=True).print(f"{recipe.bundle} is out of date", highlight=False)
    raise typer.Exit(_STALE)


@contextlib.contextmanager
def _previous(recipe: Recipe, engines: Sequence[BuildOptions]) -> Iterator[Path | None]:
    """The bundle that an export is about to replace: engines of graphs that come out the same are taken from it."""
    there = Path(recipe.bundle)
    with linked_copy(there) if engines and _has_engines(there) else contextlib.nullcontext() as copy:
        yield copy if copy is not None and _has_engines(copy) else None


def _has_engines(path: Path) -> bool:
    try:
        return bool(Bundle.open(path, check="size").manifest.engines)
    except BundleError:
        return False


def _exported(recipe: Recipe, digest: str) -> Bundle | None:
    """The bundle that is there, if it was exported from the same by the same options and is whole."""
    try:
        bundle = Bundle.open(recipe.bundle)
    except BundleError:
        return None
    return bundle if bundle.manifest.recipe == digest else None


def _export(recipe: Recipe, digest: str) -> Bundle:
    model, target = recipe.model, Path(recipe.bundle)
    if is_pipeline(Path(model.source)):
        raise BuildRequestError(
            f"{model.source} is a pipeline of several models. Write a build file for each, with the folder of one as "
            "source."
        )
    _check_place(target)
    with Steps() as steps:
        (bundle,) = export_any(
            Path(model.source), target, export_options(model), part=model.part, opset=model.opset, tell=steps.begin
        ).values()
    update_manifest(bundle.path, bundle.manifest.replace(recipe=digest))
    return Bundle.open(bundle.path, check="none")


def _check_place(bundle: Path) -> None:
    """Checks that a bundle can be written, before time goes into exporting it."""
    try:
        bundle.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=bundle.parent):
            pass
    except OSError as error:
        raise BundleError(
            f"The bundle cannot be written to {bundle}: {error}. Give another place with --output."
        ) from error


def _build(
    bundle: Bundle, engines: Sequence[BuildOptions], engines_from: Path | None, check: bool, json_file: str | None
) -> None:
    if check:
        stale = [f"{options.target}: {graph}" for options in engines for graph in outdated(bundle, options)]
        write_json(json_file, {"bundle": str(bundle.path), "outdated": stale})
        for line in stale:
            Console(stderr=True).print(f"{line} is out of date", highlight=False)
        if stale:
            raise typer.Exit(_STALE)
        return
    built: list[BuiltEngine] = []
    with Steps() as steps:
        for options in engines:
            opened = Bundle.open(bundle.path, check="none")
            built += build(opened, options, engines_from=engines_from, tell=steps.begin)
    write_json(json_file, {"bundle": str(bundle.path), "engines": [_summary(engine) for engine in built]})
    result_console(json_file).print(_table(built))


def _summary(engine: BuiltEngine) -> dict[str, Any]:
    return {
        "name": engine.name,
        "kept": engine.kept,
        "layers": engine.layers,
        "seconds": round(engine.seconds, 3),
        **dataclasses.asdict(engine.spec),
    }


def _table(built: Sequence[BuiltEngine]) -> Table:
    table = Table("graph", "engine", "precision", "rows", "layers", "MiB", "")
    for engine in built:
        spec = engine.spec
        table.add_row(
            spec.graph,
            f"{spec.target} {spec.version}",
            spec.precision,
            escape(", ".join(str(profile.rows) for profile in spec.profiles)),
            "" if engine.layers is None else str(engine.layers),
            f"{spec.file.bytes / 2**20:.1f}",
            "up to date" if engine.kept else f"built in {engine.seconds:.1f} s",
        )
    return table
