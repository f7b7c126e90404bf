"""Reads models that diffusers and transformers saved to a directory; nothing is fetched from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from retouch.errors import EngineMissingError, ModelError

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["CONFIG", "load_module", "model_class", "read_json", "torch_packages"]

CONFIG = "config.json"
_INSTALL = 'pip install "retouch[models]"'


def model_class(directory: Path) -> str:
    """Library and class of the model in a directory, such as ``diffusers.UNet2DModel``.

    Raises:
        ModelError: the directory holds no configuration, or one that names no class.
    """
    config = read_json(directory / CONFIG)
    if "_class_name" in config:
        return f"diffusers.{config['_class_name']}"
    if config.get("architectures"):
        return f"transformers.{config['architectures'][0]}"
    raise ModelError(
        f"{directory / CONFIG} names no class (_class_name or architectures). "
        "Give a directory that save_pretrained of diffusers or transformers wrote."
    )


def load_module(directory: Path) -> Module:
    """The model in a directory, in single precision, in evaluation mode.

    Raises:
        ModelError: the class does not exist in the installed library, or the weights do not fit or are absent.
        EngineMissingError: torch, diffusers or transformers is not installed.
    """
    library, _, name = model_class(directory).partition(".")
    kind = getattr(torch_packages()[library], name, None)
    if kind is None:
        raise ModelError(f"The installed {library} has no class {name}. Update it: pip install -U {library}")
    import torch

    try:
        module = kind.from_pretrained(directory, local_files_only=True, torch_dtype=torch.float32)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ModelError(
            f"{directory} cannot be loaded as {library}.{name} ({error}). Save the model again."
        ) from error
    return cast("Module", module.eval())


def torch_packages() -> dict[str, Any]:
    """The packages that hold model classes, by name."""
    try:
        import diffusers
        import torch  # noqa: F401 (both import without it, and fail later)
        import transformers
    except ImportError as error:
        raise EngineMissingError(
            f"Exporting from torch needs {error.name}, which is not installed: {_INSTALL}"
        ) from error
    return {"diffusers": diffusers, "transformers": transformers}


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ModelError: there is no such file, or it holds something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"There is no {path.name} in {path.parent}. Give an .onnx file, or a directory that save_pretrained of "
            "diffusers or transformers wrote."
        ) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}). Save the model again.") from error
    if not isinstance(data, dict):
        raise ModelError(f"{path} holds no JSON object. Save the model again.")
    return data
