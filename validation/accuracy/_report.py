"""Writes a validation into a directory: a report to read, pictures, figures, and files for Polygraphy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from pathlib import Path
from typing import Any

from retouch.errors import ResultFileError
from retouch.files import Kind, StagedDirectory
from retouch.validation.accuracy._document import to_html, to_markdown
from retouch.validation.accuracy._page import page
from retouch.validation.accuracy._pictures import draw_pictures
from retouch.validation.accuracy._polygraphy import quiet_polygraphy
from retouch.validation.accuracy._run import SuiteRun, save_inputs
from retouch.validation.accuracy._validate import Validation

REPORT = "report.md"
LARGEST_OUTPUTS = 256 * 2**20
"""Bytes of outputs of a suite beyond which they are not written: their JSON would be larger still."""


def _is_report(names: AbstractSet[str]) -> bool:
    return {REPORT, "report.html", "figures.json"} <= names


_KIND = Kind("a validation report", _is_report, ResultFileError)


def figures_json(validation: Validation) -> dict[str, Any]:
    """The verdict and all figures, for JSON."""
    figures = validation.figures
    return {
        "passed": figures.passed,
        "model": validation.bundle.manifest.model.name,
        "bundle": validation.bundle.fingerprint,
        "weights": str(validation.options.weights),
        "remarks": list(figures.remarks),
        "cases": [asdict(case) for case in figures.cases],
    }


def write_report(validation: Validation, folder: Path, tell: Callable[[str], None]) -> None:
    """Writes the directory in one step; a report that is there is replaced.

    Raises:
        ResultFileError: it cannot be written, or the directory holds something else.
        EngineMissingError: matplotlib is not installed.
    """
    tell("draw pictures")
    pictures = draw_pictures(validation)
    tell("write the report")
    with StagedDirectory(folder, _KIND) as staged:
        files, remarks = _save_results(validation, staged.path)
        blocks = page(validation, pictures, files, remarks)
        _write_texts(staged.path, {REPORT: to_markdown(blocks), "report.html": to_html(blocks, pictures)})
        _write_texts(staged.path, {"figures.json": json.dumps(figures_json(validation), indent=1, allow_nan=False)})
        for name, data in pictures.items():
            (staged.path / name).write_bytes(data)
        staged.finish()


def _write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _save_results(validation: Validation, folder: Path) -> tuple[list[str], list[str]]:
    """Names of the files for Polygraphy, and what was left out."""
    files, remarks = [], []
    with quiet_polygraphy():
        for name, results in validation.accuracy.items():
            files.append(f"{name}.accuracy.json")
            results.save(str(folder / files[-1]))
        for run in validation.runs:
            size = _size(run)
            if size > LARGEST_OUTPUTS:
                remarks.append(f"{run.suite.name}: {size / 2**20:.0f} MiB of outputs were not written.")
                continue
            files += _save_run(run, folder)
    return files, remarks


def _save_run(run: SuiteRun, folder: Path) -> list[str]:
    """Names of the files with feeds and outputs: one per runner, for Polygraphy compares all that are in one."""
    from polygraphy.comparator import RunResults

    files = [f"{run.suite.name}.inputs.json"]
    save_inputs(run, folder / files[0])
    for runner, iterations in run.results.items():
        files.append(f"{run.suite.name}.{runner}.outputs.json")
        RunResults([(runner, iterations)]).save(str(folder / files[-1]))
    return files


def _size(run: SuiteRun) -> int:
    return sum(array.nbytes for _, iterations in run.results.items() for case in iterations for array in case.values())
