"""Our attention and the forms that stock kernels have for it compute the same, and their times are told apart."""

from __future__ import annotations

import pytest

from retouch.ort_ep import register
from retouch.validation.kernels import OURS, STOCK_ATTENTIONS, attention_errors, attention_times

pytestmark = pytest.mark.skipif(not register(), reason=f"there are no kernels: {register().reason}")


def test_all_forms_agree_with_double_precision() -> None:
    errors = attention_errors(5, 40)
    assert set(errors) == {OURS, *STOCK_ATTENTIONS}
    assert max(errors.values()) < 2e-6


def test_all_forms_take_time() -> None:
    times = attention_times(5, 40, repeats=1)
    assert set(times) == {OURS, *STOCK_ATTENTIONS} and min(times.values()) > 0
