"""Language models with random weights, for tests."""

from __future__ import annotations

import torch

from retouch.models.code_lm import CodeLmConfig
from retouch.models.code_lm._network import CodeLm

SMALL = CodeLmConfig(hidden_size=32, num_hidden_layers=2, head_dim=8, intermediate_size=48)
"""As small as a network with shared heads can be and still mix what it reads."""


def random_code_lm(config: CodeLmConfig, matrices: float, vectors: float | None = None) -> CodeLm:
    """A network whose matrices spread so far around zero, and the weights of whose norms so far around one."""
    torch.manual_seed(0)
    made = CodeLm(config)
    for parameter in made.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, 0.0, matrices)
        else:
            torch.nn.init.normal_(parameter, 1.0, matrices if vectors is None else vectors)
    return made.eval()
