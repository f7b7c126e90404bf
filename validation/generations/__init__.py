"""What edits of whole generations cost, and how good they are, on the scenes pipeline. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # The pipeline
    "calibrate_generations",
    "export_calibrated",
    # What is edited
    "Case",
    "Kind",
    "draw_cases",
    # The same without Retouch
    "Frozen",
    "Image",
    "StockPipeline",
    # Measured
    "Cost",
    "Outcome",
    "POLICIES",
    "RECORDINGS",
    "Trade",
    "measure_cost",
    "measure_quality",
    "measure_trades",
    # Shown
    "draw_sheet",
    "tables",
]

from retouch.validation.generations._cases import Case, Kind, draw_cases
from retouch.validation.generations._cost import Cost, measure_cost
from retouch.validation.generations._export import calibrate_generations, export_calibrated
from retouch.validation.generations._picture import draw_sheet
from retouch.validation.generations._quality import POLICIES, Outcome, measure_quality
from retouch.validation.generations._stock import Frozen, Image, StockPipeline
from retouch.validation.generations._table import tables
from retouch.validation.generations._trade import RECORDINGS, Trade, measure_trades
