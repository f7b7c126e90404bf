"""The picture of how losses fell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from retouch.errors import ModelError
from retouch.models.code_lm.picture import draw_losses, main


def test_every_training_has_a_plot(tmp_path: Path) -> None:
    for name, kinds in {"one": ["masked", "noised"], "two": ["next"]}.items():
        (tmp_path / name).mkdir()
        entries = [
            {"step": step, "seconds": 2.0 * step, **dict.fromkeys(kinds, 3 / (1 + step))} for step in range(1, 40)
        ]
        (tmp_path / name / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    draw_losses(tmp_path / "one.png", {"one": tmp_path / "one"})
    main([f"a={tmp_path / 'one'}", f"b={tmp_path / 'two'}"], tmp_path / "both.png")
    with Image.open(tmp_path / "one.png") as one, Image.open(tmp_path / "both.png") as both:
        assert both.width == 2 * one.width
        assert sum(count > 0 for count in both.convert("L").histogram()) > 20


def test_what_is_no_training_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no log.jsonl"):
        draw_losses(tmp_path / "x.png", {"nothing": tmp_path})
    with pytest.raises(ModelError, match="NAME=FOLDER"):
        main([str(tmp_path)], tmp_path / "x.png")
