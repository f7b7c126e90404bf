"""What a library says while it works."""

from __future__ import annotations

from typing import Any

__all__ = ["Messages", "logger"]

_SHOWN = 3


class Messages:
    """The errors and warnings of a library, in order.

    Attributes:
        errors: what it failed on.
        warnings: what it remarked.
    """

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.warnings: list[str] = []

    def clear(self) -> None:
        """Forgets what was said so far."""
        self.errors.clear()
        self.warnings.clear()

    @property
    def cause(self) -> str:
        """The errors in one text; the first ones say why, those behind them what followed."""
        return "; ".join(dict.fromkeys(self.errors[:_SHOWN])) or "no message"


def logger(trt: Any, messages: Messages) -> Any:  # noqa: ANN401  (classes of an optional library)
    """A logger of the library that keeps errors and warnings and prints nothing."""

    class Keep(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:  # noqa: ANN401
            if severity in (trt.ILogger.INTERNAL_ERROR, trt.ILogger.ERROR):
                messages.errors.append(text.strip())
            elif severity == trt.ILogger.WARNING:
                messages.warnings.append(text.strip())

    return Keep()
