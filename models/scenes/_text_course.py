"""Teaches the text encoder what captions say: which object is at which place."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from retouch.models.scenes._networks import TEXT_WIDTH
from retouch.models.scenes._scene import Scene
from retouch.models.scenes._vocabulary import Background, Colour, Place, Shape, Size

if TYPE_CHECKING:
    import torch
    from diffusers import UNet2DConditionModel
    from transformers import CLIPTokenizer

__all__ = ["hand_over", "make_pupil", "text_loss"]

_QUESTIONS = {"shape": Shape, "colour": Colour, "size": Size}
_NOBODY = -100  # cross entropy leaves these out


def make_pupil(text_encoder: torch.nn.Module) -> torch.nn.ModuleDict:
    """The text encoder with a reader: a question per place that attends to the text, as the denoiser will."""
    from torch import nn

    heads = {name: nn.Linear(TEXT_WIDTH, len(kind) + (name == "shape")) for name, kind in _QUESTIONS.items()}
    return nn.ModuleDict(
        {
            "text_encoder": text_encoder,
            "questions": nn.Embedding(len(Place) + 1, TEXT_WIDTH),
            "attention": nn.MultiheadAttention(TEXT_WIDTH, 4, batch_first=True),
            "background": nn.Linear(TEXT_WIDTH, len(Background)),
            **heads,
        }
    )


def text_loss(pupil: torch.nn.ModuleDict, tokenizer: CLIPTokenizer, scenes: list[Scene]) -> torch.Tensor:
    """Mean cross entropy of the answers about every place and about the background."""
    import torch
    from torch.nn.functional import cross_entropy

    tokens = tokenizer([s.caption for s in scenes], padding="max_length", return_tensors="pt").input_ids
    text = pupil["text_encoder"](tokens).last_hidden_state
    asked: Any = pupil["questions"]
    questions = asked.weight.expand(len(scenes), -1, -1)
    answers, _ = pupil["attention"](questions, text, text, need_weights=False)
    background = torch.tensor([list(Background).index(s.background) for s in scenes])
    loss = cross_entropy(pupil["background"](answers[:, -1]), background)
    for name, kind in _QUESTIONS.items():
        expected = torch.tensor([_expected(s, name, list(kind)) for s in scenes])
        loss = loss + cross_entropy(
            pupil[name](answers[:, :-1]).flatten(0, 1), expected.flatten(), ignore_index=_NOBODY
        )
    return loss


def hand_over(pupil: torch.nn.ModuleDict, denoiser: UNet2DConditionModel, strength: float = 0.2) -> None:
    """Starts every cross-attention of a denoiser with the reader's keys and values; where to look is left to learn.

    Args:
        pupil: a trained pupil.
        denoiser: gets the weights, in blocks of the text's width.
        strength: what the reader's answers, which are large, are multiplied by.
    """
    import torch

    reader: Any = pupil["attention"]
    _, keys, values = reader.in_proj_weight.chunk(3)
    bias = reader.out_proj.weight @ reader.in_proj_bias.chunk(3)[2] + reader.out_proj.bias
    with torch.no_grad():
        for name, block in denoiser.named_modules():
            if name.endswith(".attn2"):
                attention: Any = block
                attention.to_k.weight.copy_(keys)
                attention.to_v.weight.copy_(values)
                attention.to_out[0].weight.copy_(strength * reader.out_proj.weight)
                attention.to_out[0].bias.copy_(strength * bias)


def _expected(scene: Scene, name: str, members: list[Enum]) -> list[int]:
    """The answer for every place; a place without object has the shape after the last and no other answers."""
    row = [len(members) if name == "shape" else _NOBODY] * len(Place)
    for one in scene.objects:
        row[list(Place).index(one.place)] = members.index(getattr(one, name))
    return row
