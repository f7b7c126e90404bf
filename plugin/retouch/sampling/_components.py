"""The parts of an exported text-to-image pipeline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retouch.errors import SamplingError
from retouch.sampling._schedule import Scheduler

_RECORD = "retouch.json"
_PARTS = ("unet", "vae_decoder", "text_encoder")
TEXT = "encoder_hidden_states"
"""The denoiser's input that takes the embeddings of a prompt."""


@dataclass(frozen=True)
class Components:
    """Where the parts of a pipeline lie.

    Attributes:
        root: the directory that ``retouch export`` wrote.
        denoiser: the denoiser's bundle.
        decoder: the bundle of the autoencoder's decoder.
        text_encoder: the text encoder's graph.
        tokenizer: the tokenizer's directory.
    """

    root: Path
    denoiser: Path
    decoder: Path
    text_encoder: Path
    tokenizer: Path

    @classmethod
    def of(cls, root: Path) -> Components:
        """The parts of the pipeline in a directory.

        Raises:
            SamplingError: the directory is no exported pipeline, or one of another kind.
        """
        parts = _record(root)
        missing = [name for name in _PARTS if name not in parts]
        if missing or parts["unet"].get("conditions") != [TEXT]:
            what = (
                f"which lacks {', '.join(missing)}"
                if missing
                else f"whose denoiser takes {parts['unet']['conditions']}"
            )
            raise SamplingError(
                f"Expected a pipeline of Stable Diffusion's kind (one text encoder, a UNet that takes {TEXT!r}, an "
                f"autoencoder), got {root}, {what}. For others use retouch.sampling.generate with your own conditions."
            )
        graphs = {name: root / parts[name]["graph" if name == "text_encoder" else "bundle"] for name in _PARTS}
        return cls(root, graphs["unet"], graphs["vae_decoder"], graphs["text_encoder"], root / "tokenizer")

    def scheduler(self, name: str | None = None) -> Scheduler:
        """The scheduler that the pipeline came with, or another one with its options.

        Args:
            name: class of the other one in diffusers.

        Raises:
            SamplingError: this diffusers does not know it.
        """
        import diffusers

        folder = self.root / "scheduler"
        wanted = name or _json(folder / "scheduler_config.json").get("_class_name", "")
        kind: Any = getattr(diffusers, wanted, None)
        if not hasattr(kind, "set_timesteps"):
            where = f"in {folder}" if name is None else "by name, like 'EulerDiscreteScheduler'"
            raise SamplingError(
                f"Expected a scheduler that diffusers {diffusers.__version__} knows {where}, got {wanted!r}. Install "
                "a newer diffusers, or give a scheduler."
            )
        scheduler: Scheduler = kind.from_pretrained(str(folder))
        return scheduler

    def scaling(self) -> tuple[float, float]:
        """By what the latents were multiplied, after what was subtracted, when the autoencoder encoded them."""
        config = _json(self.decoder.parent / "config.json")
        return float(config.get("scaling_factor") or 1.0), float(config.get("shift_factor") or 0.0)


def _record(root: Path) -> dict[str, Any]:
    if not (root / _RECORD).is_file():
        raise SamplingError(
            f"Expected the directory of a pipeline that was exported, got {root}, which has no {_RECORD}. Make one "
            "with `retouch export PIPELINE -o DIRECTORY`."
        )
    components: dict[str, Any] = _json(root / _RECORD).get("components", {})
    return components


def _json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SamplingError(f"Expected {path} to hold JSON, but it cannot be read: {error}. Export again.") from error
    return content
