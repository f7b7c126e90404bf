"""A low-entropy corpus: accessors, logs and sums that are drawn from seeds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

__all__ = ["TRAINING_PATTERNS", "held_out_patterns", "pattern_text", "training_patterns", "unseen_patterns"]

_NAMES = (
    "width",
    "height",
    "depth",
    "colour",
    "weight",
    "length",
    "offset",
    "margin",
    "owner",
    "price",
    "title",
    "author",
    "status",
    "level",
    "speed",
    "angle",
    "volume",
    "radius",
    "border",
    "label",
    "amount",
    "country",
    "region",
    "limit",
)
_SERVICES = ("parser", "loader", "worker", "cache", "router", "mailer")
_VERBS = ("loading", "loaded"), ("sending", "sent"), ("checking", "checked"), ("writing", "written")
TRAINING_PATTERNS = 12_000
"""How many texts the network of patterns learns from."""

_TRAINING_SEED = 1
_HELD_OUT_SEED = 2


def _accessors(draw: random.Random) -> str:
    """A class whose methods follow from the names of its attributes."""
    names = draw.sample(_NAMES, 2)
    lines = [f"class {names[0].title()}{names[1].title()}:", f"    def __init__(self, {names[0]}, {names[1]}):"]
    lines += [f"        self._{name} = {name}" for name in names]
    for name in names:
        lines += [f"    def get_{name}(self):", f"        return self._{name}"]
    return "\n".join(lines)


def _log(draw: random.Random) -> str:
    """What a service says while it works through numbered items; the minute counts on."""
    service, (doing, done) = draw.choice(_SERVICES), draw.choice(_VERBS)
    hour, minute, item = draw.randrange(24), draw.randrange(50), draw.randrange(10, 90)
    lines = []
    for step in range(4):
        lines.append(f"{hour:02}:{minute + 2 * step:02} INFO {service}: {doing} item {item + step}")
        lines.append(f"{hour:02}:{minute + 2 * step + 1:02} INFO {service}: item {item + step} {done}")
    return "\n".join(lines)


def _sums(draw: random.Random) -> str:
    """A table of sums of one number with those that follow each other."""
    first, second = draw.randrange(1, 10), draw.randrange(1, 4)
    return "\n".join(f"{first} + {second + step} = {first + second + step}" for step in range(7))


_KINDS: tuple[Callable[[random.Random], str], ...] = (_accessors, _log, _sums)


def pattern_text(seed: int) -> str:
    """The text of a seed."""
    draw = random.Random(seed)  # noqa: S311 (no secrets)
    return draw.choice(_KINDS)(draw) + "\n"


def training_patterns(count: int) -> Iterator[str]:
    """So many texts to learn from."""
    return _texts(count, _TRAINING_SEED)


def held_out_patterns(count: int) -> Iterator[str]:
    """So many texts of other seeds, for measuring."""
    return _texts(count, _HELD_OUT_SEED)


def unseen_patterns(count: int) -> list[str]:
    """Those of so many held-out texts that are not learned from: logs. Of classes and tables there are too few."""
    learned = set(training_patterns(TRAINING_PATTERNS))
    return [text for text in held_out_patterns(count) if text not in learned]


def _texts(count: int, course: int) -> Iterator[str]:
    return (pattern_text(1_000_000 * course + index) for index in range(count))
