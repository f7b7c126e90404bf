"""Sessions: base runs, and edit runs over what they kept. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Running
    "EditSession",
    "EditRequest",
    # What a base run and an edit give
    "Run",
    "Result",
    # What an edit says about itself
    "Report",
    "Seconds",
    # What it may run on
    "ENGINES",
    "start_engine",
    # How edits keep weights, and what that errs
    "WeightStorage",
    "weights_check",
    # What it may be fed
    "checked_feeds",
    # How GroupNorm sees an edit
    "GROUP_NORM_MODES",
    "GroupNormMode",
    "MOMENTS",
    "Moments",
    "mode_of_generations",
    # What an edit moves, and what that makes expect
    "MomentForesight",
    "Shift",
    "condition_values",
    "inside",
    "spill",
]

from retouch.engines.ort import WeightStorage
from retouch.session._engines import ENGINES, start_engine
from retouch.session._expectation import condition_values
from retouch.session._feeds import checked_feeds
from retouch.session._kept_weights import weights_check
from retouch.session._mode import GROUP_NORM_MODES, MOMENTS, GroupNormMode, Moments, mode_of_generations
from retouch.session._moment_foresight import MomentForesight
from retouch.session._regions import inside
from retouch.session._report import Report, Seconds
from retouch.session._request import EditRequest
from retouch.session._result import Result
from retouch.session._run import Run
from retouch.session._session import EditSession
from retouch.session._shift import Shift
from retouch.session._spill import spill
