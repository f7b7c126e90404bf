"""The language model in torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from retouch.errors import ModelError
from retouch.models.code_lm import CodeLmConfig, load_code_lm, load_tokenizer, save_code_lm
from retouch.models.code_lm._doubled import attend_causally, attend_doubled
from retouch.models.code_lm._network import CodeLm, block_mask
from retouch.models.code_lm._objective import causal_entropy, corrupt, losses, negative_bound, training_mask
from retouch.tokens import code_characters


@torch.no_grad()
def test_keys_and_values_of_earlier_blocks_are_exact(network: CodeLm) -> None:
    ids, positions = torch.randint(99, (1, 12)), torch.arange(12)
    whole, _ = network(ids, positions, block_mask(positions, positions, 4))
    _, past = network(ids[:, :8], positions[:8], block_mask(positions[:8], positions[:8], 4))
    last, _ = network(ids[:, 8:], positions[8:], past=past)
    torch.testing.assert_close(last, whole[:, 8:])


@torch.no_grad()
def test_tokens_see_their_block_and_earlier_ones_only(network: CodeLm) -> None:
    ids, positions = torch.randint(99, (1, 12)), torch.arange(12)
    mask = block_mask(positions, positions, 4)
    before, _ = network(ids, positions, mask)
    changed = ids.clone()
    changed[0, 7] = (changed[0, 7] + 1) % 99
    after, _ = network(changed, positions, mask)
    differs = (before != after).any(-1)[0]
    assert differs.tolist() == [False] * 4 + [True] * 8


@torch.no_grad()
def test_training_sees_what_decoding_sees(network: CodeLm) -> None:
    """A corrupted block in the doubled text gets the logits that it gets behind the clean blocks before it."""
    clean, noisy = torch.randint(97, (1, 12)), torch.full((1, 12), 98)
    doubled, _ = network(torch.cat((noisy, clean), 1), torch.arange(12).repeat(2), training_mask(12, 4), logits_of=12)
    for start in (0, 4, 8):
        positions = torch.arange(start + 4)
        text = torch.cat((clean[:, :start], noisy[:, start : start + 4]), 1)
        alone, _ = network(text, positions, block_mask(positions, positions, 4))
        torch.testing.assert_close(doubled[:, start : start + 4], alone[:, start:])


@torch.no_grad()
def test_attention_without_hidden_scores_is_that_of_the_mask(network: CodeLm) -> None:
    ids, positions = torch.randint(99, (2, 24)), torch.arange(12).repeat(2)
    torch.testing.assert_close(
        network(ids, positions, attend_doubled(12, 4))[0], network(ids, positions, training_mask(12, 4))[0]
    )
    ids, positions = ids[:, :12], positions[:12]
    torch.testing.assert_close(
        network(ids, positions, attend_causally(12))[0], network(ids, positions, block_mask(positions, positions, 1))[0]
    )


@torch.no_grad()
def test_the_baseline_is_scored_on_next_tokens(network: CodeLm) -> None:
    ids = torch.randint(97, (1, 9))
    entropy = causal_entropy(network, ids)
    assert entropy.shape == (1, 8)
    for place in range(1, 9):
        positions = torch.arange(place)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits, _ = network(ids[:, :place], positions, block_mask(positions, positions, 1))
        alone = -logits[0, -1].float().log_softmax(-1)[ids[0, place]]
        torch.testing.assert_close(entropy[0, place - 1], alone, rtol=0.02, atol=0.02)


def test_corruption_masks_and_replaces(network: CodeLm) -> None:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(97, (64, 16), generator=generator)
    shares = torch.ones(99) / 99
    hidden = corrupt(ids, network.config, shares, generator)
    assert (hidden.ids[hidden.masked] == 98).all()
    assert not (hidden.masked & hidden.noised).any()
    untouched = ~hidden.masked & ~hidden.noised
    assert (hidden.ids[untouched] == ids[untouched]).all()
    assert 0.4 < hidden.masked.float().mean() < 0.7
    # Half of the blocks have replaced tokens, up to 30 % of those that are left.
    assert 0.01 < hidden.noised.float().mean() < 0.08


def test_training_lowers_every_loss(network: CodeLm) -> None:
    torch.manual_seed(0)
    learner = CodeLm(network.config)
    ids = torch.arange(16).repeat(8, 1) % 4
    shares = torch.ones(99) / 99
    optimizer = torch.optim.AdamW(learner.parameters(), 1e-2)
    first = losses(learner, ids, shares, torch.Generator().manual_seed(0))
    for step in range(25):
        losses(learner, ids, shares, torch.Generator().manual_seed(step)).weighted.backward()
        optimizer.step()
        optimizer.zero_grad()
    last = losses(learner, ids, shares, torch.Generator().manual_seed(0))
    for kind in ("masked", "noised", "clean"):
        assert last.parts[kind] < 0.8 * first.parts[kind]
    with torch.no_grad():
        assert negative_bound(learner, ids, torch.Generator().manual_seed(1)) < 0.8 * negative_bound(
            network, ids, torch.Generator().manual_seed(1)
        )


@torch.no_grad()
def test_a_network_survives_the_disk(network: CodeLm, tmp_path: Path) -> None:
    save_code_lm(network, code_characters(), tmp_path, half=False)
    ids = torch.randint(99, (1, 8))
    torch.testing.assert_close(load_code_lm(tmp_path)(ids, torch.arange(8))[0], network(ids, torch.arange(8))[0])
    assert load_tokenizer(tmp_path).symbols == code_characters().symbols


def test_bad_configurations_are_refused() -> None:
    with pytest.raises(ModelError, match="evenly"):
        CodeLmConfig(num_attention_heads=4, num_key_value_heads=3)
    with pytest.raises(ModelError, match="rotated dims"):
        CodeLmConfig(head_dim=6, partial_rotary_factor=0.5)
    with pytest.raises(ModelError, match="model_type 'bert'"):
        CodeLmConfig.from_dict({"model_type": "bert"})
