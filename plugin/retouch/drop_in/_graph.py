"""The graph that a session runs outside of recordings and edits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from retouch.bundle import Bundle, relocate
from retouch.drop_in._stock import new_options
from retouch.engines.ort import prune_file

if TYPE_CHECKING:
    from onnxruntime import SessionOptions

_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"


@dataclass(frozen=True)
class Graph:
    """A graph as ``onnxruntime.InferenceSession`` takes it.

    Attributes:
        model: the file, or the graph itself.
        path: the file that it came from.
        options: options for the session.
    """

    model: str | bytes
    path: Path
    options: SessionOptions


def graph_of(bundle: Bundle, original: Path | None, options: SessionOptions | None) -> Graph:
    """The original model where it is at hand, else the bundle's base graph without what it gives for edits.

    Args:
        bundle: the bundle.
        original: the file it was exported from, if it is at hand.
        options: the caller's options; for the bundle's graph they are told where its weights lie.
    """
    told = new_options() if options is None else options
    if original is not None:
        return Graph(str(original), original, told)
    path = bundle.file(bundle.manifest.base_file)
    names = [output.tensor.name for output in bundle.manifest.outputs]
    pruned = prune_file(path, names)
    folder = relocate(pruned, path.parent)  # weights may be those of another bundle
    told.add_session_config_entry(_WEIGHTS_FOLDER, str(folder))
    return Graph(pruned.SerializeToString(), path, told)
