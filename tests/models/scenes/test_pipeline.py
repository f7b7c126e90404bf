"""The pipeline loads as it is, draws the same every time, and takes captions of scenes only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retouch.errors import FeedError, ModelError
from retouch.models.scenes import PIPELINE, Sampling, load_pipeline, make_images, unseen_scenes
from retouch.models.scenes._autoencoding import restoration_psnr

FEW = Sampling(steps=8, batch=3)


@pytest.fixture(scope="module")
def pipeline() -> Any:
    torch = pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    torch.set_num_threads(1)
    return load_pipeline()


def test_the_weights_are_small_and_in_half_precision() -> None:
    from safetensors.numpy import load_file

    weights = list(PIPELINE.rglob("*.safetensors"))
    assert len(weights) == 3
    assert sum(path.stat().st_size for path in weights) <= 12_000_000
    assert {str(tensor.dtype) for path in weights for tensor in load_file(path).values()} == {"float16"}


def test_diffusers_loads_it_unchanged_and_in_one_precision(pipeline: Any) -> None:
    import torch

    index = json.loads((PIPELINE / "model_index.json").read_text())
    assert index["_class_name"] == type(pipeline).__name__ == "StableDiffusionPipeline"
    assert index["safety_checker"] == index["feature_extractor"] == [None, None]
    assert {pipeline.unet.dtype, pipeline.vae.dtype, pipeline.text_encoder.dtype} == {torch.float32}
    assert pipeline.unet.config.sample_size == 32 and pipeline.vae_scale_factor == 2


def test_images_are_the_same_for_the_same_seed(pipeline: Any) -> None:
    captions = [scene.caption for scene in unseen_scenes(3)]
    brief = Sampling(steps=2)
    together = make_images(pipeline, captions, brief)
    assert together.shape == (3, 64, 64, 3) and together.dtype == np.uint8
    alone = make_images(pipeline, captions[1:2], Sampling(steps=2, seed=1))
    assert np.abs(together[1].astype(int) - alone[0]).max() <= 1, "another batch rounds differently"
    assert (make_images(pipeline, captions, brief) == together).all()


def test_scenes_survive_the_autoencoder(pipeline: Any) -> None:
    assert restoration_psnr(pipeline.vae, unseen_scenes(6)) >= 28


def test_unknown_words_are_refused_before_anything_is_drawn(pipeline: Any) -> None:
    with pytest.raises(FeedError, match="got 'dog'"):
        make_images(pipeline, ["a large red dog on the left, grey background"], FEW)


def test_a_directory_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no model_index\.json"):
        load_pipeline(tmp_path)
