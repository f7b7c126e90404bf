"""Runs a written bundle against its references and returns the errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx_ir as ir

from retouch.bundle import Manifest
from retouch.errors import VerificationError
from retouch.export.verify.runner import Runner, session_of
from retouch.export.verify.stacked import run_stacked
from retouch.region import ActiveRows, Region, index_inputs, with_joint

__all__ = ["TOLERANCES", "Verifier"]

Feeds = Mapping[str, np.ndarray]

TOLERANCES = {"identity": 2e-5, "all_rows": 2e-5, "masked_reference": 2e-5, "stacked": 5e-6, "original": 2e-5}
"""Largest error of a check, relative to the output's scale.

The first three have the base run on one side, whose InstanceNormalization sums in single precision: at 256 x 256
positions one such norm is off by 2e-6, and a whole UNet by 7e-6. Small models stay below 5e-6.
"""

_ROUNDINGS = 8.0


@dataclass
class Verifier:
    """Runs the checks of one bundle directory.

    Args:
        path: the directory with the graphs.
        original: the model file that was exported.
        manifest: the bundle's manifest.
        old: feeds of the base run.
        new: feeds of the edit: another editable input, the same conditions.
        reference: builds the masked reference of a GroupNorm mode.
        tell: called with a line before each check.
    """

    path: Path
    original: Path
    manifest: Manifest
    old: Feeds
    new: Feeds
    reference: Callable[[str], ir.Model]
    tell: Callable[[str], None]

    def run(self) -> dict[str, float]:
        """The largest error of every check by name, relative to the output's scale; raises if one is too large."""
        self.tell("verify the full model")
        errors = self._against_original()
        for mode in self.manifest.edits:
            self.tell(f"verify {mode}: identity")
            errors[f"identity.{mode}"] = max(self._identity(mode, active) for active in self._regions())
            if mode == list(self.manifest.edits)[-1] and not self._frozen:
                self.tell(f"verify {mode}: all rows")
                errors["all_rows"] = self._all_rows(mode)
            self.tell(f"verify {mode}: masked reference")
            errors[f"masked_reference.{mode}"] = self._masked_reference(mode)
        if self.manifest.stacked.graph is not None:
            self.tell("verify stacked edits")
            errors["stacked"] = self._stacked()
        self._judge(errors)
        return errors

    def _judge(self, errors: Mapping[str, float]) -> None:
        allowed = {name: max(TOLERANCES[name.split(".")[0]], self._rounding()) for name in errors}
        bad = {name: error for name, error in errors.items() if not error <= allowed[name]}
        if bad:
            lines = ", ".join(f"{name}: {error:.2e} (allowed {allowed[name]:.0e})" for name, error in bad.items())
            raise VerificationError(
                f"The edit graph differs from its reference by more than allowed: {lines}. No bundle was written. "
                "If the model's conditions need particular values, pass example feeds (--example FEEDS.npz)."
            )

    def _rounding(self) -> float:
        """What rounding may add up to: a few units of the coarsest type that values are kept in."""
        kept = {spec.dtype for spec in self.manifest.cacheables} | {o.tensor.dtype for o in self.manifest.outputs}
        return _ROUNDINGS * max((_precision(name) for name in kept if _is_float(name)), default=0.0)

    @property
    def _frozen(self) -> bool:
        """Whether edits leave tokens as the base run computed them: then no edit gives the full run's result."""
        return any(grid.joint is not None and not grid.joint.recomputed for grid in self.manifest.grids)

    @cached_property
    def _base(self) -> dict[str, np.ndarray]:
        runner = Runner.open(self.path / self.manifest.base_file)
        result = runner.run(self.old)
        finite = all(
            np.isfinite(result[o.tensor.name]).all() for o in self.manifest.outputs if _is_float(o.tensor.dtype)
        )
        if not finite:
            raise VerificationError(
                "The model's output is not finite on the made-up example feeds. "
                "Pass feeds that the model accepts: --example FEEDS.npz."
            )
        return result

    def _against_original(self) -> dict[str, float]:
        """The base graph against the file it came from, where ONNX Runtime has kernels for all of that."""
        names = [output.tensor.name for output in self.manifest.outputs]
        base = self._base
        try:
            expected = Runner(session_of(self.original, self.original.name), self.original.name).run(self.old, names)
        except VerificationError as error:
            self.tell(f"the original cannot be compared: {error}")
            return {}
        return {"original": self._distance(base, expected)}

    def _edit(self, mode: str, feeds: Feeds, active: ActiveRows) -> dict[str, np.ndarray]:
        spec = self.manifest.edits[mode]
        inputs = {**feeds, **{f"cached.{n.removeprefix('cacheable.')}": v for n, v in self._base.items()}}
        if spec.prep_file is not None:
            inputs.update(Runner.open(self.path / spec.prep_file).run(inputs))
        used = [n for n in self.manifest.neighbourhoods if n.id in spec.neighbourhoods]
        inputs.update(index_inputs(active, used, self.manifest.grids))
        names = [output.tensor.name for output in self.manifest.outputs]
        return self._runner(spec.file).run(inputs, names)

    def _runner(self, file: str) -> Runner:
        return Runner.open(self.path / file)

    def _identity(self, mode: str, active: ActiveRows) -> float:
        return self._distance(self._edit(mode, self.old, active), self._base)

    def _all_rows(self, mode: str) -> float:
        names = [output.tensor.name for output in self.manifest.outputs]
        full = self._runner(self.manifest.base_file).run(self.new, names)
        return self._distance(self._edit(mode, self.new, ActiveRows.full(self.manifest.grids)), full)

    def _masked_reference(self, mode: str) -> float:
        runner = Runner.from_model(self.reference(mode))
        errors = []
        everything = [ActiveRows.full(self.manifest.grids)] if self._frozen else []
        for active in (*self._regions(), self._independent(), *everything):
            feeds = {f"old.{n}": v for n, v in self.old.items()} | {f"new.{n}": v for n, v in self.new.items()}
            feeds |= {f"active.{grid.id}": active.mask(grid.id) for grid in self.manifest.grids}
            expected = runner.run(feeds)
            got = self._edit(mode, self.new, active)
            errors.append(self._distance(got, expected))
            self._check_outside(got, active)
        return max(errors)

    def _stacked(self) -> float:
        """Three edits in one run against one run each; they overlap, and one changes nothing."""
        feeds = (self.new, self.old, self.new)
        edits = list(zip(feeds, (*self._regions(), self._independent()), strict=True))
        together = run_stacked(self.path, self.manifest, self._base, edits)
        alone = [self._edit("cached", fed, active) for fed, active in edits]
        return max(self._distance(got, expected) for got, expected in zip(together, alone, strict=True))

    def _check_outside(self, got: Feeds, active: ActiveRows) -> None:
        """Inactive rows of every output with a grid must be the base output's, bit for bit."""
        for output in self.manifest.outputs:
            if output.grid is None:
                continue
            mask = active.mask(output.grid)
            name = output.tensor.name
            outside = ~mask.reshape(-1) if len(output.axes) == 1 else ~mask
            ours, theirs = (
                np.moveaxis(part[name], output.axes, range(len(output.axes)))[outside] for part in (got, self._base)
            )
            if not np.array_equal(ours, theirs):
                raise VerificationError(f"Inactive rows of output {name!r} are not bit-identical to the base run.")

    def _regions(self) -> list[ActiveRows]:
        """A block of about 6 % and scattered rows of about 20 % of the positions."""
        editable = self.manifest.grid(self.manifest.editable.grid)
        generator = np.random.default_rng(3)
        block = np.zeros(editable.dims, dtype=bool)
        block[tuple(slice(d // 3, d // 3 + max(1, d // 4)) for d in editable.dims)] = True
        scattered = generator.random(editable.dims) < 0.2
        scattered.reshape(-1)[0] = True
        return [Region.from_mask(m, "exact").active(self.manifest.grids, editable) for m in (block, scattered)]

    def _independent(self) -> ActiveRows:
        """Rows chosen for every grid on its own: correctness does not depend on how a region is propagated."""
        generator = np.random.default_rng(4)
        masks = {}
        for grid in [grid for grid in self.manifest.grids if grid.joint is None]:
            masks[grid.id] = generator.random(grid.dims) < 0.3
            masks[grid.id].reshape(-1)[generator.integers(grid.rows)] = True
        return ActiveRows.from_masks(with_joint(masks, self.manifest.grids))

    def _distance(self, got: Feeds, expected: Feeds) -> float:
        errors = [0.0]
        for output in self.manifest.outputs:
            a, b = (part[output.tensor.name].astype(np.float64) for part in (got, expected))
            scale = float(np.abs(b).max()) or 1.0
            errors.append(float(np.abs(a - b).max()) / scale if np.isfinite(a).all() else float("inf"))
        return max(errors)


def _precision(dtype: str) -> float:
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def _is_float(dtype: str) -> bool:
    return "float" in dtype
