"""What a pipeline of optimum-onnx costs on drop-in sessions that neither record nor edit. Implement nothing here."""

from __future__ import annotations

__all__ = ["Cost", "measure_cost", "open_pipeline"]

from retouch.validation.drop_in._cost import Cost, measure_cost, open_pipeline
