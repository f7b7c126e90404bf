"""Build files: a model, how it is exported and what it is built for, in one TOML file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from retouch import __version__
from retouch.cli._profiles import batch_range
from retouch.errors import BuildRequestError
from retouch.export import ExportOptions
from retouch.files import read_dataclass, sha256_of
from retouch.trt_plugins import DEFAULT_ROWS, BuildOptions, Precision, Target

Choice = TypeVar("Choice", Target, Precision)

_MIN_COVERAGE = 0.9


@dataclass(frozen=True)
class ModelRecipe:
    """The model and how it is exported, as ``retouch export`` would; only ``source`` has to be given."""

    source: str
    input: str | None
    axes: tuple[int, ...] | None
    fix: Mapping[str, int]
    text: str
    keeps_positions: tuple[str, ...]
    precision: str | None
    part: str | None
    opset: int | None
    min_coverage: float


@dataclass(frozen=True)
class EngineRecipe:
    """What to build, as ``retouch build`` would; only ``target`` has to be given."""

    target: str
    precision: str | None
    rows: tuple[str, ...]
    group_norm: tuple[str, ...] | None
    devices: tuple[str, ...]
    version_compatible: bool
    plugins: bool
    native_attention: bool
    stacked: bool
    refit: bool
    timing_cache: str | None
    batch: str | None
    other_batch: str | None


@dataclass(frozen=True)
class Recipe:
    """A build file."""

    bundle: str
    model: ModelRecipe
    engine: tuple[EngineRecipe, ...]


_MODEL: dict[str, Any] = {
    "input": None,
    "axes": None,
    "fix": {},
    "text": "recompute",
    "keeps_positions": [],
    "precision": None,
    "part": None,
    "opset": None,
    "min_coverage": _MIN_COVERAGE,
}
_ENGINE: dict[str, Any] = {
    "precision": None,
    "rows": list(DEFAULT_ROWS),
    "group_norm": None,
    "devices": [],
    "version_compatible": False,
    "plugins": False,
    "native_attention": False,
    "stacked": False,
    "refit": False,
    "timing_cache": None,
    "batch": None,
    "other_batch": None,
}


def read_recipe(path: Path) -> Recipe:
    """The build file at a path.

    Raises:
        BuildRequestError: there is none, it is not TOML, or has members that are unknown, missing or of the wrong type.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BuildRequestError(
            f"Expected {path} to be a build file in TOML, got: {error}. docs/tensorrt.md has one."
        ) from error
    recipe = read_dataclass(_filled(data), Recipe, path.name, _fault)
    return dataclasses.replace(
        recipe,
        bundle=str(path.parent / recipe.bundle),
        model=dataclasses.replace(recipe.model, source=str(path.parent / recipe.model.source)),
        engine=tuple(_placed(engine, path.parent) for engine in recipe.engine),
    )


def _placed(engine: EngineRecipe, folder: Path) -> EngineRecipe:
    def placed(name: str | None) -> str | None:
        return None if name is None else str(folder / name)

    return dataclasses.replace(engine, timing_cache=placed(engine.timing_cache), other_batch=placed(engine.other_batch))


def _filled(data: dict[str, Any]) -> dict[str, Any]:
    """The file's members, and those that it may leave out."""
    filled = {"engine": [], **data}
    if isinstance(filled.get("model"), dict):
        filled["model"] = {**_MODEL, **filled["model"]}
    if isinstance(filled["engine"], list):
        filled["engine"] = [{**_ENGINE, **item} if isinstance(item, dict) else item for item in filled["engine"]]
    return filled


def export_options(model: ModelRecipe) -> ExportOptions:
    """The options of an export."""
    return ExportOptions(
        editable=model.input,
        axes=model.axes,
        fix=model.fix or None,
        text=model.text,
        keeps_positions=model.keeps_positions,
        precision=model.precision,
        min_coverage=model.min_coverage,
    )


def build_options(engine: EngineRecipe) -> BuildOptions:
    """The options of a build."""
    return BuildOptions(
        target=choice(Target, engine.target, "target"),
        precision=None if engine.precision is None else choice(Precision, engine.precision, "precision"),
        rows=engine.rows,
        group_norm=engine.group_norm,
        devices=engine.devices,
        version_compatible=engine.version_compatible,
        plugins=engine.plugins,
        native_attention=engine.native_attention,
        stacked=engine.stacked,
        refit=engine.refit,
        timing_cache=None if engine.timing_cache is None else Path(engine.timing_cache),
        batch=batch_range(
            () if engine.batch is None else (engine.batch,),
            None if engine.other_batch is None else Path(engine.other_batch),
        ),
    )


def recipe_digest(model: ModelRecipe) -> str:
    """A digest of everything that decides what is exported: the model's files, the options, this version of Retouch.

    Raises:
        BuildRequestError: the model is not there.
    """
    source = Path(model.source)
    options = {**dataclasses.asdict(model), "source": None, "retouch": __version__}
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode())
    for path in _source_files(source):
        digest.update(f"{path.relative_to(source.parent).as_posix()}:{sha256_of(path)};".encode())
    return digest.hexdigest()


def choice(kind: type[Choice], text: str, what: str) -> Choice:
    """The member of that value.

    Raises:
        BuildRequestError: there is none.
    """
    try:
        return kind(text)
    except ValueError as error:
        raise BuildRequestError(f"Expected {what} to be one of {', '.join(kind)}, got {text!r}.") from error


def _source_files(source: Path) -> Iterator[Path]:
    """A model's file, those beside it that hold its weights by any name, or all files of a directory."""
    if source.is_dir():
        yield from sorted(path for path in source.rglob("*") if path.is_file())
    elif source.is_file():
        yield source
        yield from (source.parent / name for name in _external_files(source))
    else:
        raise BuildRequestError(f"There is no model at {source}. Give source, in [model], relative to the build file.")


def _external_files(source: Path) -> list[str]:
    import onnx

    try:
        model = onnx.load(os.fspath(source), load_external_data=False)
    except Exception:  # noqa: BLE001  (the export says what is wrong with the file)
        return []
    names = {
        entry.value for tensor in model.graph.initializer for entry in tensor.external_data if entry.key == "location"
    }
    return sorted(name for name in names if (source.parent / name).is_file())


def _fault(message: str) -> BuildRequestError:
    return BuildRequestError(f"{message} docs/tensorrt.md lists what a build file may hold.")
