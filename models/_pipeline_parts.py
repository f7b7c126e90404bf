"""The parts of a pipeline that are exported, and the precision of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retouch.errors import ExportError
from retouch.export.precision import check_precision
from retouch.models._adapter import Adapter
from retouch.models._load import CONFIG, model_class
from retouch.models._options import TorchOptions
from retouch.models._registry import adapters_of

__all__ = ["check_precisions", "parts_of", "precision_of"]


def parts_of(pipeline: Path, name: str) -> list[tuple[str, Adapter]]:
    """The folders that a component is exported to, with their adapters; none if it is copied."""
    directory = pipeline / name
    adapters = adapters_of(model_class(directory)) if (directory / CONFIG).is_file() else ()
    part = "controlled" if name == "unet" and (pipeline / "controlnet").is_dir() else None
    chosen = [item for item in adapters if item.part == part] or adapters
    return [(adapter.folder or name, adapter) for adapter in chosen]


def precision_of(options: TorchOptions, folder: str) -> str | None:
    """What a component is converted to; ``None`` leaves it as it was saved."""
    return options.precisions.get(folder, options.export.precision)


def check_precisions(options: TorchOptions, folders: Sequence[str]) -> None:
    """Refuses precisions of components that a pipeline does not have, and precisions that there are not.

    Raises:
        ExportError: says which there are.
    """
    unknown = sorted(set(options.precisions) - set(folders))
    if unknown:
        raise ExportError(
            f"Expected precisions of components among {', '.join(map(repr, folders)) or 'none'}, "
            f"got one of {', '.join(map(repr, unknown))}."
        )
    for folder in folders:
        precision = precision_of(options, folder)
        if precision == "bfloat16":
            raise ExportError(
                f"The precision bfloat16 was asked for {folder}, for which ONNX Runtime has no kernels on CPUs, so "
                "that nothing could be verified. Take float32, or float16."
            )
        if precision is not None:
            check_precision(precision)
