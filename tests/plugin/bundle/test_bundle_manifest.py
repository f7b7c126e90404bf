"""Any manifest survives the way to JSON and back; anything else is refused."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from retouch.bundle import SCHEMA_VERSION, Manifest, manifest_from_json, manifest_to_json
from retouch.errors import BundleError


def values(hint: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Values of an annotation; hypothesis's own ``from_type`` makes mappings that are no dicts, and NaN."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(values, arguments))
    if origin is tuple and arguments[-1] is ...:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=5), values(arguments[1]), max_size=2)
    if hint is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if hint in (int, str, type(None)):
        return {int: st.integers(), str: st.text(max_size=8), type(None): st.none()}[hint]
    return st.builds(hint, **{name: values(kind) for name, kind in typing.get_type_hints(hint).items()})


MANIFESTS = values(Manifest).map(lambda manifest: manifest.replace(schema_version=SCHEMA_VERSION))
SLOW_TO_MAKE = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@SLOW_TO_MAKE
@given(MANIFESTS)
def test_round_trip(manifest: Manifest) -> None:
    assert manifest_from_json(manifest_to_json(manifest), "here") == manifest


@SLOW_TO_MAKE
@given(MANIFESTS, st.data())
def test_every_member_is_needed(manifest: Manifest, data: st.DataObject) -> None:
    members = json.loads(manifest_to_json(manifest))
    del members[data.draw(st.sampled_from(sorted(members)))]
    with pytest.raises(BundleError, match=r"missing|schema version"):
        manifest_from_json(json.dumps(members), "here")


@SLOW_TO_MAKE
@given(MANIFESTS, st.data())
def test_a_truncated_manifest_is_refused(manifest: Manifest, data: st.DataObject) -> None:
    text = manifest_to_json(manifest).rstrip()
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(BundleError, match="not valid JSON"):
        manifest_from_json(text[:end], "here")
