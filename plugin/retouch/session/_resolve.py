"""What an edit asks for, checked against the run that it is based on."""

from __future__ import annotations

import time

from retouch.session._change import change_of
from retouch.session._edit import Edit
from retouch.session._feeds import feed_values, merged_feeds
from retouch.session._frozen import check_conditions
from retouch.session._mode import GroupNormMode, edit_spec
from retouch.session._regions import as_region
from retouch.session._request import EditRequest
from retouch.session._run import FEEDS, STATES
from retouch.session._runtime import Runtime
from retouch.session._samples import is_per_sample, own_change, own_feeds, samples_of


def resolved(runtime: Runtime, run: str, request: EditRequest, mode: GroupNormMode) -> Edit:
    """What an edit asks for, with the run's own feeds where none are given."""
    manifest, fingerprint = runtime.manifest, runtime.bundle.fingerprint
    kept = runtime.store.get(run, fingerprint, FEEDS)
    changed = feed_values(runtime.engine, manifest.inputs, request.feeds, partial=True)
    if is_per_sample(request.region):
        active, samples = samples_of(runtime.regions, manifest, request.region, request.policy)
        change = own_change(manifest.editable, samples, kept, changed)
        merged = merged_feeds(kept, own_feeds(runtime.engine, manifest.editable, samples, kept, changed))
    else:
        active, samples = runtime.regions.active(as_region(request.region, request.policy)), None
        merged = merged_feeds(kept, changed)
        change = change_of(manifest.editable, kept, merged, active.editable)
    states = runtime.store.get(run, fingerprint, STATES).keys()
    policy, start = active.region.policy, time.perf_counter()
    expectation = runtime.expectations.of(run, kept, merged, change, policy, mode, states)
    seconds = time.perf_counter() - start
    check_conditions(manifest, edit_spec(manifest, expectation.moments)[1], kept, merged)
    return Edit(run, merged, active, change, expectation, seconds, samples)
