"""The session is onnxruntime's to an application, records its calls, and repeats them as edits."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import onnxruntime
import pytest

import retouch
from retouch import EditSession, FeedError, Region, RegionError, RunError
from retouch.states import StateStore


def _public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_it_has_the_methods_of_the_stock_session_with_their_parameters(session) -> None:
    assert isinstance(session, onnxruntime.InferenceSession)
    methods = _public(onnxruntime.InferenceSession)
    assert len(methods) >= 27
    ours = _public(retouch.InferenceSession)
    for name, method in methods.items():
        assert list(inspect.signature(ours[name]).parameters) == list(inspect.signature(method).parameters), name


def test_what_it_says_of_itself(session, stock) -> None:
    assert [(i.name, i.type, i.shape) for i in session.get_inputs()] == [
        (i.name, i.type, i.shape) for i in stock.get_inputs()
    ]
    assert [(o.name, o.shape) for o in session.get_outputs()] == [("y", [1, 2, 8, 8])]
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_provider_options() == stock.get_provider_options()
    assert session.get_modelmeta().graph_name == "base"
    assert session.get_overridable_initializers() == []
    assert [len(infos) for infos in (session.get_input_memory_infos(), session.get_output_memory_infos())] == [2, 1]
    assert session.get_session_options().intra_op_num_threads == stock.get_session_options().intra_op_num_threads
    assert session.get_session_options().get_session_config_entry("session.force_spinning_stop") == "1"
    assert session.get_profiling_start_time_ns() == 0
    assert session.get_tuning_results() == stock.get_tuning_results()


def test_profiling_goes_on(hand_built, tmp_path) -> None:
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = retouch.InferenceSession(hand_built.bundle.path, options)
    session.run(None, hand_built.feeds())
    assert session.end_profiling().startswith(str(tmp_path / "profile"))


def test_calls_outside_of_recordings_are_those_of_the_stock_session(session, stock, loop) -> None:
    for ours, other in zip(loop(session), loop(StockLike(stock)), strict=True):
        assert ours.tobytes() == other.tobytes()


class StockLike:
    """The stock session on the base graph, which also gives the states, asked for the model's output."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, names: Any, feeds: Any) -> Any:
        return self._session.run(["y"], feeds)


def test_a_recording_gives_what_the_full_model_gives(session, stock, loop) -> None:
    with session.record("first") as recording:
        recorded = loop(session)
    assert recording.id == "first" and recording.calls == 3
    assert recording.bytes == sum(run.bytes for run in recording.runs) > 0
    for ours, other in zip(recorded, loop(StockLike(stock)), strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-6)
    assert session.recordings() == (recording,)


def test_an_edit_repeats_the_recorded_calls_on_the_rows_of_a_region(session, hand_built, loop, box) -> None:
    with session.record() as recording:
        base = loop(session)
    with session.edit(recording.id, box, policy="exact") as editing:
        edited = loop(session, change=1.0)
    outside = ~np.broadcast_to(box, base[0].shape)
    for before, after in zip(base, edited, strict=True):
        assert (before[outside] == after[outside]).all()
        assert (before[~outside] != after[~outside]).all()
    assert [report.active_rows["fine"] for report in editing.reports] == [4, 4, 4]
    assert loop(session)[0].tobytes() == base[0].tobytes()  # after the edit everything is as before


def test_an_edit_computes_what_an_edit_session_computes(session, hand_built, loop, box) -> None:
    region = Region.from_mask(box, "fast")
    with session.record() as recording:
        loop(session)
    with session.edit(recording, region):
        edited = loop(session, change=1.0)
    with EditSession(hand_built.bundle) as reference:
        x = hand_built.feeds()["x"].copy()
        base_x = x.copy()
        x[:, :, 2:4, 2:4] += 1
        for output, sigma in zip(edited, (0.9, 0.5, 0.1), strict=True):
            run = reference.base({"x": base_x, "sigma": np.array([sigma], np.float32)})
            expected = reference.edit(run, {"x": x}, region=region).outputs["y"]
            assert output.tobytes() == expected.tobytes()
            base_x = (base_x - 0.3 * run.outputs["y"]).astype(np.float32)
            x = (x - 0.3 * expected).astype(np.float32)


def test_another_condition_is_computed_anew(hand_built, box) -> None:
    session = retouch.InferenceSession(hand_built.bundle, steps=())
    feeds = hand_built.feeds()
    with session.record() as recording:
        session.run(None, feeds)
    with session.edit(recording, box, policy="exact"):
        (edited,) = session.run(None, {**feeds, "sigma": np.array([0.1], np.float32)})
    with EditSession(hand_built.bundle) as reference:
        changed = {"sigma": np.array([0.1], np.float32)}
        expected = reference.edit(reference.base(feeds), changed, region=Region.from_mask(box, "exact"))
    assert edited.tobytes() == expected.outputs["y"].tobytes()


def test_an_edit_becomes_the_recording_of_the_next(session, loop, box) -> None:
    with session.record() as recording:
        loop(session)
    with session.edit(recording, box, policy="exact", record="second") as editing:
        first = loop(session, change=1.0)
    recording.close()
    elsewhere = np.roll(box, 4, axis=0)
    with session.edit("second", elsewhere, policy="exact"):
        second = loop(session, change=1.0)
    assert editing.recording.calls == 3
    kept = ~np.broadcast_to(elsewhere, first[0].shape)
    for before, after in zip(first, second, strict=True):
        assert (before[kept] == after[kept]).all()
    with session.edit(editing.recording, box) as last:
        loop(session)
    with pytest.raises(RunError, match="record=True"):
        _ = last.recording


def test_regions_in_pixels(session, loop, box) -> None:
    with session.record() as recording:
        loop(session)
    image = np.zeros((64, 64), bool)
    image[20, 31] = True  # in row 2, column 3
    for scale in (None, 8):
        with session.edit(recording, image, scale=scale, policy="exact") as editing:
            loop(session)
        assert editing.reports[0].active_rows["fine"] == 1
    for wrong, scale in ((image[:60], None), (image, 4), (np.zeros((64, 32), bool) | True, None)):
        with pytest.raises(RegionError, match="size is"), session.edit(recording, wrong, scale=scale):
            pass


def test_more_calls_than_were_recorded(session, loop, box) -> None:
    with session.record() as recording:
        loop(session, sigmas=(0.9,))
    with pytest.raises(RunError, match="at most the 1 calls"), session.edit(recording, box):
        loop(session, sigmas=(0.9, 0.9))


def test_other_steps_and_another_order(session, hand_built, loop, box) -> None:
    with session.record() as recording:
        loop(session)
    with pytest.raises(FeedError, match=r"call 2 of the edit to have the 'sigma'.*0\.5"), session.edit(recording, box):
        loop(session, sigmas=(0.9, 0.4, 0.1))
    unordered = retouch.InferenceSession(hand_built.bundle, steps=())
    with unordered.record() as guided:
        loop(unordered)
    with pytest.raises(FeedError, match="the recording's call 2"), unordered.edit(guided, box):
        loop(unordered, sigmas=(0.5, 0.9, 0.1))


def test_other_noise(session, hand_built, box) -> None:
    feeds, other = hand_built.feeds(), hand_built.feeds(seed=1)
    with session.record() as recording:
        session.run(None, feeds)
    with pytest.raises(FeedError, match=r"recording's 'x' outside.*same seed"), session.edit(recording, box):
        session.run(None, other)
    nearly = {**feeds, "x": feeds["x"] + 0.1 * other["x"]}
    with session.edit(recording, box, policy="exact") as editing:
        session.run(None, nearly)
    assert editing.reports[0].ignored > 0
    no_loop = retouch.InferenceSession(hand_built.bundle, steps=())
    with no_loop.record() as recording:
        no_loop.run(None, feeds)
    with no_loop.edit(recording, box):
        no_loop.run(None, other)


@pytest.mark.parametrize(
    "feeds",
    [
        {"x": np.zeros((1, 2, 8, 9), np.float32)},
        {"x": np.zeros((1, 2, 8, 8), np.complex64)},
        {"x": np.zeros((1, 2, 8, 8), np.float64) + 0.1},
        {"unknown": np.zeros(1)},
    ],
)
def test_feeds_that_do_not_fit(session, hand_built, box, feeds) -> None:
    with pytest.raises(FeedError, match="Expected"), session.record():
        session.run(None, {**hand_built.feeds(), **feeds})
    with session.record() as recording:
        session.run(None, hand_built.feeds())
    with pytest.raises(FeedError, match="Expected"), session.edit(recording, box):
        session.run(None, {**hand_built.feeds(), **feeds})
    assert session.recordings() == (recording,)


def test_outputs_that_are_not_there(session, hand_built) -> None:
    with session.record(), pytest.raises(FeedError, match="outputs among 'y', got 'z'"):
        session.run(["z"], hand_built.feeds())
    with pytest.raises(FeedError, match="steps to be among the inputs 'sigma', got 'x'"):
        retouch.InferenceSession(hand_built.bundle, steps=("x",))


def test_recordings_that_are_gone(session, loop, box) -> None:
    with session.record() as recording:
        loop(session)
    with pytest.raises(RunError, match="'nothing'"), session.edit("nothing", box):
        pass
    with pytest.raises(RunError, match="new run id"), session.record(recording.id):
        pass
    recording.close()
    assert session.recordings() == ()
    with pytest.raises(RunError, match="was dropped"), session.edit(recording, box):
        pass


def test_a_recording_whose_block_raises_is_not_kept(hand_built) -> None:
    store = StateStore()
    session = retouch.InferenceSession(hand_built.bundle, store=store)
    with pytest.raises(KeyError), session.record():
        session.run(None, hand_built.feeds())
        raise KeyError
    assert store.bytes == 0 and session.recordings() == ()


def test_the_budget_holds_all_calls_or_none(hand_built, loop, box) -> None:
    measured = retouch.InferenceSession(hand_built.bundle)
    with measured.record() as recording:
        loop(measured, sigmas=(0.9,))
    feeds_and_outputs = 2 * (4 * 2 * 64) + 4
    small = StateStore(budget=2 * (recording.bytes + feeds_and_outputs))
    session = retouch.InferenceSession(hand_built.bundle, store=small)
    with session.record() as first:
        loop(session, sigmas=(0.9, 0.5))
    with pytest.raises(RunError, match="larger budget or fewer calls"), session.record():
        loop(session)
    with pytest.raises(RunError, match="larger budget or fewer calls"), session.edit(first, box):
        pass


def test_the_caller_may_write_into_what_it_gets_and_gave(session, hand_built, box) -> None:
    feeds = hand_built.feeds()
    with session.record() as recording:
        (y,) = session.run(None, feeds)
        feeds["x"][...] = y[...] = 0
    with session.edit(recording, box, policy="exact"):
        (again,) = session.run(None, hand_built.feeds())
        again += 1
    np.testing.assert_array_equal(recording.runs[0].feeds["x"], hand_built.feeds()["x"])
    assert (recording.runs[0].outputs["y"] != 0).all()


def test_providers_change(session, hand_built, loop, box) -> None:
    before = loop(session)
    with session.record() as recording:
        loop(session)
    session.set_providers(["CPUExecutionProvider"])
    with pytest.raises(RunError, match="providers changed"), session.edit(recording, box):
        pass
    assert loop(session)[0].tobytes() == before[0].tobytes()
    assert [output.name for output in session.get_outputs()] == ["y"]


def test_run_options_are_said_to_have_no_effect(session, hand_built) -> None:
    options = onnxruntime.RunOptions()
    session.run(None, hand_built.feeds(), options)
    with session.record(), pytest.warns(UserWarning, match="RunOptions have no effect"):
        session.run(None, hand_built.feeds(), options)


def test_it_is_imported_when_it_is_used() -> None:
    code = (
        "import sys; sys.modules['onnxruntime'] = None; import retouch\n"
        "try: retouch.InferenceSession\n"
        "except retouch.EngineMissingError as error: print('retouch[cpu]' in str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
