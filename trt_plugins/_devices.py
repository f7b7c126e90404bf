"""What an engine runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retouch.errors import BuildRequestError

__all__ = ["chosen_devices"]

_PREFIX = "SM"


def chosen_devices(trt: Any, config: Any, asked: Sequence[str]) -> tuple[str, ...]:  # noqa: ANN401
    """Has TensorRT-RTX build for some compute capabilities, or for those that it builds for by itself.

    Returns: the compute capabilities, like ``8.9``.

    Raises:
        BuildRequestError: it does not build for one of them.
    """
    members = trt.ComputeCapability.__members__
    known = {_number(name): member for name, member in members.items() if _number(name)}
    unknown = [text for text in asked if text not in known]
    if unknown:
        raise BuildRequestError(
            f"Expected compute capabilities among {', '.join(known)}, got {', '.join(unknown)}. For other cards build "
            "for tensorrt, on a machine with such a card."
        )
    if asked:
        config.num_compute_capabilities = len(asked)
        for index, text in enumerate(asked):
            config.set_compute_capability(known[text], index)
    names = [config.get_compute_capability(index).name for index in range(config.num_compute_capabilities)]
    return tuple(_number(name) or name.lower() for name in names)


def _number(name: str) -> str:
    """``8.9`` for ``SM89``, and nothing for what is no compute capability."""
    digits = name.removeprefix(_PREFIX)
    return f"{digits[:-1]}.{digits[-1]}" if name.startswith(_PREFIX) and digits.isdigit() else ""
