"""The caches of models with full attention as the command line has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from retouch.errors import SamplingError
from retouch.text import TextModel
from retouch.text.full_attention import (
    AnchoredCache,
    BlockCache,
    CachePolicy,
    DelayedCache,
    FocusCache,
    Horizon,
    Kept,
    NoCache,
    Pattern,
    SimilarityCache,
    separator_ids,
)


class CacheName(Enum):
    """The caches by name."""

    NONE = "none"
    PREFIX = "prefix"
    DUAL = "dual"
    DELAYED = "delayed"
    SIMILARITY = "similarity"
    ANCHORED = "anchored"
    FOCUS = "focus"


_Policy = NoCache | BlockCache | DelayedCache | SimilarityCache | AnchoredCache | FocusCache

_USUAL: Mapping[CacheName, _Policy] = {
    CacheName.NONE: NoCache(),
    CacheName.PREFIX: BlockCache(Kept.PREFIX),
    CacheName.DUAL: BlockCache(Kept.DUAL),
    CacheName.DELAYED: DelayedCache(),
    CacheName.SIMILARITY: SimilarityCache(),
    CacheName.ANCHORED: AnchoredCache(),
    CacheName.FOCUS: FocusCache(),
}
_HORIZON = 64


def chosen_cache(name: CacheName, settings: Sequence[str], horizon: int | None, model: TextModel) -> CachePolicy:
    """A cache with settings like ``interval=8``.

    Raises:
        SamplingError: there is no such setting, or its value is out of range.
    """
    policy = _for_model(_USUAL[name], model)
    given: dict[str, Any] = dict(_setting(policy, name, text) for text in settings)
    policy = dataclasses.replace(policy, **given)
    return policy if horizon is None else Horizon(policy, horizon)


def usual_caches(model: TextModel) -> dict[str, CachePolicy]:
    """Every cache by its name, as far as the bundle has what it needs; some with a horizon."""
    left_out = {CacheName.NONE} if model.bundle.clusters is not None else {CacheName.NONE, CacheName.ANCHORED}
    names = [name for name in CacheName if name not in left_out]
    caches: dict[str, CachePolicy] = {name.value: _for_model(_USUAL[name], model) for name in names}
    behind = [name.value for name in names if name in {CacheName.DUAL, CacheName.SIMILARITY, CacheName.ANCHORED}]
    return caches | {f"{name}, horizon {_HORIZON}": Horizon(caches[name], _HORIZON) for name in behind}


def _for_model(policy: _Policy, model: TextModel) -> _Policy:
    tokenizer = model.own_tokenizer
    if not isinstance(policy, FocusCache) or tokenizer is None:
        return policy
    return dataclasses.replace(policy, exempt=separator_ids(tokenizer, model.spec.vocabulary))


def _setting(policy: _Policy, name: CacheName, text: str) -> tuple[str, object]:
    key, _, value = text.partition("=")
    known = {field.name: str(field.type) for field in dataclasses.fields(policy) if field.name not in _DECIDED}
    if key not in known:
        wanted = f"one of {', '.join(known)}" if known else "no settings"
        raise SamplingError(f"Expected {wanted} for the cache {name.value}, got {text!r}. Write them like NAME=VALUE.")
    try:
        return key, _value(known[key], value)
    except ValueError as error:
        raise SamplingError(f"Expected {key} to be {_described(known[key])}, got {value!r}.") from error


_DECIDED = frozenset({"exempt", "kept"})
"""What the tokenizer and the cache's name decide."""

_KINDS: Mapping[str, Callable[[str], object]] = {"int": int, "float": float, "Pattern": Pattern}


def _value(kind: str, text: str) -> object:
    """What a text means for an annotation like ``int | None``."""
    parts = kind.split(" | ")
    return None if text == "none" and "None" in parts else _KINDS[parts[0]](text)


def _described(kind: str) -> str:
    return f"one of {', '.join(pattern.value for pattern in Pattern)}" if kind == "Pattern" else f"of the kind {kind}"
