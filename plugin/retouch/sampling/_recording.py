"""Which steps of a generation keep their states."""

from __future__ import annotations

from dataclasses import dataclass

from retouch.errors import SamplingError


@dataclass(frozen=True)
class Recording:
    """Which steps keep states. An edit of a step without any uses those of the nearest step that has some.

    Attributes:
        stride: every so many steps keep theirs, counted back from the last one.
        last: only so many of the last steps keep theirs; ``None`` means all, 0 none.
    """

    stride: int = 1
    last: int | None = None

    def __post_init__(self) -> None:
        for name, value, least in (("stride", self.stride, 1), ("last", self.last, 0)):
            if value is not None and not (type(value) is int and value >= least):
                raise SamplingError(f"Expected Recording.{name} to be an integer of at least {least}, got {value!r}.")

    def keeps(self, index: int, steps: int) -> bool:
        """Whether the step of that index, of so many steps, keeps its states."""
        left = steps - 1 - index
        return (self.last is None or left < self.last) and left % self.stride == 0
