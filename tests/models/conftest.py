"""Models of every family, as small as their classes allow, with random weights."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

Tiny = Callable[..., Any]
Saved = Callable[..., Path]

BLOCKS = {
    "sample_size": 8,
    "block_out_channels": (8, 16),
    "layers_per_block": 1,
    "norm_num_groups": 4,
}
CROSS = {
    **BLOCKS,
    "in_channels": 4,
    "out_channels": 4,
    "cross_attention_dim": 8,
    "attention_head_dim": 2,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}
# Text is read on the way down and in the middle only.
BRIEF = {**CROSS, "up_block_types": ("UpBlock2D", "UpBlock2D")}
LINEAR = {**CROSS, "use_linear_projection": True, "attention_head_dim": (2, 4)}
TRANSFORMER = {"num_attention_heads": 2, "attention_head_dim": 8}
SD3 = {
    **TRANSFORMER,
    "sample_size": 8,
    "patch_size": 2,
    "in_channels": 4,
    "num_layers": 2,
    "joint_attention_dim": 8,
    "caption_projection_dim": 16,
    "pooled_projection_dim": 8,
    "out_channels": 4,
    "pos_embed_max_size": 8,
}

CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "ddpm": (
        "UNet2DModel",
        {
            **BLOCKS,
            "in_channels": 3,
            "out_channels": 3,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        },
    ),
    "sd15": ("UNet2DConditionModel", CROSS),
    "sd21": ("UNet2DConditionModel", LINEAR),
    "brief": ("UNet2DConditionModel", BRIEF),
    "inpainting": ("UNet2DConditionModel", {**LINEAR, **BRIEF, "in_channels": 9, "attention_head_dim": (2, 4)}),
    "sdxl": (
        "UNet2DConditionModel",
        {
            **LINEAR,
            "addition_embed_type": "text_time",
            "addition_time_embed_dim": 4,
            "projection_class_embeddings_input_dim": 6 * 4 + 16,
            "transformer_layers_per_block": (1, 1),
            "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
            "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        },
    ),
    "autoencoder": (
        "AutoencoderKL",
        {
            **BLOCKS,
            "sample_size": 16,
            "latent_channels": 4,
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
        },
    ),
    "dit": (
        "DiTTransformer2DModel",
        {**TRANSFORMER, "sample_size": 8, "patch_size": 2, "in_channels": 4, "out_channels": 8, "num_layers": 1,
         "num_embeds_ada_norm": 10, "norm_num_groups": 4},
    ),
    "pixart": (
        "PixArtTransformer2DModel",
        {**TRANSFORMER, "sample_size": 8, "patch_size": 2, "in_channels": 4, "out_channels": 8, "num_layers": 1,
         "cross_attention_dim": 16, "caption_channels": 8, "use_additional_conditions": False},
    ),
    "pixart_sized": (
        "PixArtTransformer2DModel",
        {**TRANSFORMER, "sample_size": 8, "patch_size": 2, "in_channels": 4, "out_channels": 8, "num_layers": 1,
         "cross_attention_dim": 24, "caption_channels": 8, "use_additional_conditions": True,
         "attention_head_dim": 12},
    ),
    "sana": (
        "SanaTransformer2DModel",
        {**TRANSFORMER, "sample_size": 8, "in_channels": 4, "out_channels": 4, "num_layers": 2, "caption_channels": 8,
         "num_cross_attention_heads": 2, "cross_attention_head_dim": 8, "cross_attention_dim": 16, "mlp_ratio": 1.5},
    ),
    "sd3": ("SD3Transformer2DModel", SD3),
    "sd35": ("SD3Transformer2DModel", {**SD3, "qk_norm": "rms_norm", "dual_attention_layers": (0,)}),
    "flux": (
        "FluxTransformer2DModel",
        {**TRANSFORMER, "patch_size": 1, "in_channels": 8, "num_layers": 1, "num_single_layers": 2,
         "joint_attention_dim": 8, "pooled_projection_dim": 8, "guidance_embeds": True, "axes_dims_rope": (2, 2, 4)},
    ),
    "controlnet": (
        "ControlNetModel",
        {
            "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4, "in_channels": 4,
            "cross_attention_dim": 8, "attention_head_dim": 2, "conditioning_embedding_out_channels": (4, 8),
            "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        },
    ),
    "roberta": (
        "RobertaForMaskedLM",
        {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 32, "max_position_embeddings": 18, "type_vocab_size": 1},
    ),
    "bert": (
        "BertForMaskedLM",
        {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 32, "max_position_embeddings": 16},
    ),
}  # fmt: skip

STABLE_DIFFUSION = {
    "_class_name": "StableDiffusionPipeline",
    "_diffusers_version": "0.35.0",
    "vae": ["diffusers", "AutoencoderKL"],
    "text_encoder": ["transformers", "CLIPTextModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "unet": ["diffusers", "UNet2DConditionModel"],
    "scheduler": ["diffusers", "DDIMScheduler"],
    "safety_checker": [None, None],
    "feature_extractor": [None, None],
    "requires_safety_checker": False,
}


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    """Makes the model of a configuration by name, with weights that switch nothing off."""
    pytest.importorskip("diffusers")

    def make(name: str, **changes: Any) -> Any:
        import diffusers
        import torch

        torch.set_num_threads(1)  # the tests run side by side
        import transformers

        from retouch.validation.reference_models._weights import draw_weights

        kind, configuration = CONFIGURATIONS[name]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            if kind.endswith("ForMaskedLM"):
                config = getattr(transformers, f"{kind.removesuffix('ForMaskedLM')}Config")
                model = getattr(transformers, kind)(config(**{**configuration, **changes}))
            else:
                model = getattr(diffusers, kind)(**{**configuration, **changes})
            draw_weights(model)
        return model.eval()

    return make


@pytest.fixture(scope="session")
def pipeline(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a Stable Diffusion pipeline of tiny models."""
    import diffusers
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("pipeline") / "Stable Diffusion"
    # Their attentions are tested one by one in test_families.py.
    tiny("brief").save_pretrained(folder / "unet")
    tiny("autoencoder", mid_block_add_attention=False).save_pretrained(folder / "vae")
    torch.manual_seed(0)
    text = transformers.CLIPTextConfig(
        vocab_size=32, hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=5, projection_dim=8,
    )  # fmt: skip
    transformers.CLIPTextModel(text).save_pretrained(folder / "text_encoder")
    diffusers.DDIMScheduler().save_pretrained(folder / "scheduler")
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "vocab.json").write_text("{}")
    (folder / "model_index.json").write_text(json.dumps(STABLE_DIFFUSION))
    return folder


@pytest.fixture(scope="session")
def painter() -> Callable[[Path], SimpleNamespace]:
    """Loads diffusers' pipeline for ONNX Runtime from an exported directory, with what it makes of a prompt's token."""

    def load(out: Path) -> SimpleNamespace:
        import diffusers
        from diffusers import OnnxRuntimeModel, OnnxStableDiffusionPipeline

        names = ("unet", "vae_encoder", "vae_decoder", "text_encoder")
        parts = {name: OnnxRuntimeModel.from_pretrained(out / name, provider_options=None) for name in names}
        loaded = OnnxStableDiffusionPipeline(
            **parts, tokenizer=None, scheduler=diffusers.DDIMScheduler.from_pretrained(out / "scheduler"),
            safety_checker=None, feature_extractor=None, requires_safety_checker=False,
        )  # fmt: skip
        loaded.set_progress_bar_config(disable=True)
        latents = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)

        def call(token: int) -> np.ndarray:
            prompt = [parts["text_encoder"](input_ids=np.full((1, 5), i, np.int32))[0] for i in (token, 0)]
            return loaded(
                prompt_embeds=prompt[0], negative_prompt_embeds=prompt[1], latents=latents, height=64, width=64,
                num_inference_steps=2, output_type="np",
            ).images  # fmt: skip

        return SimpleNamespace(pipeline=loaded, parts=parts, call=call, latents=latents)

    return load
