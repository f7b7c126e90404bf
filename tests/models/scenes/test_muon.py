"""Steps on matrices are orthogonal, on everything else AdamW's; both learn, and both go on from a saved state."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(24, 80), (80, 24)])
def test_orthogonal_keeps_directions_and_evens_lengths(shape: tuple[int, int]) -> None:
    from retouch.models.scenes._muon import orthogonal

    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    u, s, v = torch.linalg.svd(matrix, full_matrices=False)
    assert s.max() / s.min() > 2
    got = u.T @ orthogonal(matrix) @ v.T
    assert got.diagonal().min() > 0.6 and got.diagonal().max() < 1.3
    assert (got - torch.diag(got.diagonal())).abs().max() < 0.05


def test_a_step_on_a_kernel_is_as_large_as_one_of_adamw() -> None:
    from retouch.models.scenes._muon import Muon

    kernel = torch.zeros(32, 16, 3, 3, requires_grad=True)
    kernel.grad = torch.randn(kernel.shape, generator=torch.Generator().manual_seed(0))
    Muon([kernel], lr=0.01).step()
    assert kernel.square().mean().sqrt().item() == pytest.approx(0.2 * 0.01, rel=0.2)


def test_what_is_no_matrix_gets_the_steps_of_adamw() -> None:
    from retouch.models.scenes._muon import Muon

    generator = torch.Generator().manual_seed(0)
    ours, theirs = (torch.ones(40, requires_grad=True) for _ in range(2))
    optimizers = Muon([ours], lr=0.1), torch.optim.AdamW([theirs], 0.1, betas=(0.9, 0.98), weight_decay=0.01)
    for _ in range(5):
        ours.grad = theirs.grad = torch.randn(40, generator=generator)
        for optimizer in optimizers:
            optimizer.step()
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_it_goes_on_from_its_state() -> None:
    from retouch.models.scenes._muon import Muon

    network = torch.nn.Linear(32, 16)
    optimizer = Muon(network.parameters(), lr=0.01)
    inputs = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))

    def step(by: Any, on: Any) -> float:
        by.zero_grad()
        loss = (on(inputs) - inputs[:, :16]).square().mean()
        loss.backward()
        by.step()
        return float(loss.detach())

    first = step(optimizer, network)
    copied = torch.nn.Linear(32, 16)
    copied.load_state_dict(network.state_dict())
    other = Muon(copied.parameters(), lr=0.01)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))  # a state is shared otherwise
    assert [step(other, copied) for _ in range(20)] == [step(optimizer, network) for _ in range(20)]
    assert step(optimizer, network) < 0.8 * first
