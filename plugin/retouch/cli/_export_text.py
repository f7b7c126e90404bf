"""What ``retouch export`` does with a block-diffusion language model."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from retouch.bundle import TextBundle
from retouch.cli._steps import Steps
from retouch.models.decoders import export_language_model


def export_text(model: Path, output: Path) -> None:
    """Writes the text bundle of a language model and says what it is."""
    with Steps() as steps:
        bundle = export_language_model(model, output, tell=steps.begin)
    Console().print(_summary(bundle))


def _summary(bundle: TextBundle) -> Table:
    manifest = bundle.manifest
    spec = manifest.model
    per_token = 2 * spec.layers * spec.kv_heads * spec.head_dim * 4
    table = Table(show_header=False)
    table.add_row("text bundle", str(bundle.path))
    table.add_row("size", f"{sum(file.bytes for file in manifest.files.values()) / 2**20:.1f} MiB")
    table.add_row("model", f"{spec.family}: {spec.layers} layers of width {spec.hidden}, blocks of {spec.block} tokens")
    table.add_row("longest text", f"{spec.positions} tokens")
    table.add_row("keys and values", f"{per_token / 2**10:.1f} KiB a token")
    for check, error in manifest.verification.items():
        table.add_row(f"verified {check}", f"{error:.1e} of the largest logit")
    return table
