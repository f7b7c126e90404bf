"""What looks public is public: modules without an underscore have ``__all__``, a docstring, and keep their promise."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "retouch": "plugin/retouch",
    "retouch.export": "export",
    "retouch.models": "models",
    "retouch.ort_ep": "ort_ep",
    "retouch.trt_plugins": "trt_plugins",
}
ENTRY_POINTS = {"__main__"}


def _modules() -> dict[str, Path]:
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *(part for part in parts if part != "__init__")))] = path
    return found


MODULES = _modules()
PACKAGES = sorted(name for name, path in MODULES.items() if path.name == "__init__.py")
RUNTIME_MODULES = sorted(
    name
    for name in MODULES
    if not name.startswith(("retouch.export", "retouch.models"))
    and not any(part.startswith("_") for part in name.split("."))
)


def _public_names(tree: ast.Module) -> list[str]:
    """The module's ``__all__``, empty if it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_module_says_what_it_is(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{MODULES[name]} has no docstring: say in a sentence what it is for"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_names_in_all_exist_and_look_public(name: str) -> None:
    names = _public_names(ast.parse(MODULES[name].read_text(encoding="utf-8")))
    assert len(names) == len(set(names)), f"__all__ of {name} lists a name twice"
    if not names:
        return
    module = importlib.import_module(name)
    for public in names:
        assert not public.startswith("_"), f"{name}.{public} is in __all__: take the underscore or the entry away"
        assert hasattr(module, public), f"{name}.__all__ lists {public!r}, which does not exist"


@pytest.mark.parametrize("name", RUNTIME_MODULES)
def test_runtime_modules_that_look_public_list_their_names(name: str) -> None:
    names = _public_names(ast.parse(MODULES[name].read_text(encoding="utf-8")))
    if name.rpartition(".")[2] not in ENTRY_POINTS:
        assert names, f"{name} looks public but has no __all__: add one, or begin the module's name with an underscore"


@pytest.mark.parametrize("name", [name for name in PACKAGES if name in RUNTIME_MODULES])
def test_packages_of_the_runtime_only_re_export(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    allowed = {"__getattr__", "__dir__"}
    defined = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name not in allowed]
    assert not defined, f"{name} defines {', '.join(defined)}: move it to a private module and re-export it"


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = [
        name for name in MODULES if name.rpartition(".")[2].strip("_") in {"utils", "util", "helpers", "common", "misc"}
    ]
    assert not empty, f"Name these after what they hold: {', '.join(empty)}"


def test_unknown_names_of_the_package_are_explained() -> None:
    import retouch

    with pytest.raises(AttributeError, match="its public names are"):
        retouch.EditSesion  # noqa: B018
