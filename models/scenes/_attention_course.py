"""Shows the denoiser where to look: at its own place's object, as the text encoder's reader does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retouch.models.scenes._vocabulary import Place, Shape

if TYPE_CHECKING:
    import torch
    from diffusers import UNet2DConditionModel

__all__ = ["Gaze", "where_to_look"]

_LEAST = 1e-4  # so that looking nowhere right costs much, but not infinitely much


class Gaze:
    """Attention of a network's blocks that remembers where captions were read.

    It is written out: on CPUs the fused attention is slow to differentiate.
    """

    def __init__(self, network: UNet2DConditionModel) -> None:
        """Makes itself the processor of all the network's attentions."""
        self._seen: list[torch.Tensor] = []
        network.set_attn_processor(self)

    def __call__(
        self,
        attention: Any,  # noqa: ANN401 (an Attention of diffusers, which is untyped)
        hidden_states: torch.Tensor,
        encoder_hidden_states: torch.Tensor | None = None,
        **_: object,
    ) -> torch.Tensor:
        """What the attention gives for positions ``[N, positions, width]``."""
        asked = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        heads: int = attention.heads
        query, key, value = (
            part.unflatten(2, (heads, -1)).transpose(1, 2)
            for part in (attention.to_q(hidden_states), attention.to_k(asked), attention.to_v(asked))
        )
        shares = (query @ key.transpose(2, 3) * attention.scale).softmax(-1)
        if encoder_hidden_states is not None:
            self._seen.append(shares[:, 0])
        mixed = (shares.to(value.dtype) @ value).transpose(1, 2).flatten(2)
        result: torch.Tensor = attention.to_out[0](mixed)
        return result

    def loss(self, wanted: torch.Tensor) -> torch.Tensor:
        """Mean cross entropy of the gaze of every position since the last call.

        Args:
            wanted: where positions of every place should look, ``[N, 9, tokens]``, see :func:`where_to_look`.
        """
        losses = []
        for shares in self._seen:
            target = wanted[:, _places(shares.shape[1])]
            losses.append(-(target * (shares.float() + _LEAST).log()).sum(-1).mean())
        self._seen.clear()
        return sum(losses[1:], losses[0]) / len(losses)


def where_to_look(pupil: torch.nn.ModuleDict, text: torch.Tensor) -> torch.Tensor:
    """Shares of tokens for every place, ``[N, 9, tokens]``: those of its object; of the background if there is none."""
    import torch

    questions: Any = pupil["questions"]
    with torch.no_grad():
        answers, shares = pupil["attention"](questions.weight.expand(len(text), -1, -1), text, text)
        empty = pupil["shape"](answers[:, :-1]).argmax(-1) == len(Shape)
        looked: torch.Tensor = torch.where(empty[..., None], shares[:, -1:], shares[:, :-1])
    return looked


def _places(positions: int) -> torch.Tensor:
    """The place of every position of a square grid, row by row."""
    import torch

    side = round(positions**0.5)
    per_side = round(len(Place) ** 0.5)
    line = torch.arange(side) * per_side // side
    places: torch.Tensor = (per_side * line[:, None] + line).flatten()
    return places
