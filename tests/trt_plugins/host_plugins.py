"""The plugin library, compiled for the host: headers of TensorRT and CUDA from wherever they are found."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2] / "trt_plugins"
COMPILER = shutil.which("g++")
SOURCES = ("plugin.cc", "operators.cc", "exports.cc")
OPTIONS = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")


def _first(name: str, folders: list[Path]) -> Path | None:
    return next((folder for folder in folders if (folder / name).is_file()), None)


def tensorrt_headers() -> Path | None:
    """The folder of TensorRT's headers: one that is named, the system's, or the one that a test-time package brings."""
    named = [Path(os.environ[name]) for name in ("TENSORRT_INCLUDE_DIR", "TENSORRT_ROOT") if os.environ.get(name)]
    folders = [folder for path in named for folder in (path, path / "include")] + [
        Path("/usr/include/x86_64-linux-gnu")
    ]
    package = importlib.util.find_spec("kernel_lens")
    if package is not None and package.submodule_search_locations:
        folders += [Path(place) / "include" / "tensorrt" for place in package.submodule_search_locations]
    return _first("NvInferRuntime.h", folders)


def cuda_headers() -> Path | None:
    """The folder of CUDA's headers."""
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return _first("cuda_runtime_api.h", [home / "include" for home in (*homes, Path("/usr/local/cuda"))])


def missing() -> str:
    """What compiling the plugins lacks, or nothing."""
    wanted = {"g++": COMPILER, "headers of TensorRT": tensorrt_headers(), "headers of CUDA": cuda_headers()}
    return ", ".join(name for name, found in wanted.items() if found is None)


def _compile(arguments: list[str]) -> None:
    includes = [f"-isystem{folder}" for folder in (tensorrt_headers(), cuda_headers())]
    subprocess.run([str(COMPILER), *OPTIONS, *includes, *arguments], check=True)


def compile_library(folder: Path, kernels: Path) -> Path:
    """The plugin library with kernels that run on the host.

    Args:
        folder: where it goes.
        kernels: the library of the kernels.
    """
    target = folder / "libretouch_trt_host.so"
    sources = [str(ROOT / "plugins" / name) for name in SOURCES]
    linked = [str(kernels), f"-Wl,-rpath,{kernels.parent}"]
    _compile(["-fPIC", "-shared", "-fvisibility=hidden", *sources, *linked, "-o", str(target)])
    return target


def compile_harness(folder: Path) -> Path:
    """The program that drives its plugins."""
    target = folder / "plugin_harness"
    _compile([str(Path(__file__).with_name("plugin_harness.cc")), "-rdynamic", "-ldl", "-o", str(target)])
    return target
