"""The plan as a picture: FLOPs along the model, coloured by plan class."""

from __future__ import annotations

from pathlib import Path

from retouch.bundle import Manifest
from retouch.errors import EngineMissingError, ResultFileError

_COLOURS = {
    "incremental": "tab:green",
    "hoisted": "tab:blue",
    "constant": "tab:gray",
    "statistic": "tab:olive",
    "densified": "tab:red",
}


def draw_plan(manifest: Manifest, path: Path) -> None:
    """Writes one bar per node that multiplies, in the model's order.

    Raises:
        EngineMissingError: matplotlib is not installed.
        ResultFileError: the picture cannot be written.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        message = 'A picture needs matplotlib, which is not installed: pip install "retouch[demo]".'
        raise EngineMissingError(message) from error
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = [row for row in manifest.plan if row.flops]
    figure, axes = plt.subplots(figsize=(12, 4), layout="constrained")
    for plan, colour in _COLOURS.items():
        places = [place for place, row in enumerate(rows) if row.plan == plan]
        if not places:
            continue
        flops = [rows[place].flops / 1e9 for place in places]
        share = sum(flops) * 1e9 / manifest.flops if manifest.flops else 0.0
        axes.bar(places, flops, width=1.0, color=colour, label=f"{plan}, {share:.1%} of the FLOPs")
    axes.set_xlabel("node, in the model's order (those without multiplications left out)")
    axes.set_ylabel("GFLOP")
    axes.set_title(f"{manifest.model.name}: coverage {manifest.coverage:.1%}")
    if rows:
        axes.legend()
    try:
        figure.savefig(path, dpi=80)
    except (OSError, ValueError) as error:
        message = f"The picture {path} cannot be written ({error}). Give a .png, .svg or .pdf file."
        raise ResultFileError(message) from error
    finally:
        plt.close(figure)
