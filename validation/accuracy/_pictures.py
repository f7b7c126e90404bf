"""Pictures of a validation: quality over area, drift, and maps of the error."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import OutputSpec
from retouch.errors import EngineMissingError
from retouch.validation.accuracy._cases import Case
from retouch.validation.accuracy._figures import CaseFigures, Figures
from retouch.validation.accuracy._run import SuiteRun
from retouch.validation.accuracy._runners import BEFORE, EDIT, FULL
from retouch.validation.accuracy._validate import Validation
from retouch.validation.accuracy._zones import INSIDE, NEAR, OUTSIDE, by_position

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AREA, DRIFT, MAPS = "area.png", "drift.png", "maps.png"

_COLOURS = {INSIDE: "tab:blue", NEAR: "tab:orange", OUTSIDE: "tab:green"}
_MAPS = 6
_SMALLEST = 1e-7
"""The smallest error shown, as a share of the output's scale."""


def draw_pictures(validation: Validation) -> Mapping[str, bytes]:
    """PNG files by name: of the first output, and only those that there is something to show in.

    Raises:
        EngineMissingError: matplotlib is not installed.
    """
    figures, drawn = validation.figures, {}
    if figures.of_kind("area"):
        drawn[AREA] = _png(_area(figures))
    if figures.of_kind("drift"):
        drawn[DRIFT] = _png(_drift(figures))
    maps = _maps(validation)
    if maps is not None:
        drawn[MAPS] = _png(maps)
    return drawn


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EngineMissingError(
            'A report with pictures needs matplotlib, which is not installed: pip install "retouch[validate]".'
        ) from error
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=90, metadata={"Software": None})
    return buffer.getvalue()


def _area(figures: Figures) -> Figure:
    cases = sorted(figures.of_kind("area"), key=lambda case: case.area)
    figure, axes = _figure(1, 1, (7.0, 3.6))
    panel: Axes = axes[0, 0]
    areas = [100 * case.area for case in cases]
    for zone, colour in _COLOURS.items():
        known = [(100 * case.area, case.outputs[0].zones[zone].psnr) for case in cases if zone in case.outputs[0].zones]
        if known:
            panel.plot(*zip(*known, strict=True), marker="o", color=colour, label=zone)
    unedited = [case.outputs[0].unedited.psnr for case in cases]
    panel.plot(areas, unedited, color="tab:gray", linestyle="--", marker=".", label="inside, nothing recomputed")
    panel.set(xscale="log", xlabel="area, %", ylabel="PSNR against a full recomputation, dB")
    panel.legend()
    return figure


def _drift(figures: Figures) -> Figure:
    cases = figures.of_kind("drift")
    figure, axes = _figure(1, 2, (10.0, 3.6))
    quality, oracle = axes[0]
    steps = range(1, len(cases) + 1)
    quality.plot(steps, [_inside(case) for case in cases], marker="o", color=_COLOURS[INSIDE], label="after the edits")
    unedited = [case.outputs[0].unedited.psnr for case in cases]
    quality.plot(steps, unedited, color="tab:gray", linestyle="--", marker=".", label="nothing recomputed")
    quality.set(xlabel="edits in a row", ylabel="PSNR where any of them was, dB")
    quality.legend()
    known = [(step, case.outputs[0].oracle_error) for step, case in zip(steps, cases, strict=True)]
    known = [(step, error) for step, error in known if error is not None]
    if known:
        oracle.plot(*zip(*known, strict=True), marker="o", color="tab:purple", label="error")
        oracle.axhline(cases[0].outputs[0].oracle_bound, color="tab:red", linestyle="--", label="allowed")
        oracle.legend()
    oracle.set(yscale="log", xlabel="edits in a row", ylabel="error against the oracle, of the scale")
    return figure


def _inside(case: CaseFigures) -> float:
    return case.outputs[0].zones[INSIDE].psnr


def _maps(validation: Validation) -> Figure | None:
    run, output = validation.runs[0], validation.bundle.manifest.outputs[0]
    shown = [number for number, case in enumerate(run.suite.cases) if case.kind in ("area", "shape")][:_MAPS]
    grid = None if output.grid is None else validation.bundle.manifest.grid(output.grid)
    if grid is None or len(grid.dims) > 2 or not all(validation.figures.cases[number].outputs for number in shown):
        return None
    figure, axes = _figure(2, len(shown), (2.3 * len(shown), 5.0))
    for column, number in enumerate(shown):
        case = run.suite.cases[number]
        for row, (runner, title) in enumerate(((BEFORE, "nothing recomputed"), (EDIT, "edit"))):
            panel = axes[row, column]
            image = _map(panel, case, _error(run, output, grid.dims, runner, number))
            panel.set_title(f"{case.name}\n{title}", fontsize=9)
        if image is not None and column == len(shown) - 1:
            figure.colorbar(image, ax=axes, shrink=0.7, label="error against a full recomputation, of the scale")
    return figure


def _error(run: SuiteRun, output: OutputSpec, dims: tuple[int, ...], runner: str, number: int) -> NDArray[np.float64]:
    """The largest error at every position, as a share of the output's scale."""
    full, got = (run.outputs(name, number)[output.tensor.name].astype(np.float64) for name in (FULL, runner))
    error = by_position(output, np.abs(full - got), dims).reshape(*dims, -1).max(axis=-1)
    shown: NDArray[np.float64] = np.maximum(error / (float(np.abs(full).max()) or 1.0), _SMALLEST)
    return shown


def _map(panel: Axes, case: Case, error: NDArray[np.float64]) -> Any:  # noqa: ANN401 (an image, or nothing)
    mask = case.region.mask
    if error.ndim == 1:
        panel.semilogy(error, color="tab:blue", linewidth=0.8)
        panel.set_ylim(_SMALLEST / 2, 2)
        for place in np.flatnonzero(mask) if mask.ndim == 1 else ():
            panel.axvspan(place - 0.5, place + 0.5, color="tab:orange", alpha=0.3, linewidth=0)
        return None
    from matplotlib.colors import LogNorm

    height, width = error.shape
    image = panel.imshow(error, cmap="magma", norm=LogNorm(1e-4, 1), extent=(0, width, height, 0))
    if mask.ndim == 2 and not mask.all():
        y, x = ((np.arange(n) + 0.5) * m / n for n, m in zip(mask.shape, error.shape, strict=True))
        panel.contour(x, y, mask, levels=[0.5], colors="cyan", linewidths=0.8)
    panel.set_axis_off()
    return image
