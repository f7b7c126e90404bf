"""Imports go down the layers of the architecture only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "retouch": "plugin/retouch",
    "retouch.export": "export",
    "retouch.models": "models",
    "retouch.ort_ep": "ort_ep",
    "retouch.trt_plugins": "trt_plugins",
    "retouch.validation": "validation",
}
# Lowest first. A package may import from itself and from every layer below its own.
LAYERS = [
    {"errors"},
    {"files"},
    {"tokens"},
    {"bundle"},
    {"region"},
    {"ort_ep"},
    {"export", "engines"},
    {"models", "trt_plugins"},
    {"states"},
    {"session"},
    {"calibrate", "drop_in", "sampling", "text"},
    {"bench", "diagnose", "text_view"},
    {"validation"},
    {"cli"},
]
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}
# Needed at import by nothing that runs an edit: extras, imported in the function that wants them.
HEAVY = {
    "diffusers",
    "matplotlib",
    "onnxruntime",
    "PIL",
    "polygraphy",
    "tensorrt",
    "tensorrt_rtx",
    "torch",
    "transformers",
}


def _files() -> Iterator[tuple[str, Path]]:
    for package, folder in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__"))), path


FILES = dict(_files())


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "retouch":
                yield from (f"retouch.{alias.name}" for alias in node.names)
            else:
                yield node.module


def _package(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "retouch" and len(parts) > 1 else None


def _is_allowed(importer: str, imported: str) -> bool:
    return importer == imported or LEVEL[imported] < LEVEL[importer]


def test_every_package_has_a_layer() -> None:
    packages = {package for package in map(_package, FILES) if package and not package.startswith("_")}
    assert packages <= set(LEVEL), f"Give these a layer in this test: {', '.join(sorted(packages - set(LEVEL)))}"


@pytest.mark.parametrize("name", [name for name in FILES if name != "retouch"])
def test_imports_go_down(name: str) -> None:
    importer = _package(name)
    assert importer is not None
    imported = {
        package for package in map(_package, _imports(ast.parse(FILES[name].read_text(encoding="utf-8")))) if package
    }
    wrong = sorted(package for package in imported if package in LEVEL and not _is_allowed(importer, package))
    assert not wrong, f"{name} imports retouch.{', retouch.'.join(wrong)}, which is not below retouch.{importer}"


@pytest.mark.parametrize(
    "name", [name for name in FILES if _package(name) in {"errors", "files", "bundle", "region", "session", "states"}]
)
def test_the_core_imports_no_engine(name: str) -> None:
    imported = {module.split(".")[0] for module in _imports(ast.parse(FILES[name].read_text(encoding="utf-8")))}
    assert not imported & HEAVY, f"{name} imports {', '.join(sorted(imported & HEAVY))}: go through retouch.engines"
