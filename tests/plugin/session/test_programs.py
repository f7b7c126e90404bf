"""Programs are opened once, side by side, and again after a failure."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from retouch.engines import Program
from retouch.engines.ort import OrtEngine
from retouch.session._programs import Programs


class _Meeting(OrtEngine):
    """Opens graphs only while as many threads as are expected are opening one."""

    def __init__(self, parties: int) -> None:
        super().__init__(threads=1)
        self.barrier = threading.Barrier(parties, timeout=20)
        self.opened = 0

    def open(self, graph: Path, outputs: Sequence[str] | None = None) -> Any:
        self.barrier.wait()
        self.opened += 1
        return super().open(graph, outputs)


def test_different_programs_open_side_by_side(hand_built: Any) -> None:
    programs = Programs(_Meeting(2), hand_built.bundle)
    spec = hand_built.bundle.manifest.edits["cached"]
    programs.load([programs.base, partial(programs.edit, spec, record=False)])
    assert programs.base() is programs.base()


def test_threads_that_want_one_program_wait_for_it(hand_built: Any) -> None:
    engine = _Meeting(1)
    programs = Programs(engine, hand_built.bundle)
    got: list[Program] = []
    threads = [threading.Thread(target=lambda: got.append(programs.base())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(got) == 4
    assert len(set(map(id, got))) == engine.opened == 1


def test_a_program_that_failed_to_open_is_tried_again(hand_built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = OrtEngine(threads=1)
    programs = Programs(engine, hand_built.bundle)

    def fail(_graph: Path, _outputs: Sequence[str] | None = None) -> Any:
        raise OSError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "open", fail)
        with pytest.raises(OSError, match="no memory"):
            programs.base()
    assert "y" in programs.base().outputs
