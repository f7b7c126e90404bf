"""The ways in which one reference model is exported."""

from __future__ import annotations

from dataclasses import dataclass

LOWEST_OPSET = 18
BATCH_NAME = "batch"
"""Name of the batch axis where it is left open."""


@dataclass(frozen=True)
class Variant:
    """How a reference model is exported.

    Attributes:
        opset: opset of the graph.
        dynamic_batch: whether the batch axis of every input is left open.
        torchscript: whether torch's older exporter is used.
    """

    opset: int
    dynamic_batch: bool
    torchscript: bool

    @property
    def suffix(self) -> str:
        """What the file stem of the variant has behind the model's name; nothing for the default one."""
        parts = [
            *([f"opset{self.opset}"] if self.opset != LOWEST_OPSET else []),
            *(["dynamic_batch"] if self.dynamic_batch else []),
            *(["torchscript"] if self.torchscript else []),
        ]
        return "".join(f".{part}" for part in parts)
