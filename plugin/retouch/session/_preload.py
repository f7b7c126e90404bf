"""The graphs that a session's runs will need, loaded side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from retouch.engines import Program
from retouch.session._mode import GroupNormMode, edit_spec
from retouch.session._runtime import Runtime


def preload(runtime: Runtime, group_norm: GroupNormMode, *, base: bool, record: bool) -> None:
    """Loads the edit graph that most edits take, what prepares its inputs, and for base runs the full model."""
    programs = runtime.programs
    spec = edit_spec(runtime.manifest, runtime.expectations.preferred(group_norm))[1]
    wanted: list[Callable[[], Program]] = [partial(programs.edit, spec, record=record)]
    if base:
        wanted.append(partial(programs.base, runtime.kept))
    if spec.prep_file is not None:
        groups = programs.prepared_groups(spec.prep_file)
        wanted += [partial(programs.prep, spec.prep_file, group.outputs) for group in groups]
    programs.load(wanted)
