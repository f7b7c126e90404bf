"""What to build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retouch.bundle import NATIVE_ATTENTION, OPEN_BATCH, PLUGINS, REFIT, STRIPPED, VERSION_COMPATIBLE, Manifest
from retouch.engines import Target
from retouch.errors import BuildRequestError
from retouch.trt_plugins._precision import Precision
from retouch.trt_plugins._row_counts import DEFAULT_ROWS

__all__ = ["BatchRange", "BuildOptions", "precision_of"]

_NARROW = (Precision.FLOAT16, Precision.BFLOAT16)


@dataclass(frozen=True)
class BatchRange:
    """The batches that engines serve, where they serve more than the one that the bundle was exported for.

    Attributes:
        least: the smallest.
        most: the largest.
        other: a bundle of the same model, exported for another batch: what differs tells where the batch is.
    """

    least: int
    most: int
    other: Path

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise BuildRequestError(f"Expected a range of batches like 2..8, got {self.least}..{self.most}.")


@dataclass(frozen=True)
class BuildOptions:
    """What to build.

    Attributes:
        target: what runs the engines.
        precision: what they compute in; ``None`` means the types of the bundle's graphs.
        rows: numbers of active rows of the editable grid, each with a profile of its own: counts, shares like ``2%``
            or ``all``; ONNX Runtime's own kernels take any number.
        group_norm: GroupNorm modes whose edit graphs are built; ``None`` means all that the bundle has.
        devices: compute capabilities like ``8.9`` that the engines have to run on, or execution providers of ONNX
            Runtime; none means what the library builds for by itself. TensorRT always builds for the card that it
            finds.
        version_compatible: whether newer TensorRTs of the same major version run the engines too, at some cost in
            speed; TensorRT only.
        plugins: whether Retouch's CUDA kernels run its operators, as plugins of TensorRT or operators of ONNX Runtime.
            By default these make kernels of the operators' bodies.
        native_attention: whether attention over merged keys and values is the library's own layer instead of products
            and a softmax that it may fuse; TensorRT and TensorRT-RTX, which have it for half precision only.
        stacked: whether edits of one base run that are asked for together get an engine that computes them together.
        refit: whether engines hold no weights, and take those of their bundle when they are loaded, so that bundles
            of the same graphs with other weights have the same engines; needs a GPU to build.
        timing_cache: a file that keeps what TensorRT measured, for later builds; TensorRT only.
        batch: the batches to serve; ``None`` means the one that the bundle was exported for.
    """

    target: Target
    precision: Precision | None = None
    rows: tuple[str, ...] = DEFAULT_ROWS
    group_norm: tuple[str, ...] | None = None
    devices: tuple[str, ...] = ()
    version_compatible: bool = False
    plugins: bool = False
    native_attention: bool = False
    stacked: bool = False
    refit: bool = False
    timing_cache: Path | None = None
    batch: BatchRange | None = None

    def __post_init__(self) -> None:
        if self.target is Target.TENSORRT and self.devices:
            raise BuildRequestError(
                f"Expected no compute capabilities for {self.target}, which builds for the card that it finds, got "
                f"{', '.join(self.devices)}. Leave them out, or build for {Target.TENSORRT_RTX}."
            )
        for asked, what, targets in (
            (self.version_compatible, "Version-compatible engines are a feature", (Target.TENSORRT,)),
            (self.timing_cache is not None, "Timing caches are a feature", (Target.TENSORRT,)),
            (self.plugins, "Plugins are a feature", (Target.TENSORRT, Target.ORT)),
            (self.native_attention, "Native attention is a feature", (Target.TENSORRT, Target.TENSORRT_RTX)),
            (self.refit, "Engines without weights are a feature", (Target.TENSORRT, Target.TENSORRT_RTX)),
            (self.precision is Precision.TF32, "TF32 is a precision", (Target.TENSORRT, Target.TENSORRT_RTX)),
        ):
            if asked and self.target not in targets:
                raise BuildRequestError(f"{what} of {' and '.join(targets)}; {self.target} has none. Leave it out.")
        if self.plugins and self.native_attention:
            raise BuildRequestError("Attention is run by a plugin or by the library's own layer: ask for one of them.")
        if self.plugins and self.refit:
            raise BuildRequestError(
                "Weights of plugins are operands, which cannot be replaced: ask for plugins or for refit."
            )

    @property
    def traits(self) -> tuple[str, ...]:
        """What the engines are, as manifests have it."""
        return (
            *((VERSION_COMPATIBLE,) if self.version_compatible else ()),
            *((PLUGINS,) if self.plugins else ()),
            *((NATIVE_ATTENTION,) if self.native_attention else ()),
            *((REFIT, STRIPPED) if self.refit else ()),
            *((OPEN_BATCH,) if self.batch is not None else ()),
        )


def precision_of(manifest: Manifest, asked: Precision | None) -> Precision:
    """The precision that a bundle's engines compute in.

    Raises:
        BuildRequestError: another one was asked for than that of the graphs.
    """
    types = {spec.dtype for spec in manifest.cacheables if spec.kind == "rows"}
    own = next((precision for precision in _NARROW if precision.dtype in types), Precision.FLOAT32)
    if asked is None or asked.dtype == own.dtype:
        return asked or own
    allowed = " or ".join(precision for precision in Precision if precision.dtype == own.dtype)
    raise BuildRequestError(
        f"Expected precision {allowed}, because the bundle's graphs compute in {own.dtype}, got {asked}: engines "
        f"compute in the types that were verified. Export the model with `--precision {asked.dtype}` and build that."
    )
