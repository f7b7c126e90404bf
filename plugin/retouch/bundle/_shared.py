"""Bundles that read weights out of another bundle's file: another size of the same model.

Engines and tools refuse graphs that refer to files outside of their folder, and links to such files. A graph of a
sharing bundle names the other's file as if it were its own; ``shared.json`` says where it is, and who opens the graph
puts that in.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import onnx

from retouch.errors import BundleError
from retouch.files import read_record_file, write_record_file

SHARED_FILE = "shared.json"


@dataclass(frozen=True)
class SharedSpec:
    """A weights file of another bundle.

    Attributes:
        path: where it is, relative to the bundle that reads it.
        bytes: its size.
        sha256: its SHA-256.
    """

    path: str
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """The name by which graphs refer to it."""
        return PurePosixPath(self.path).name


def write_shared(directory: Path, spec: SharedSpec) -> None:
    """Says in a bundle's directory which file it shares."""
    write_record_file(directory / SHARED_FILE, spec)


def read_shared(directory: Path) -> SharedSpec | None:
    """The file that the bundle in a directory shares, or ``None``.

    Raises:
        BundleError: ``shared.json`` was changed.
    """
    path = directory / SHARED_FILE
    if not path.is_file():
        return None
    return read_record_file(path, SharedSpec, _fault)


def shared_path(directory: Path, spec: SharedSpec) -> Path:
    """Where the shared file is.

    Raises:
        BundleError: it is gone.
    """
    path = (directory.resolve() / spec.path).resolve()
    if not path.is_file():
        raise BundleError(
            f"The bundle {directory} shares the weights of another one, in {path}, which is gone. Keep both where they "
            "were to each other (move or copy their folders together), or export again."
        )
    return path


def relocate(model: onnx.ModelProto, directory: Path) -> Path:
    """The folder that a graph's external data is to be read from; in place, its initializers say where from there.

    Args:
        model: a graph of the bundle in the directory, its weights not loaded.
        directory: the bundle.

    Raises:
        BundleError: the bundle shares a file that is gone.
    """
    spec = read_shared(directory)
    if spec is None:
        return directory
    directory, shared = directory.resolve(), shared_path(directory, spec)
    folder = next(parent for parent in (directory, *directory.parents) if shared.is_relative_to(parent))
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                path = shared if entry.value == spec.name else directory / entry.value
                entry.value = path.relative_to(folder).as_posix()
    return folder


def _fault(message: str) -> BundleError:
    return BundleError(f"{message} It was changed; export again.")
