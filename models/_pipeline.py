"""A diffusers pipeline as a directory that pipelines on ONNX Runtime load, with bundles beside the editable graphs.

- ``model_index.json``: as it was
- ``unet/`` or ``transformer/``, ``vae_encoder/``, ``vae_decoder/``: ``model.onnx``, ``config.json``, ``bundle/``
- ``text_encoder/``, ``text_encoder_2/``: ``model.onnx``, ``config.json``
- ``scheduler/``, ``tokenizer/`` and whatever has no adapter: as they were
- ``retouch.json``: graph, bundle and inputs of every exported component
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from retouch.bundle import Bundle, is_engine_file
from retouch.errors import ExportError
from retouch.export import ExportOptions
from retouch.export.precision import convert
from retouch.files import Kind, StagedDirectory
from retouch.models._adapter import Adapter
from retouch.models._check import check_outputs
from retouch.models._export import bundle_of, traced
from retouch.models._input import Role
from retouch.models._load import CONFIG, load_module, read_json
from retouch.models._options import TorchOptions
from retouch.models._pipeline_parts import check_precisions, parts_of, precision_of
from retouch.models._pipeline_sizes import component_options
from retouch.models._plain_graph import share_with_bundle
from retouch.models._torch_onnx import TorchGraph

__all__ = ["export_pipeline", "is_pipeline"]

_INDEX = "model_index.json"
_RECORD, _GRAPH, _BUNDLE, _PLAIN = "retouch.json", "model.onnx", "bundle", "plain"


def _foreign(directory: Path) -> list[str]:
    """What lies in an exported pipeline and was not written by the export."""
    own = {_RECORD, *read_json(directory / _RECORD).get("files", ())}
    return [name for name in _files(directory) if name not in own and not is_engine_file(Path(name))]


def _files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir())


_PIPELINE = Kind("an exported pipeline", lambda names: {_INDEX, _RECORD} <= names, ExportError, _foreign)

Tell = Callable[[str], None]


def is_pipeline(directory: Path) -> bool:
    """Whether a directory holds a pipeline of diffusers."""
    return (directory / _INDEX).is_file()


def export_pipeline(
    pipeline: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: TorchOptions | None = None,
    *,
    tell: Tell | None = None,
) -> Mapping[str, Bundle]:
    """The bundles of a pipeline's editable components, by folder; the whole pipeline is written to a directory.

    Args:
        pipeline: directory that ``save_pretrained`` of a diffusers pipeline wrote.
        output: directory to write; an exported pipeline there is replaced on success.
        options: see ``TorchOptions``; ``part`` and ``adapter`` do not apply. Height and width are those of the latents,
            and the batch is that of the denoiser: the other components get one image or prompt at a time.
        tell: called with one line before every step.

    Raises:
        ModelError: the directory holds no pipeline, or a component cannot be loaded or traced.
        ExportError: no component is editable, or one cannot be exported as asked for.
        VerificationError: a graph differs from the module it was traced from, or from its reference.
    """
    source, root = Path(pipeline), Path(output)
    index = read_json(source / _INDEX)
    share = None if options is None else options.export.share
    if share is not None and not (Path(share) / _RECORD).is_file():
        raise ExportError(f"Expected an exported pipeline to share weights with, got {share}, which has no {_RECORD}.")
    names = [name for name, kind in index.items() if isinstance(kind, list) and kind[0] is not None]
    options = options or TorchOptions()
    check_precisions(options, [folder for name in names for folder, _ in parts_of(source, name)])
    with StagedDirectory(root, _PIPELINE) as staged:
        writer = _Writer(source, staged.path, options, tell or (lambda _: None))
        for name in names:
            writer.component(name)
        writer.finish()
        staged.finish()
    edited = [folder for folder, entry in writer.record.items() if "bundle" in entry]
    return MappingProxyType({folder: Bundle.open(root / folder / _BUNDLE) for folder in edited})


@dataclass
class _Writer:
    """Writes the components of a pipeline, and notes what it wrote."""

    source: Path
    target: Path
    options: TorchOptions
    say: Tell
    record: dict[str, dict[str, Any]] = field(default_factory=dict)

    def component(self, name: str) -> None:
        """Exports a component, or copies one that has no adapter."""
        directory, parts = self.source / name, parts_of(self.source, name)
        if not parts:
            self.say(f"copy {name}")
            shutil.copytree(directory, self.target / name)
            return
        self.say(f"read {name}")
        module = load_module(directory)
        for folder, adapter in parts:
            options = component_options(self.source, name, adapter, self.options)
            self.say(f"export {folder}")
            self._export(directory, folder, traced(module, adapter, options, self.say), adapter)

    def _export(self, directory: Path, folder: str, graph: TorchGraph, adapter: Adapter) -> None:
        target = self.target / folder
        target.mkdir()
        shutil.copyfile(directory / CONFIG, target / CONFIG)
        plain = target / _PLAIN / _GRAPH
        plain.parent.mkdir()
        precision = precision_of(self.options, folder)
        if precision is not None:
            # Inputs and outputs stay single, so that components of any precision fit together.
            convert(graph.model, precision, self.say, edges=False)
        traced_graph = graph.save(plain)
        del graph  # and with it the weights
        check_outputs(plain, traced_graph, precision)
        roles = {role: [item.name for item in traced_graph.inputs if item.role is role] for role in Role}
        entry: dict[str, Any] = {"family": adapter.family, "graph": f"{folder}/{_GRAPH}"}
        if precision is not None:
            entry["precision"] = precision
        if roles[Role.EDITABLE]:
            bundle = bundle_of(plain, traced_graph, target / _BUNDLE, self._sharing(folder), self.say)
            self.say(f"{folder}/{_GRAPH}: {share_with_bundle(plain, target / _GRAPH, bundle)}")
            check_outputs(target / _GRAPH, traced_graph, precision)
            entry |= {"bundle": f"{folder}/{_BUNDLE}", "editable": roles[Role.EDITABLE][0]}
        else:
            for path in plain.parent.iterdir():
                path.rename(target / path.name)
        shutil.rmtree(plain.parent)
        self.record[folder] = {**entry, "conditions": roles[Role.CONDITION], "steps": roles[Role.STEP]}

    def _sharing(self, folder: str) -> ExportOptions:
        """The options, sharing the weights of the same component of another exported pipeline if there is one."""
        options = dataclasses.replace(self.options.export, precision=None)
        share = options.share
        if share is None:
            return options
        partner = Path(share) / folder / _BUNDLE
        if not partner.is_dir():
            raise ExportError(f"Expected the exported pipeline {share} to hold {folder}/{_BUNDLE}, which it does not.")
        return dataclasses.replace(options, share=partner)

    def finish(self) -> None:
        """Writes the index and the record.

        Raises:
            ExportError: nothing that was exported is editable.
        """
        if not any("bundle" in entry for entry in self.record.values()):
            raise ExportError(
                f"No component of {self.source} has an adapter with an editable input. Write one (models/README.md)."
            )
        shutil.copyfile(self.source / _INDEX, self.target / _INDEX)
        text = json.dumps({"components": self.record, "files": _files(self.target)}, indent=2) + "\n"
        (self.target / _RECORD).write_text(text, encoding="utf-8")
