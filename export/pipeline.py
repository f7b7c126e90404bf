"""From a model file to a bundle: load, clean up, analyse, plan, rewrite, verify, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from retouch.bundle import (
    Bundle,
    BundleWriter,
    EditableSpec,
    Manifest,
    ModelSpec,
    OutputSpec,
    StackSpec,
    TensorSpec,
    write_shared,
)
from retouch.errors import ExportError
from retouch.export.analysis import Analysis, analyse
from retouch.export.base_graph import add_cacheables
from retouch.export.canonicalise import canonicalise
from retouch.export.cleanup import clean_up
from retouch.export.divide_rms import divide_rms
from retouch.export.editable import find_editable
from retouch.export.fuse_takes import fuse_takes
from retouch.export.grid_specs import grid_spec
from retouch.export.hoist_scale import hoist_scales
from retouch.export.load import LoadedModel, load_model
from retouch.export.model_shapes import dtype_of, shape_of
from retouch.export.plain_forms import spell_plainly
from retouch.export.plan import check_coverage, plan_rows
from retouch.export.precision import check_precision, convert, refuse_bfloat16
from retouch.export.rewrite import EditModels, rewrite, rewrite_stacked
from retouch.export.shared_weights import SharedWeights
from retouch.export.verify import Verifier, example_feeds, masked_reference
from retouch.export.weights import WeightsFile

__all__ = ["ExportOptions", "export_onnx"]

PRODUCER = "retouch 0.1.0"
_SINGLE = "float32"


@dataclass(frozen=True)
class ExportOptions:
    """How to export.

    Attributes:
        editable: name of the editable input; guessed if there is one candidate only.
        axes: its axes that carry positions; guessed from its rank.
        fix: sizes for the model's open dims by name; an open leading dim becomes 1.
        example: feeds for verification, by input name; the others are made up.
        text: what edits do with tokens that stand beside the rows of a joint sequence, as text does in joint attention:
            ``recompute`` computes them anew, all of them, which is exact; ``frozen`` leaves them as the base run
            computed them, which costs nothing and ignores what the edit would change in them.
        keeps_positions: operators without a rule, as ``retouch inspect`` names them, whose result at a position belongs
            to that position: behind them rows are gathered again. What follows other unknown operators stays whole.
        precision: ``float32`` or ``float16`` converts the model first; ``None`` leaves it as it is. ONNX Runtime does
            not run bfloat16 on CPUs.
        share: a bundle of the same model for another size; weights that are in its file are not written again, and
            the two have to stay where they are to each other.
        min_coverage: smallest share of the FLOPs that has to be incremental, hoisted or constant.
        verify: whether to check the bundle before it is written.
    """

    editable: str | None = None
    axes: tuple[int, ...] | None = None
    fix: Mapping[str, int] | None = None
    example: Mapping[str, np.ndarray] | None = None
    text: str = "recompute"
    keeps_positions: Sequence[str] = ()
    precision: str | None = None
    share: str | os.PathLike[str] | None = None
    min_coverage: float = 0.9
    verify: bool = True


def export_onnx(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: ExportOptions | None = None,
    *,
    tell: Callable[[str], None] | None = None,
) -> Bundle:
    """The bundle of an ONNX model, written to a directory only if it passes verification.

    Args:
        model: path of the .onnx file.
        output: directory to write; an existing bundle there is replaced on success.
        options: see ``ExportOptions``.
        tell: called with one line before every step.

    Raises:
        ModelError: the model cannot be read, or leaves dims open.
        ExportError: the editable input is ambiguous or absent.
        CoverageError: too much of the model would stay dense.
        VerificationError: a produced graph differs from its reference.
    """
    options = options or ExportOptions()
    say = tell or (lambda _: None)
    loaded = _cleaned(model, options, say)
    editable, axes = find_editable(loaded.model.graph, options.editable, options.axes)
    canonical, norms = _canonical(loaded.model)
    say("analyse")
    recompute_text = _recomputes(options.text)
    keeping = options.keeps_positions
    analysis = analyse(canonical.graph, editable, axes, recompute_text=recompute_text, keeping=keeping)
    plan = plan_rows(canonical.graph, analysis)
    check_coverage(plan, options.min_coverage)
    say("rewrite")
    graphs = _rewritten(canonical, analysis, [False, True] if norms or analysis.facts.held else [False])
    manifest = _manifest(loaded, canonical, analysis, axes, graphs).replace(plan=plan)
    with BundleWriter(output) as writer:
        say("write")
        weights = _write(writer.path, loaded, analysis, graphs.all(), _partner(options.share, output))
        manifest = manifest.replace(weights_file=weights.path.name)
        if options.verify:
            # The masked reference reads the weights that were written; those of the model are let go.
            weights.externalise(canonical)
            manifest = manifest.replace(
                verification=_verified((writer.path, Path(model)), manifest, canonical, analysis, options, say)
            )
        writer.finish(manifest)
    return Bundle.open(output)


def _cleaned(model: str | os.PathLike[str], options: ExportOptions, say: Callable[[str], None]) -> LoadedModel:
    """The model as base and edit graph have it."""
    say("load")
    loaded = load_model(model)
    if options.precision is not None:
        check_precision(options.precision)
        # Clean-up does not compute in bfloat16; and what stays single in float16 is found by types, which it infers.
        convert(loaded.model, _SINGLE, say)
    elif options.verify:
        refuse_bfloat16(loaded.model.graph)
    say("clean up")
    clean_up(loaded.model, options.fix or {})
    if options.precision not in (None, _SINGLE):
        convert(loaded.model, str(options.precision), say)
    hoist_scales(loaded.model)
    divide_rms(loaded.model)
    return loaded


def _canonical(model: ir.Model) -> tuple[ir.Model, bool]:
    """The model as the analysis reads it, and whether it has group norms."""
    canonical = model.clone()
    norms = canonicalise(canonical)
    spell_plainly(canonical)
    fuse_takes(canonical)
    return canonical, bool(norms)


@dataclass(frozen=True)
class _Graphs:
    """The edit graphs by GroupNorm mode, and the stacked ones or why there are none."""

    edits: Mapping[str, EditModels]
    stacks: Mapping[str, EditModels | str]

    def all(self) -> list[EditModels]:
        """All graphs that there are."""
        return [*self.edits.values(), *(stack for stack in self.stacks.values() if not isinstance(stack, str))]


def _rewritten(model: ir.Model, analysis: Analysis, modes: Sequence[bool]) -> _Graphs:
    """The graphs of a model, with moments that follow the edit and without as the modes say."""
    names = {mode: "corrected" if mode else "cached" for mode in modes}
    return _Graphs(
        {name: rewrite(model, analysis, corrected_moments=mode) for mode, name in names.items()},
        {name: rewrite_stacked(model, analysis, corrected_moments=mode) for mode, name in names.items()},
    )


def _recomputes(policy: str) -> bool:
    if policy not in ("recompute", "frozen"):
        raise ExportError(f"Expected the text policy to be 'recompute' or 'frozen', got {policy!r}.")
    return policy == "recompute"


def _manifest(
    loaded: LoadedModel,
    model: ir.Model,
    analysis: Analysis,
    axes: tuple[int, ...],
    graphs: _Graphs,
) -> Manifest:
    models = graphs.all()
    cacheables = {key: cacheable for edit in models for key, cacheable in edit.cacheables.items()}
    neighbourhoods = {key: spec for edit in models for key, spec in edit.neighbourhoods.items()}
    return Manifest(
        producer=PRODUCER,
        model=ModelSpec(loaded.name, loaded.sha256, model.opset_imports.get("", 0), _weight_bytes(model)),
        editable=EditableSpec(analysis.editable.origin, axes, analysis.editable.id),
        inputs=tuple(_tensor(value) for value in model.graph.inputs),
        outputs=tuple(_output(value, analysis) for value in model.graph.outputs),
        grids=tuple(grid_spec(grid) for grid in analysis.facts.grids.all()),
        neighbourhoods=tuple(neighbourhoods.values()),
        cacheables=tuple(cacheable.spec for cacheable in cacheables.values()),
        edits={mode: edit.spec for mode, edit in graphs.edits.items()},
        stacked={mode: _stack_spec(stack) for mode, stack in graphs.stacks.items()},
        plan=(),
    )


def _stack_spec(stack: EditModels | str) -> StackSpec:
    return StackSpec(reason=stack) if isinstance(stack, str) else StackSpec(stack.spec)


def _weight_bytes(model: ir.Model) -> int:
    tensors = {id(v.const_value): v.const_value for v in model.graph.initializers.values() if v.const_value is not None}
    return sum(tensor.nbytes for tensor in tensors.values())


def _tensor(value: ir.Value) -> TensorSpec:
    return TensorSpec(str(value.name), dtype_of(value).numpy().name, shape_of(value))


def _output(value: ir.Value, analysis: Analysis) -> OutputSpec:
    rows = analysis.facts.rows(value)
    return OutputSpec(_tensor(value), rows.grid.id if rows else None, rows.axes if rows else ())


def _partner(share: str | os.PathLike[str] | None, output: str | os.PathLike[str]) -> SharedWeights | None:
    if share is None:
        return None
    if Path(share).resolve() == Path(output).resolve():
        raise ExportError(f"Expected another bundle to share weights with, got {share}, which this export replaces.")
    return SharedWeights.of_partner(share)


def _write(
    path: Path, loaded: LoadedModel, analysis: Analysis, edits: Sequence[EditModels], partner: SharedWeights | None
) -> WeightsFile:
    """Writes the graphs and their weights; returns the weights file."""
    weights = WeightsFile(path / ("weights.bin" if partner is None else "own.bin"), partner)
    if partner is not None:
        write_shared(path, partner.spec(path))
    cacheables = {key: cacheable for edit in edits for key, cacheable in edit.cacheables.items()}
    add_cacheables(loaded.model, cacheables.values(), analysis.facts)
    graphs: list[tuple[ir.Model | None, str | None]] = [(loaded.model, "base.onnx")]
    for edit in edits:
        graphs += [(edit.prep, edit.spec.prep_file), (edit.edit, edit.spec.file)]
    for model, file in graphs:
        if model is not None and file is not None:
            weights.externalise(model)
            ir.save(model, path / file)
    return weights


def _verified(
    paths: tuple[Path, Path],
    manifest: Manifest,
    model: ir.Model,
    analysis: Analysis,
    options: ExportOptions,
    say: Callable[[str], None],
) -> dict[str, float]:
    given = dict(options.example or {})
    editable = manifest.editable.input
    old = example_feeds(model.graph, editable, 0, given)
    fresh: Sequence[str] = [editable]
    new = {**old, **{name: example_feeds(model.graph, editable, 1, {})[name] for name in fresh}}

    def reference(mode: str) -> ir.Model:
        return masked_reference(model, analysis, corrected_moments=mode == "corrected")

    return Verifier(*paths, manifest, old, new, reference, say).run()
