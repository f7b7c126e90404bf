"""An optimizer that learns from few examples: AdamW whose steps on matrices are made orthogonal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

__all__ = ["Muon", "orthogonal"]

_LEAST = 16  # rows and columns of a matrix; biases, norms and thin ends get AdamW's steps
_MOMENTUM = 0.95
_BETAS = (0.9, 0.98)
_EPSILON = 1e-8
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_LIKE_ADAM = 0.2  # root mean square of AdamW's steps over its rate


class Muon(torch.optim.Optimizer):
    """AdamW, except that weights which are matrices (a convolution's kernel has a row per output) take Muon's steps.

    Such a step is the momentum made semi-orthogonal, so that all directions of a weight learn at one speed: K. Jordan
    et al., "Muon", 2024. Steps are scaled to the size of AdamW's, as in J. Liu et al., "Muon is scalable for LLM
    training", 2025, so that one rate suits both.

    Args:
        parameters: what is trained.
        lr: the learning rate.
        decay: weight decay, decoupled.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, decay: float = 0.01) -> None:
        super().__init__(parameters, {"lr": lr, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step down the gradients; a closure is not taken."""
        if closure is not None:
            raise TypeError("Expected step() without a closure: the loss is computed once, before it.")
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * group["decay"])
                    direct = _muon if _is_matrix(parameter) else _adam
                    parameter.sub_(direct(parameter.grad, self.state[parameter]), alpha=group["lr"])


def orthogonal(matrix: Tensor) -> Tensor:
    """The matrix with its singular values moved close to one, by five Newton-Schulz iterations in bfloat16."""
    wide = matrix.bfloat16() if matrix.shape[0] <= matrix.shape[1] else matrix.bfloat16().T
    wide = wide / (wide.norm() + _EPSILON)
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        square = wide @ wide.T
        wide = a * wide + (b * square + c * square @ square) @ wide
    result: Tensor = (wide if matrix.shape[0] <= matrix.shape[1] else wide.T).to(matrix.dtype)
    return result


def _is_matrix(parameter: Tensor) -> bool:
    return parameter.ndim > 1 and min(parameter.shape[0], parameter[0].numel()) >= _LEAST


def _muon(gradient: Tensor, state: dict[str, Any]) -> Tensor:
    if not state:
        state["momentum"] = torch.zeros_like(gradient)
    state["momentum"].lerp_(gradient, 1 - _MOMENTUM)
    matrix = gradient.lerp(state["momentum"], _MOMENTUM).flatten(1)
    size: float = _LIKE_ADAM * max(matrix.shape) ** 0.5
    return size * orthogonal(matrix).reshape(gradient.shape)


def _adam(gradient: Tensor, state: dict[str, Any]) -> Tensor:
    if not state:
        state.update(step=0, first=torch.zeros_like(gradient), second=torch.zeros_like(gradient))
    state["step"] += 1
    first = state["first"].lerp_(gradient, 1 - _BETAS[0]) / (1 - _BETAS[0] ** state["step"])
    second = state["second"].lerp_(gradient.square(), 1 - _BETAS[1]) / (1 - _BETAS[1] ** state["step"])
    direction: Tensor = first / (second.sqrt() + _EPSILON)
    return direction
