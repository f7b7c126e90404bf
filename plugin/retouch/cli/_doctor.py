"""``retouch doctor``: what is installed, and how to get what is not."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from retouch import __version__
from retouch.cli._feeds import INPUT_HELP, RANGE_HELP
from retouch.cli._images import Range
from retouch.cli._results import JSON_HELP, result_console, write_json
from retouch.cli._trace import print_trace, trace_non_finite
from retouch.engines.ort import HugePages
from retouch.ort_ep import Availability, register


@dataclass(frozen=True)
class _Package:
    name: str
    purpose: str
    remedy: str
    needed: bool = False


_PACKAGES = (
    _Package(
        "onnxruntime", "base runs and edits", 'pip install "retouch[cpu]" (or "retouch[gpu]", not both)', needed=True
    ),
    _Package("onnx", "export", "pip install retouch", needed=True),
    _Package("onnx_ir", "export", "pip install retouch", needed=True),
    _Package("onnxscript", "export", "pip install retouch", needed=True),
    _Package("safetensors", "run directories", "pip install retouch", needed=True),
    _Package("PIL", "images as inputs, previews", 'pip install "retouch[png]"'),
    _Package("matplotlib", "make demo", 'pip install "retouch[demo]"'),
    _Package("torch", "reference models", 'pip install "retouch[torch]"'),
    _Package("diffusers", "reference models", 'pip install "retouch[models]"'),
    _Package("polygraphy", "retouch validate", 'pip install "retouch[validate]"'),
    _Package("tensorrt_rtx", "retouch build", 'pip install "retouch[trt]"'),
    _Package("cuda.bindings", "sessions on TensorRT", 'pip install "retouch[trt]"'),
)
_DISTRIBUTIONS = {"PIL": "pillow", "tensorrt_rtx": "tensorrt-rtx-cu13", "cuda.bindings": "cuda-bindings"}
_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
_MISSING = _FOUND = 1


def doctor(
    trace_nan: Annotated[
        Path | None,
        typer.Option(metavar="BUNDLE", help="Find the first value of a full run that is not finite."),
    ] = None,
    feeds: Annotated[list[str] | None, typer.Option("--input", "-i", help=INPUT_HELP)] = None,
    png_range: Annotated[str, typer.Option(metavar="BLACK,WHITE", help=RANGE_HELP)] = "-1,1",
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Lists engines, execution providers and versions, what is missing and how to get it.

    Exits with 1 if something that base runs and edits need is missing. With --trace-nan it instead looks for the first
    value of a full run on the inputs that is NaN or infinite, and exits with 1 if there is one.
    """
    console = result_console(json_file)
    if trace_nan is not None:
        trace = trace_non_finite(trace_nan, feeds or [], Range.parse(png_range))
        write_json(json_file, trace)
        print_trace(console, trace)
        raise typer.Exit(_FOUND if trace["found"] else 0)
    found = {package.name: _version(package) for package in _PACKAGES}
    providers = _providers()
    remarks = _remarks(found, providers)
    kernels = register()
    pages = HugePages.here()
    write_json(json_file, {**_summary(found, providers, remarks), "kernels": _kernels(kernels), "memory": pages.value})
    console.print(
        f"retouch {__version__}, Python {platform.python_version()} on {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores",
        highlight=False,
    )
    console.print(_table(found))
    console.print(f"engines, by execution provider of ONNX Runtime: {_engines(providers)}", highlight=False)
    console.print(f"kernels of Retouch: {_kernels(kernels)}", highlight=False)
    console.print(f"memory: {pages.value}", highlight=False)
    for remark in remarks:
        console.print(escape(remark), style="yellow", highlight=False)
    if any(package.needed and found[package.name] is None for package in _PACKAGES):
        raise typer.Exit(_MISSING)


def _table(found: dict[str, str | None]) -> Table:
    table = Table("package", "version", "for", "how to get it")
    for package in _PACKAGES:
        version = found[package.name]
        shown = version or ("[red]missing[/]" if package.needed else "missing")
        name = _DISTRIBUTIONS.get(package.name, package.name)
        # Escaped: the console would take the brackets of an extra for markup and swallow them.
        table.add_row(name, shown, package.purpose, "" if version else escape(package.remedy))
    return table


def _engines(providers: list[str]) -> str:
    if not providers:
        return "none"
    return ", ".join(f"onnxruntime.{name.removesuffix('ExecutionProvider').lower()}" for name in providers)


def _kernels(found: Availability) -> str:
    return str(found.library) if found else f"none, {found.reason}; bundles run on the stock ones"


def _remarks(found: dict[str, str | None], providers: list[str]) -> list[str]:
    remarks = []
    if len([name for name in _RUNTIMES if _installed(name)]) > 1:
        remarks.append(
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other's files: "
            "uninstall both, then install one."
        )
    if (advice := HugePages.here().advice) is not None:
        remarks.append(advice)
    if found["onnxruntime"] is not None and "CPUExecutionProvider" not in providers:
        remarks.append("The installed onnxruntime does not load. Install it again.")
    elif found["onnxruntime"] is not None and "CUDAExecutionProvider" not in providers:
        remarks.append('The installed onnxruntime runs on the CPU only. For an NVIDIA GPU: pip install "retouch[gpu]".')
    return remarks


def _summary(found: dict[str, str | None], providers: list[str], remarks: list[str]) -> dict[str, Any]:
    return {
        "retouch": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": found,
        "missing": {item.name: item.remedy for item in _PACKAGES if found[item.name] is None},
        "providers": providers,
        "remarks": remarks,
    }


def _providers() -> list[str]:
    module = _module("onnxruntime")
    return [] if module is None else [str(name) for name in getattr(module, "get_available_providers", list)()]


def _version(package: _Package) -> str | None:
    if not package.needed:
        # Importing torch to read its version would take seconds.
        return _installed(_DISTRIBUTIONS.get(package.name, package.name))
    module = _module(package.name)
    return None if module is None else str(getattr(module, "__version__", "installed"))


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
