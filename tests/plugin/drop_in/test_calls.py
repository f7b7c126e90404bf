"""Every form in which onnxruntime takes a call, outside of scopes, in a recording and in an edit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnxruntime import IOBinding, OrtValue
from onnxruntime.capi import onnxruntime_pybind11_state as bindings

import retouch
from retouch import FeedError, RunError

Feeds = dict[str, np.ndarray]
Call = Callable[[Any, Feeds], np.ndarray]


def _run(session: Any, feeds: Feeds) -> np.ndarray:
    return session.run(["y"], feeds)[0]


def _run_with_a_value(session: Any, feeds: Feeds) -> np.ndarray:
    return session.run([], {"x": OrtValue.ortvalue_from_numpy(feeds["x"]), "sigma": feeds["sigma"]})[0]


def _run_async(session: Any, feeds: Feeds) -> np.ndarray:
    done, got = threading.Event(), []

    def callback(results: list[np.ndarray], user_data: object, error: str) -> None:
        got.extend([results, user_data, error])
        done.set()

    given = {name: array.copy() for name, array in feeds.items()}
    session.run_async(["y"], given, callback, "mine")
    assert done.wait(30)
    assert got[1:] == ["mine", ""]
    return got[0][0]


def _run_with_ort_values(session: Any, feeds: Feeds) -> np.ndarray:
    values = {name: OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    return session.run_with_ort_values(None, values)[0].numpy()


def _run_with_a_vector(session: Any, feeds: Feeds) -> np.ndarray:
    given, fetched = bindings.OrtValueVector(), bindings.OrtValueVector()
    values = [OrtValue.ortvalue_from_numpy(array) for array in feeds.values()]
    for value in values:
        given.push_back(value._get_c_value())
    device = onnxruntime.OrtDevice.make("cpu", 0)._get_c_device()
    session.run_with_ortvaluevector(onnxruntime.RunOptions(), list(feeds), given, ["y"], fetched, [device])
    assert len(fetched) == 1
    return fetched[0].numpy()


def _bound(session: Any, feeds: Feeds) -> IOBinding:
    """A binding made directly, as optimum makes it, with inputs given as raw pointers."""
    binding = IOBinding(session)
    for name, array in feeds.items():
        binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    return binding


def _bind_onto_the_input(session: Any, feeds: Feeds) -> np.ndarray:
    memory = {**feeds, "x": feeds["x"].copy()}
    binding = _bound(session, memory)
    binding.bind_output("y", "cpu", 0, np.float32, memory["x"].shape, memory["x"].ctypes.data)
    session.run_with_iobinding(binding)
    assert len(binding.get_outputs()) == 1
    return memory["x"]


def _bind_to_a_device(session: Any, feeds: Feeds) -> np.ndarray:
    binding = _bound(session, feeds)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    (value,) = binding.get_outputs()
    return value.numpy().copy()


def _bind_arrays(session: Any, feeds: Feeds) -> np.ndarray:
    binding = session.io_binding()
    binding.bind_cpu_input("x", feeds["x"])
    binding.bind_ortvalue_input("sigma", OrtValue.ortvalue_from_numpy(feeds["sigma"]))
    target = session.create_ortvalue_from_shape_and_type([1, 2, 8, 8], np.float32, "cpu")
    binding.bind_ortvalue_output("y", target)
    session.run_with_iobinding(binding)
    (array,) = binding.copy_outputs_to_cpu()
    assert (target.numpy() == array).all()
    return array


CALLS = [
    _run, _run_with_a_value, _run_async, _run_with_ort_values, _run_with_a_vector, _bind_onto_the_input,
    _bind_to_a_device, _bind_arrays,
]  # fmt: skip


def _painted(feeds: Feeds, mask: np.ndarray) -> Feeds:
    """The feeds with other noise where the mask says so."""
    noise = np.random.default_rng(1).standard_normal(feeds["x"].shape, dtype=np.float32)
    return {**feeds, "x": np.where(mask, noise, feeds["x"])}


@pytest.mark.parametrize("call", CALLS)
def test_calls(session, stock, hand_built, box, call: Call) -> None:
    feeds = hand_built.feeds()
    (expected,) = stock.run(["y"], feeds)
    assert call(session, feeds).tobytes() == expected.tobytes()
    with session.record() as recording:
        recorded = call(session, feeds)
    np.testing.assert_allclose(recorded, expected, atol=1e-6)
    np.testing.assert_array_equal(recording.runs[0].feeds["x"], feeds["x"])
    painted = _painted(feeds, box)
    with session.edit(recording, box, policy="exact"):
        expected = _run(session, painted)
    with session.edit(recording, box, policy="exact") as editing:
        edited = call(session, painted)
    assert edited.tobytes() == expected.tobytes()
    assert len(editing.reports) == 1


def test_one_binding_serves_all_calls(session, hand_built, stock, box) -> None:
    feeds = hand_built.feeds()
    binding = _bound(session, feeds)
    binding.bind_output("y")
    with session.record() as recording:
        session.run_with_iobinding(binding)
    with session.edit(recording, box):
        session.run_with_iobinding(binding)
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tobytes() == stock.run(["y"], feeds)[0].tobytes()


def test_bindings_that_do_not_fit(session, hand_built) -> None:
    feeds = hand_built.feeds()
    with session.record() as recording:
        binding = _bound(session, {"x": feeds["x"]})
        binding.bind_output("y")
        with pytest.raises(FeedError, match="Bind every input"):
            session.run_with_iobinding(binding)
    assert recording.calls == 0
    binding.bind_input("sigma", "cpu", 0, np.float32, (1,), feeds["sigma"].ctypes.data)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert len(binding.get_outputs()) == 1


def test_bindings_of_another_session(session, stock, hand_built) -> None:
    other = _bound(stock, hand_built.feeds())
    for scope in (contextlib.nullcontext(), session.record()):
        with scope, pytest.raises(ValueError, match="session that created it"):
            session.run_with_iobinding(other)
    before = _bound(session, hand_built.feeds())
    session.set_providers(["CPUExecutionProvider"])
    with session.record(), pytest.raises(ValueError, match="session that created it"):
        session.run_with_iobinding(before)


def test_an_asynchronous_call_that_fails_says_so(session, hand_built, box) -> None:
    with session.record() as recording:
        session.run(None, hand_built.feeds())
    got, done = [], threading.Event()

    def callback(*arguments: Any) -> None:
        got.extend(arguments)
        done.set()

    with session.edit(recording, box):
        session.run_async(None, hand_built.feeds(sigma=0.4), callback, None)
        assert done.wait(30)
    assert got[0] == [] and "'sigma'" in got[2]


def test_two_threads_edit_and_a_third_runs_as_always(session, stock, hand_built, box) -> None:
    recorded = {"a": hand_built.feeds(), "b": hand_built.feeds(seed=2)}
    base = {}
    for name, feeds in recorded.items():
        with session.record(name):
            (base[name],) = session.run(None, feeds)
    masks = {"a": box, "b": np.roll(box, 4, axis=1)}
    changed = {name: _painted(feeds, masks[name]) for name, feeds in recorded.items()}
    changed["plain"] = hand_built.feeds(seed=1)
    expected = {"plain": stock.run(["y"], changed["plain"])[0].tobytes()}
    for name, mask in masks.items():
        with session.edit(name, mask, policy="exact"):
            expected[name] = session.run(None, changed[name])[0].tobytes()
    ready, got = threading.Barrier(3), {name: set() for name in expected}

    def work(name: str) -> None:
        for _ in range(10):
            mask = masks.get(name)
            scope = contextlib.nullcontext() if mask is None else session.edit(name, mask, policy="exact")
            with scope:
                ready.wait(30)
                got[name].add(session.run(None, changed[name])[0].tobytes())

    threads = [threading.Thread(target=work, args=(name,)) for name in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {name: {output} for name, output in expected.items()}
    assert {output.tobytes() for output in base.values()}.isdisjoint(expected.values())


def test_scopes_belong_to_their_context(session, hand_built, box) -> None:
    import contextvars

    def call() -> bytes:
        return session.run(None, hand_built.feeds())[0].tobytes()

    with session.record() as recording:
        with pytest.raises(RunError, match="no recording or edit"), session.record():
            pass
        elsewhere = threading.Thread(target=call)
        elsewhere.start()
        elsewhere.join()
        assert recording.calls == 0
        context = contextvars.copy_context()
        inside = threading.Thread(target=context.run, args=(call,))
        inside.start()
        inside.join()
    assert recording.calls == 1
    with pytest.raises(RunError, match="inside of its with block"):
        context.run(call)
    assert retouch.InferenceSession(hand_built.bundle).recordings() == ()
