"""Runs a written bundle against its references and returns the errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx_ir as ir

from retouch.bundle import Manifest
from retouch.errors import VerificationError
from retouch.export.verify.runner import Runner, session_of
from retouch.export.verify.stacked import run_stacked
from retouch.region import ActiveRows, Region, index_inputs

__all__ = ["TOLERANCES", "Verifier"]

Feeds = Mapping[str, np.ndarray]

TOLERANCES = {
    "identity": 2e-5,
    "all_rows": 2e-5,
    "masked_reference": 2e-5,
    "stacked": 5e-6,
    "original": 2e-5,
    "converted": 3e-2,
    "frozen_text": math.inf,
}
"""Largest error of a check, relative to the output's scale.

The first three have the base run on one side, whose InstanceNormalization sums in single precision: at 256 x 256
positions one such norm is off by 2e-6, and a whole UNet by 7e-6. Small models stay below 5e-6. A model that was
converted to another precision errs as that does, which "converted" leaves room for. The last is no fault but the price
of a policy: what an edit of all rows misses where it leaves text tokens as they were.
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
        """The largest error of every check by name, relative to the output's scale; raises if one is too large.

        One session is open at a time, and the states of the base run are let go before the masked reference runs.
        """
        self.tell("verify the full model")
        base, full = self._full_runs()
        errors = self._against_original(base)
        edited = {mode: self._edits(mode, base, self._cases(mode)) for mode in self.manifest.edits}
        for mode in [mode for mode, stack in self.manifest.stacked.items() if stack.graph is not None]:
            self.tell(f"verify {mode}: stacked edits")
            errors[f"stacked.{mode}"] = self._stacked(mode, base)
        base = self._outputs(base)
        for mode, results in edited.items():
            errors.update(self._judged(mode, results, base, full))
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

    def _full_runs(self) -> tuple[Feeds, Feeds]:
        """All outputs of the base run, and the outputs of a full run on the new feeds."""
        runner = Runner.open(self.path / self.manifest.base_file)
        base = runner.run(self.old)
        floats = [output.tensor.name for output in self.manifest.outputs if _is_float(output.tensor.dtype)]
        if not all(np.isfinite(base[name]).all() for name in floats):
            raise VerificationError(
                "The model's output is not finite on the made-up example feeds. "
                "Pass feeds that the model accepts: --example FEEDS.npz."
            )
        return base, self._outputs(runner.run(self.new, self._names))

    @property
    def _names(self) -> list[str]:
        return [output.tensor.name for output in self.manifest.outputs]

    def _outputs(self, results: Feeds) -> Feeds:
        return {name: results[name] for name in self._names}

    def _against_original(self, base: Feeds) -> dict[str, float]:
        """The base graph against the file it came from, where ONNX Runtime has kernels for all of that."""
        self.tell("verify against the original")
        try:
            runner = Runner(session_of(self.original, self.original.name), self.original.name)
            feeds = runner.fitting(self.old)
            expected = runner.run(feeds, self._names)
        except VerificationError as error:
            self.tell(f"the original cannot be compared: {error}")
            return {}
        converted = any(feed.dtype != self.old[name].dtype for name, feed in feeds.items())
        return {"converted" if converted else "original": self._distance(base, expected)}

    def _cases(self, mode: str) -> dict[str, list[tuple[Feeds, ActiveRows]]]:
        """By check, feeds and active rows of the edits of a mode."""
        regions, everything = self._regions(), ActiveRows.full(self.manifest.grids)
        cases = {"identity": [(self.old, active) for active in regions]}
        if mode == list(self.manifest.edits)[-1] and not self._frozen:
            cases["all_rows"] = [(self.new, everything)]
        chosen = [*regions, self._independent(), *([everything] if self._frozen else [])]
        return {**cases, "masked_reference": [(self.new, active) for active in chosen]}

    def _edits(
        self, mode: str, base: Feeds, cases: Mapping[str, Sequence[tuple[Feeds, ActiveRows]]]
    ) -> dict[str, list[Feeds]]:
        """The outputs of edits, by check."""
        spec = self.manifest.edits[mode]
        inputs = {f"cached.{name.removeprefix('cacheable.')}": value for name, value in base.items()}
        if spec.prep_file is not None:
            inputs.update(Runner.open(self.path / spec.prep_file).run({**self.old, **inputs}))
        used = [n for n in self.manifest.neighbourhoods if n.id in spec.neighbourhoods]
        blocks = [grid for grid in self.manifest.grids if grid.id in spec.blocks]
        runner = Runner.open(self.path / spec.file)
        results: dict[str, list[Feeds]] = {}
        for check, edits in cases.items():
            self.tell(f"verify {mode}: {check.replace('_', ' ')}")
            indices = (index_inputs(active, used, self.manifest.grids, blocks) for _, active in edits)
            results[check] = [
                runner.run({**fed, **inputs, **index}, self._names)
                for (fed, _), index in zip(edits, indices, strict=True)
            ]
        return results

    def _judged(self, mode: str, results: Mapping[str, list[Feeds]], base: Feeds, full: Feeds) -> dict[str, float]:
        """The errors of a mode's edits."""
        errors = {f"identity.{mode}": max(self._distance(got, base) for got in results["identity"])}
        if "all_rows" in results:
            errors["all_rows"] = self._distance(results["all_rows"][0], full)
        if self._frozen:
            errors[f"frozen_text.{mode}"] = self._distance(results["masked_reference"][-1], full)
        self.tell(f"verify {mode}: against the masked reference")
        runner = Runner.from_model(self.reference(mode))
        found = []
        for got, (fed, active) in zip(results["masked_reference"], self._cases(mode)["masked_reference"], strict=True):
            feeds = {f"old.{n}": v for n, v in self.old.items()} | {f"new.{n}": v for n, v in fed.items()}
            feeds |= {f"active.{grid.id}": active.mask(grid.id) for grid in self.manifest.grids}
            found.append(self._distance(got, runner.run(feeds)))
            self._check_outside(got, base, active)
        return {**errors, f"masked_reference.{mode}": max(found)}

    def _stacked(self, mode: str, base: Feeds) -> float:
        """Three edits in one run against one run each; they overlap, and one changes nothing."""
        feeds = (self.new, self.old, self.new)
        edits = list(zip(feeds, (*self._regions(), self._independent()), strict=True))
        together = run_stacked(self.path, self.manifest, mode, base, edits)
        alone = self._edits(mode, base, {"one_by_one": edits})["one_by_one"]
        return max(self._distance(got, expected) for got, expected in zip(together, alone, strict=True))

    def _check_outside(self, got: Feeds, base: Feeds, active: ActiveRows) -> None:
        """Inactive rows of every output with a grid must be the base output's, bit for bit."""
        for output in self.manifest.outputs:
            if output.grid is None:
                continue
            mask = active.mask(output.grid)
            name = output.tensor.name
            outside = ~mask.reshape(-1) if len(output.axes) == 1 else ~mask
            ours, theirs = (
                np.moveaxis(part[name], output.axes, range(len(output.axes)))[outside] for part in (got, base)
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
        for grid in [grid for grid in self.manifest.grids if grid.parent is None or grid.picked is not None]:
            masks[grid.id] = generator.random(grid.dims) < 0.3
            masks[grid.id].reshape(-1)[generator.integers(grid.rows)] = True
        return ActiveRows.from_masks(masks, self.manifest.grids)

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
