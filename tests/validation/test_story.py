"""The story on an untrained pipeline of the same kind: what it writes, and that its regions hold what it edits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from retouch.validation.story import main
from retouch.validation.story._chapters import BASE, CHAPTERS, SLIDER, around

STEPS = 2


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the story of a narrow pipeline lies."""
    torch = pytest.importorskip("torch")
    diffusers = pytest.importorskip("diffusers")
    from retouch.models.scenes._assemble import assemble, write_pipeline
    from retouch.models.scenes._networks import TEXT_WIDTH, make_text_encoder
    from retouch.models.scenes._tokens import make_tokenizer

    folder = tmp_path_factory.mktemp("story")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = make_tokenizer(folder / "tokenizer")
    blocks: dict[str, Any] = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}
    unet = diffusers.UNet2DConditionModel(
        **blocks, sample_size=32, cross_attention_dim=TEXT_WIDTH, attention_head_dim=2,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        **blocks, latent_channels=4, sample_size=64, mid_block_add_attention=False,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    write_pipeline(assemble(tokenizer, make_text_encoder(tokenizer), vae, unet, 1.0), folder / "pipeline")
    main(folder / "out", folder / "pipeline", steps=STEPS, guidance=2.0, seed=0, repeats=1, threads=1)
    return folder / "out"


def test_every_edit_is_told_with_what_it_cost(told: Path) -> None:
    rows = json.loads((told / "scenes.json").read_text())
    assert [row["name"] for row in rows] == [*(chapter.name for chapter in CHAPTERS), "4 strengths at once, each"]
    assert all(row["edit_ms"] > 0 and row["again_ms"] > 0 and row["area"] == 0.0625 for row in rows)
    assert all(0.5 < row["kept"] < 1 for row in rows)


def test_the_sheet_shows_every_image(told: Path) -> None:
    sheet = np.asarray(Image.open(told / "scenes.png").convert("L"), float)
    height, width = (size // 2 for size in sheet.shape)
    quarters = [sheet[y : y + height, x : x + width] for y in (0, height) for x in (0, width)]
    assert all(quarter.std() > 20 for quarter in quarters)


def test_regions_surround_objects_and_prompts_change_one_of_them() -> None:
    from retouch.models.scenes import parse_caption, render

    before = render(parse_caption(BASE)).astype(int)
    for place, prompt in [*((c.place, c.prompt) for c in CHAPTERS), (CHAPTERS[0].place, SLIDER[1])]:
        changed = (render(parse_caption(prompt)) != before).any(axis=2)
        assert changed.any() and not (changed & ~around(place).mask).any()
