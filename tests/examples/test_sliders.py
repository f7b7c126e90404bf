"""The loop of sliders runs as it is written, on a tiny exported pipeline."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

EXAMPLE = Path(__file__).parents[2] / "examples" / "sliders.py"


def test_every_slider_goes_further(
    exported_tiny_pipeline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    strip = tmp_path / "strip.png"
    asked = (exported_tiny_pipeline(2), "a red circle", "a blue circle", strip)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *map(str, asked)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    moved = [float(line.split()[-3]) for line in capsys.readouterr().out.splitlines()]
    assert len(moved) == 5 and moved[-1] > moved[0]
    images = np.split(np.asarray(Image.open(strip)), 6, axis=1)
    assert len({image.tobytes() for image in images}) == 6
