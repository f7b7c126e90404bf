"""The denoiser's attention is watched without being changed, and learns to look where the reader looks."""

from __future__ import annotations

from typing import Any

import pytest

from retouch.models.scenes._attention_course import Gaze, where_to_look
from retouch.models.scenes._networks import TEXT_WIDTH, make_denoiser, make_text_encoder
from retouch.models.scenes._text_course import hand_over, make_pupil
from retouch.models.scenes._tokens import LENGTH, make_tokenizer

torch: Any = pytest.importorskip("torch")
pytest.importorskip("diffusers")


@pytest.fixture(scope="module")
def denoiser() -> Any:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return make_denoiser()


@pytest.fixture(scope="module")
def pupil(tmp_path_factory: pytest.TempPathFactory) -> Any:
    torch.manual_seed(1)
    return make_pupil(make_text_encoder(make_tokenizer(tmp_path_factory.mktemp("tokenizer"))))


@pytest.fixture
def text() -> Any:
    return torch.randn(2, LENGTH, TEXT_WIDTH, generator=torch.Generator().manual_seed(2))


def _predicted(denoiser: Any, text: Any) -> Any:
    noisy = torch.randn(2, 4, 32, 32, generator=torch.Generator().manual_seed(3))
    return denoiser(noisy, torch.tensor([999, 500]), text).sample


def test_what_is_predicted_stays_the_same(denoiser: Any, text: Any) -> None:
    from diffusers.models.attention_processor import AttnProcessor

    denoiser.set_attn_processor(AttnProcessor())
    expected = _predicted(denoiser, text)
    Gaze(denoiser)
    assert torch.allclose(_predicted(denoiser, text), expected, atol=1e-5)


def test_gazes_move_to_where_they_are_wanted(denoiser: Any, text: Any) -> None:
    gaze = Gaze(denoiser)
    wanted = torch.zeros(2, 9, LENGTH)
    wanted[:, torch.arange(9), torch.arange(9)] = 1
    queries = [p for name, p in denoiser.named_parameters() if name.endswith("attn2.to_q.weight")]
    optimizer = torch.optim.Adam(queries, 0.02)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        _predicted(denoiser, text)
        loss = gaze.loss(wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert len(queries) == 4
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.parametrize("empty", [True, False])
def test_places_without_object_look_at_the_background(pupil: Any, text: Any, *, empty: bool) -> None:
    with torch.no_grad():
        pupil["shape"].bias[-1] = 100.0 if empty else -100.0
        _, shares = pupil["attention"](pupil["questions"].weight.expand(2, -1, -1), text, text)
    got = where_to_look(pupil, text)
    assert torch.allclose(got.sum(-1), torch.ones(2, 9), atol=1e-5)
    assert torch.allclose(got, shares[:, -1:].expand(-1, 9, -1) if empty else shares[:, :-1], atol=1e-6)


def test_cross_attention_starts_with_the_answers_of_the_reader(denoiser: Any, pupil: Any, text: Any) -> None:
    hand_over(pupil, denoiser, strength=1.0)
    attention = denoiser.mid_block.attentions[0].transformer_blocks[0].attn2
    with torch.no_grad():
        nowhere = torch.zeros(2, 1, TEXT_WIDTH)  # equal shares of every token, for both
        expected, _ = pupil["attention"](_indifferent(pupil), text, text)
        assert torch.allclose(attention(nowhere, text), expected, atol=1e-5)


def _indifferent(pupil: Any) -> Any:
    """A question that the reader's query projection maps to nothing, so that it looks everywhere alike."""
    query, _, _ = pupil["attention"].in_proj_weight.chunk(3)
    bias = pupil["attention"].in_proj_bias[: len(query)]
    return torch.linalg.solve(query.double(), -bias.double()).float().expand(2, 1, -1)
