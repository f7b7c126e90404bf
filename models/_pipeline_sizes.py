"""The sizes of a pipeline's components, which follow from one another."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from retouch.models._adapter import Adapter
from retouch.models._input import Sizes
from retouch.models._load import CONFIG, read_json
from retouch.models._options import TorchOptions

__all__ = ["component_options"]

_DENOISERS = ("unet", "transformer", "controlnet")
_AUTOENCODER = "vae"
_CLIP_TOKENS, _T5_TOKENS = 77, 256


def component_options(pipeline: Path, name: str, adapter: Adapter, options: TorchOptions) -> TorchOptions:
    """The options for one component: the denoiser's are those that were given, the others fit to it."""
    given = options.sizes
    latents, factor = _latents(pipeline, given)
    if latents is None:
        sizes = dataclasses.replace(given, batch=given.batch if name in _DENOISERS else 1)
    elif name in _DENOISERS:
        text = _prompt_tokens(pipeline, name) if given.text is None else given.text
        sizes = dataclasses.replace(given, height=latents[0], width=latents[1], text=text)
    elif name == _AUTOENCODER:
        scale = factor if adapter.part == "encoder" else 1
        sizes = Sizes(height=latents[0] * scale, width=latents[1] * scale)
    else:
        sizes = Sizes(text=_text_tokens(pipeline, adapter, given))
    return dataclasses.replace(options, sizes=sizes)


def _latents(pipeline: Path, given: Sizes) -> tuple[tuple[int, int] | None, int]:
    """Height and width of the latents, and how many pixels one of them stands for along each axis."""
    denoiser = next((config for name in _DENOISERS if (config := _config(pipeline / name))), {})
    autoencoder = _config(pipeline / _AUTOENCODER)
    factor = 2 ** (len(autoencoder.get("block_out_channels", [0])) - 1)
    size = denoiser.get("sample_size")
    if size is None and isinstance(autoencoder.get("sample_size"), int):
        size = autoencoder["sample_size"] // factor
    if size is None and (given.height is None or given.width is None):
        return None, factor
    return given.image(size), factor


def _prompt_tokens(pipeline: Path, name: str) -> int | None:
    """The length of the prompts that a UNet gets: CLIP's."""
    tokens = _config(pipeline / "text_encoder").get("max_position_embeddings")
    return tokens if name != "transformer" and isinstance(tokens, int) else None


def _text_tokens(pipeline: Path, adapter: Adapter, given: Sizes) -> int | None:
    """The length of a prompt: CLIP's is fixed, T5's is what the denoiser takes beside it."""
    if adapter.family != "t5_encoder":
        return None
    joint = "SD3" in str(_config(pipeline / "transformer").get("_class_name"))
    if joint:
        return _T5_TOKENS if given.text is None else given.text - _CLIP_TOKENS
    return given.text


def _config(directory: Path) -> dict[str, Any]:
    return read_json(directory / CONFIG) if (directory / CONFIG).is_file() else {}
