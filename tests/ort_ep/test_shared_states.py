"""One base run serves sessions and threads from one copy of its states: there is nothing that a slot would save."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import pytest

from retouch import Bundle, EditSession
from retouch.states import StateStore
from tests.ort_ep.small_bundle import REGION, feed


def test_every_session_and_thread_binds_the_memory_in_which_a_base_run_left_its_states(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[tuple[str, int]] = []
    bind = onnxruntime.IOBinding.bind_ortvalue_input

    def recorded(binding: onnxruntime.IOBinding, name: str, value: onnxruntime.OrtValue) -> None:
        bound.append((name, value.data_ptr()))
        bind(binding, name, value)

    store = StateStore()
    with (
        EditSession(bundle, threads=1, store=store) as first,
        EditSession(bundle, threads=2, store=store) as second,
        ThreadPoolExecutor(4) as pool,
    ):
        run = first.base(feed(0))
        kept = {name: np.array(state.numpy()) for name, state in run.states.items()}
        places = {name: {state.numpy().__array_interface__["data"][0]} for name, state in run.states.items()}
        monkeypatch.setattr(onnxruntime.IOBinding, "bind_ortvalue_input", recorded)
        jobs = [
            pool.submit(session.edit, run, feed(1), region=REGION, fallback=False) for session in (first, second) * 8
        ]
        results = [job.result().outputs["y"] for job in jobs]
        unchanged = all(np.array_equal(kept[name], state.numpy()) for name, state in run.states.items())
    read: defaultdict[str, set[int]] = defaultdict(set)
    for name, address in bound:
        if name.startswith("cached."):
            read[name.removeprefix("cached.")].add(address)
    assert read == places
    assert unchanged
    assert all(np.array_equal(result, results[0]) for result in results)
