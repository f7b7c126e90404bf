"""The report directory holds the figures, for people and for Polygraphy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from polygraphy.comparator import AccuracyResults, PsnrThreshold, RunResults
from polygraphy.json import load_json

from retouch import ResultFileError
from retouch.bundle import Bundle
from retouch.validation.accuracy import Validation, figures_json, write_report

Quick = Callable[..., Validation]


@pytest.fixture(scope="module")
def report(of_unet: Validation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "report"
    write_report(of_unet, folder, lambda _: None)
    return folder


def test_files(report: Path) -> None:
    names = {path.name for path in report.iterdir()}
    assert {"report.md", "report.html", "figures.json", "area.png", "drift.png", "maps.png"} <= names
    for suite in ("regions", "all_rows", "drift"):
        assert {f"{suite}.{part}.json" for part in ("inputs", "full.outputs", "oracle-edit.accuracy")} <= names
    assert "regions.before-edit.kept.accuracy.json" in names and "all_rows.full-edit.exact.accuracy.json" in names


def test_markdown_holds_the_figures(report: Path, of_unet: Validation) -> None:
    text = (report / "report.md").read_text()
    assert text.startswith("# Validation of ddpm_unet_tiny: passed")
    for case in of_unet.figures.cases:
        (output,) = case.outputs
        assert (
            f"| {case.name} | {case.group_norm} | {case.area:.1%} | {case.active:.1%} | {output.oracle_error:.1e} |"
            in text
        )
        assert f"| {case.name} | {output.unedited.psnr:.1f} | {output.zones['inside'].psnr:.1f} |" in text
    for name in re.findall(r"\]\((.*?)\)", text):
        assert (report / name).is_file()
    listed = set(re.findall(r"^- (\S+\.json)$", text, re.MULTILINE))
    assert listed == {path.name for path in report.glob("*.json")} - {"figures.json"}


def test_html_needs_no_other_file(report: Path) -> None:
    text = (report / "report.html").read_text()
    assert text.count('src="data:image/png;base64,') == 3
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "<td>other conditions</td>" in text


def test_figures_are_plain_json(report: Path, of_unet: Validation) -> None:
    read = json.loads((report / "figures.json").read_text(), parse_constant=pytest.fail)
    assert read == json.loads(json.dumps(figures_json(of_unet)))
    assert read["passed"] is True and len(read["cases"]) == len(of_unet.figures.cases)


def test_polygraphy_reads_its_files(report: Path, of_unet: Validation) -> None:
    for runner in ("full", "oracle", "edit", "before"):
        outputs = RunResults.load(str(report / f"regions.{runner}.outputs.json"))
        assert list(outputs.keys()) == [runner]
        assert len(outputs[runner]) == len(of_unet.runs[0].suite.cases)
    assert len(load_json(str(report / "regions.inputs.json"))) == len(of_unet.runs[0].suite.cases)
    zones = AccuracyResults.load(str(report / "regions.full-edit.zones.accuracy.json"))
    assert zones
    assert not zones.reevaluate([PsnrThreshold(200.0)])


def test_a_report_replaces_a_report_only(llada: Bundle, tmp_path: Path, quick: Quick) -> None:
    folder = tmp_path / "report"
    write_report(quick(llada, drift=0), folder, lambda _: None)
    write_report(quick(llada, min_psnr=200.0, drift=0), folder, lambda _: None)
    text = (folder / "report.md").read_text()
    assert text.startswith("# Validation of llada_tiny: FAILED\n\n- regions, block 5 %: output 'out': ")
    assert "at least 200.0 dB asked for" in text and "| FAILED |" in text
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ResultFileError, match="not a validation report"):
        write_report(quick(llada, drift=0), tmp_path, lambda _: None)
