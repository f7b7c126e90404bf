"""The errors Retouch raises on purpose.

Every message says what was expected, what was got and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "BuildError",
    "BuildRequestError",
    "BundleError",
    "CoverageError",
    "DeviceMemoryError",
    "EngineError",
    "EngineMissingError",
    "ExportError",
    "FeedError",
    "ModelError",
    "NonFiniteError",
    "RegionError",
    "ResultFileError",
    "RetouchError",
    "RunError",
    "RunFileError",
    "SamplingError",
    "VerificationError",
]


class RetouchError(Exception):
    """Base of every error that Retouch raises on purpose."""


class ModelError(RetouchError):
    """The model given to the exporter cannot be read or is not usable as it is."""


class ExportError(RetouchError):
    """An export was asked for in a way that cannot be carried out."""


class CoverageError(ExportError):
    """Too much of the model would stay dense for the edit graph to be of use."""


class VerificationError(ExportError):
    """A produced bundle differs from its reference by more than the tolerance."""


class BundleError(RetouchError):
    """A bundle is missing a file, was changed or truncated, or has an unknown schema."""


class BuildError(RetouchError):
    """An inference library refuses to build an engine of a graph."""


class BuildRequestError(RetouchError, ValueError):
    """Engines were asked for in a way that cannot be carried out."""


class RegionError(RetouchError, ValueError):
    """A region has the wrong shape or dtype, or selects nothing or too much."""


class FeedError(RetouchError, ValueError):
    """Feeds have a missing, extra, wrongly shaped or wrongly typed tensor."""


class RunError(RetouchError, KeyError):
    """A run id is unknown, was dropped, or belongs to another bundle."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class RunFileError(RetouchError):
    """A run directory is missing a file, was changed or truncated, has an unknown schema, or cannot be written."""


class ResultFileError(RetouchError):
    """A result cannot be written to where it was asked for."""


class SamplingError(RetouchError, ValueError):
    """A sampling loop was asked for with a schedule, conditions or latents that do not fit."""


class NonFiniteError(RetouchError, FloatingPointError):
    """A model output holds NaN or infinity."""


class EngineError(RetouchError, RuntimeError):
    """An inference engine failed on what it was given."""


class DeviceMemoryError(EngineError):
    """A card has not as much free memory as a run needs, even after states were moved to the host."""


class EngineMissingError(RetouchError, ImportError):
    """An inference engine that was asked for is not installed."""
