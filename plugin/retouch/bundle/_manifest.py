"""The manifest of a bundle: what its graphs want, keep and give, as frozen dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from retouch.bundle._engines import EngineSpec
from retouch.bundle._grids import GridSpec
from retouch.bundle._measured import BreakEven, MomentsSpec
from retouch.files import FileSpec

SCHEMA_VERSION = 8

_WHOLE = ("densified", "recomputed", "statistic")
"""Plans of nodes that every edit computes whole."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor at the edge of a graph: its name, numpy dtype name and static shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OutputSpec:
    """An output of the model.

    Attributes:
        tensor: name, dtype and shape.
        grid: id of the grid whose inactive rows keep the base output bit for bit, or ``None``
            if no axes of the output are known to carry positions (then all of it may change).
        axes: the axes of the output that carry that grid, in the grid's order.
    """

    tensor: TensorSpec
    grid: str | None
    axes: tuple[int, ...]


@dataclass(frozen=True)
class NeighbourhoodSpec:
    """Which rows of a source grid each row of a target grid reads.

    A neighbourhood is separable: along axis ``d`` the target coordinate ``i`` reads the source coordinates
    ``sources[d][i]`` (``-1``: outside, the pad row). A row reads the product of those lists, row-major, so
    ``T = prod(len(sources[d][0]))`` entries.

    Attributes:
        id: the neighbourhood's id; the edit graph's inputs are ``neighbours.<id>`` [M, T], ``halo.<id>`` [H]
            and, if ``weights`` is set, ``weights.<id>`` [M, T].
        source: id of the grid that is read.
        target: id of the grid whose rows read it.
        sources: per axis, per target coordinate, the source coordinates.
        taps: per axis, per target coordinate, which sub-row of the source row is read, or ``None`` if a source
            row is read whole. Sub-rows are numbered row-major over ``tap_counts``.
        tap_counts: number of sub-rows along each axis (all 1 without taps).
        weights: per axis, per target coordinate, the interpolation weight of each source coordinate.
    """

    id: str
    source: str
    target: str
    sources: tuple[tuple[tuple[int, ...], ...], ...]
    taps: tuple[tuple[tuple[int, ...], ...], ...] | None
    tap_counts: tuple[int, ...]
    weights: tuple[tuple[tuple[float, ...], ...], ...] | None = None


@dataclass(frozen=True)
class CacheableSpec:
    """A tensor that a base run keeps: output ``cacheable.<id>`` of the base graph, input ``cached.<id>`` of the others.

    Attributes:
        id: the id.
        value: name of the value in the cleaned-up base graph.
        kind: ``rows`` (leading axes hold one entry per row of the grid) or ``statistic``.
        grid: id of the grid for ``rows``.
        row_axis: the axis of the kept tensor that counts the grid's rows, ``None`` for a statistic.
        dtype: numpy dtype name.
        shape: the kept shape (channels-last, axes of size one left out).
    """

    id: str
    value: str
    kind: str
    grid: str | None
    row_axis: int | None
    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class EditGraphSpec:
    """One edit graph of the bundle.

    Attributes:
        file: the graph's file name.
        prep_file: the graph that computes the ``prepared.<id>`` inputs from the conditions and the cached
            statistics, once per base run and condition; ``None`` if nothing is prepared.
        conditions: names of the model inputs that the prep graph or the edit graph reads beside the editable one.
        cached: ids of the cacheables the edit graph reads.
        prep_cached: ids of the cacheables (statistics) the prep graph reads.
        prepared: the prep graph's outputs (names ``prepared.<id>``).
        grids: ids of the grids with a ``rows.<id>`` input.
        neighbourhoods: ids of the neighbourhoods with index inputs.
        updates: ids of the cacheables whose recomputed rows (or statistic) are the outputs ``update.<id>``.
        masks: ``<query grid>.<key grid>`` of every input ``mask.`` by which a stacked graph hides other edits' rows.
        blocks: ids of the grids of blocks with inputs ``members.<id>`` [B, Q], the active rows of every active block
            by their places among all active ones (a shorter block repeats one), and ``places.<id>`` [M], where in
            those B * Q every active row stands.
        owners: ids of the grids with an input ``owners.<id>`` [M], by which a stacked graph knows to which edit a row
            belongs; with it goes an input ``edits`` [E], which counts the edits.
    """

    file: str
    prep_file: str | None
    conditions: tuple[str, ...]
    cached: tuple[str, ...]
    prep_cached: tuple[str, ...]
    prepared: tuple[TensorSpec, ...]
    grids: tuple[str, ...]
    neighbourhoods: tuple[str, ...]
    updates: tuple[str, ...]
    masks: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlanRow:
    """What the plan does with one node of the base graph, and why.

    ``plan`` is ``incremental``, ``hoisted``, ``densified`` or ``constant``, or for tokens beside the rows of a joint
    sequence ``recomputed`` or ``frozen``, or ``statistic`` for what is computed whole from reductions over rows;
    ``flops`` counts one dense evaluation; ``bytes`` is the size of its outputs; ``reason`` says why the node is not
    incremental.
    """

    node: str
    op: str
    plan: str
    grid: str | None
    flops: int
    bytes: int
    reason: str | None = None


@dataclass(frozen=True)
class EditableSpec:
    """The input that carries the editable positions, the axes they lie on, and the grid they make."""

    input: str
    axes: tuple[int, ...]
    grid: str


@dataclass(frozen=True)
class ModelSpec:
    """Where the bundle came from."""

    name: str
    source_sha256: str
    opset: int
    weights_bytes: int


@dataclass(frozen=True)
class StackSpec:
    """A stacked edit graph, which computes several edits of one base run at once.

    Its input ``stacked.<input>`` and its outputs are active rows [M, ...], those of one edit behind those of another.

    Attributes:
        graph: the graph, or ``None``.
        reason: why there is none.
    """

    graph: EditGraphSpec | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Manifest:
    """Everything a runtime has to know about a bundle.

    ``edits`` maps a GroupNorm mode (``cached`` or ``corrected``) to its edit graph, ``stacked`` the modes to graphs of
    several edits, in which ``corrected`` moments are those of every edit by itself; ``verification`` maps a check's
    name to its largest error relative to the output's scale; ``break_even`` maps an engine's name to what was measured;
    ``moments`` is ``None`` where there is no choice of modes, or none was calibrated; ``engines`` maps the paths of
    prebuilt engines in the bundle to what they are; ``recipe`` is a digest of the build file's part that the bundle was
    exported by, or empty.
    """

    producer: str
    model: ModelSpec
    editable: EditableSpec
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[OutputSpec, ...]
    grids: tuple[GridSpec, ...]
    neighbourhoods: tuple[NeighbourhoodSpec, ...]
    cacheables: tuple[CacheableSpec, ...]
    edits: Mapping[str, EditGraphSpec]
    plan: tuple[PlanRow, ...]
    stacked: Mapping[str, StackSpec] = field(default_factory=dict)
    files: Mapping[str, FileSpec] = field(default_factory=dict)
    verification: Mapping[str, float] = field(default_factory=dict)
    break_even: Mapping[str, BreakEven] = field(default_factory=dict)
    moments: MomentsSpec | None = None
    engines: Mapping[str, EngineSpec] = field(default_factory=dict)
    recipe: str = ""
    base_file: str = "base.onnx"
    weights_file: str = "weights.bin"
    schema_version: int = SCHEMA_VERSION

    @property
    def flops(self) -> int:
        """FLOPs of one dense evaluation."""
        return sum(row.flops for row in self.plan)

    @property
    def coverage(self) -> float:
        """Share of the FLOPs that are not computed anew by every edit; 1.0 for a model without heavy nodes."""
        total = self.flops
        dense = sum(row.flops for row in self.plan if row.plan in _WHOLE)
        return 1.0 if total == 0 else 1.0 - dense / total

    @property
    def stacked_graphs(self) -> tuple[EditGraphSpec, ...]:
        """The stacked graphs that there are."""
        return tuple(stack.graph for stack in self.stacked.values() if stack.graph is not None)

    def grid(self, grid_id: str) -> GridSpec:
        """The grid with that id."""
        return next(grid for grid in self.grids if grid.id == grid_id)

    def cacheable(self, cacheable_id: str) -> CacheableSpec:
        """The cacheable with that id."""
        return next(spec for spec in self.cacheables if spec.id == cacheable_id)

    def flop_ratio(self, active_rows: Mapping[str, int]) -> float:
        """Share of the dense FLOPs that an edit with so many active rows per grid computes."""
        total = self.flops
        if total == 0:
            return 1.0
        rows = {grid.id: grid.rows for grid in self.grids}
        return sum(_executed(row, active_rows, rows) for row in self.plan) / total

    def replace(self, **changes: object) -> Manifest:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


def _executed(row: PlanRow, active: Mapping[str, int], rows: Mapping[str, int]) -> float:
    if row.plan in _WHOLE:
        return float(row.flops)
    if row.plan != "incremental" or row.grid is None:
        return 0.0
    return row.flops * active.get(row.grid, rows[row.grid]) / rows[row.grid]


def total_bytes(cacheables: Iterable[CacheableSpec]) -> int:
    """Bytes that one base run keeps."""
    return sum(spec.bytes for spec in cacheables)
