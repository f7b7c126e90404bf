"""Edited latents become images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from retouch.errors import RunError
from retouch.region import Region
from retouch.sampling._decoder import Decoder
from retouch.sampling._generation import Generation, GenerationReport
from retouch.sampling._states import MissingStates
from retouch.sampling._trajectory import Trajectory
from retouch.session import Run


def decode_edits(
    decoder: Decoder,
    base: Generation,
    edits: Sequence[tuple[str | None, Region, Trajectory]],
    *,
    record: bool,
    missing: MissingStates,
) -> list[Generation]:
    """The images of edited trajectories. If one fails, nothing of any of them is kept.

    Args:
        decoder: the decoder.
        base: the generation that was edited.
        edits: per edit what was asked for, ``None`` meaning as in the base; where; and its latents.
        record: whether the results will be edited further.
        missing: what to do where the states of the base's decoder run are gone.

    Raises:
        RunError: they are gone.
    """
    made: list[Generation] = []
    if not edits:
        return made
    try:
        with _run_of(decoder, base, missing) as run:
            made.extend(_decoded(decoder, base, run, *edit, record=record) for edit in edits)
    except BaseException:
        for one in made:
            one.close()
        for _, _, trajectory in edits:
            trajectory.close()
        raise
    return made


@contextmanager
def _run_of(decoder: Decoder, base: Generation, missing: MissingStates) -> Iterator[Run]:
    """The decoder's run of a base; where it is gone and may be, it is made again for as long as it is needed."""
    run = base.decoded
    if missing is MissingStates.RECOMPUTE and (run is None or not run.kept):
        run = decoder.decode(base.trajectory.latents, record=True)[1]
    if run is None:
        raise RunError("Expected the base's decoder run to be recorded. Record the base, or recompute what is missing.")
    try:
        yield run
    finally:
        if run is not base.decoded:
            run.close()


def _decoded(
    decoder: Decoder,
    base: Generation,
    run: Run,
    prompt: str | None,
    region: Region,
    trajectory: Trajectory,
    *,
    record: bool,
) -> Generation:
    image, report, kept = decoder.decode_edit(run, trajectory.latents, region, record=record)
    assert trajectory.report is not None, "an edited trajectory has one"
    made = GenerationReport(trajectory.report, report)
    asked = base.prompt if prompt is None else prompt
    return Generation(image, asked, base.negative_prompt, trajectory, base, made, kept)
