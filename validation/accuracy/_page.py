"""The report's text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version

from retouch import __version__
from retouch.region import RegionPolicy
from retouch.validation.accuracy._document import Block, Code, Heading, Listing, Paragraph, Picture, Rows
from retouch.validation.accuracy._figures import CaseFigures, OutputFigures, ZoneFigures
from retouch.validation.accuracy._pictures import AREA, DRIFT, MAPS
from retouch.validation.accuracy._validate import Validation
from retouch.validation.accuracy._zones import INSIDE, NEAR, OUTSIDE, RING, ZONES

_CAPTIONS = {
    AREA: "PSNR over the area of a centred block",
    DRIFT: "Edits in a row: PSNR against a full recomputation, error against the oracle",
    MAPS: "Error against a full recomputation, where nothing is recomputed and after the edit",
}

ORACLE_TEXT = (
    "The oracle is the masked reference: a full-size graph in which every value keeps the base run's numbers wherever "
    "rows are not active. It computes what an edit means without the edit graph's rows and gathers, so both may differ "
    "by rounding only. Errors are the largest among active rows, as shares of the output's largest value, and in units "
    "of the last place (ulp) of that value. Kept rows are compared bit by bit with what the edit is based on."
)
QUALITY_TEXT = (
    "The edit against recomputing everything. This is what the method costs: rows that are not active keep what they "
    f"were, also where a full recomputation would change them. Near is a ring of {RING} positions around the region, "
    "outside is beyond it. 'Nothing recomputed' compares the output from before the edit. Of edits in a row, inside is "
    "wherever any of them was so far, and nothing recomputed is from before the first."
)


def page(validation: Validation, pictures: Iterable[str], files: Sequence[str], remarks: Sequence[str]) -> list[Block]:
    """The report as blocks.

    Args:
        validation: what it is about.
        pictures: names of the pictures there are.
        files: names of the files for Polygraphy.
        remarks: what was not written.
    """
    figures = validation.figures
    verdict = "passed" if figures.passed else "FAILED"
    faults = [f"{case.suite}, {case.name}: {fault}" for case in figures.cases for fault in case.faults]
    noted = [*figures.remarks, *remarks]
    return [
        Heading(f"Validation of {validation.bundle.path.name}: {verdict}", 1),
        *([Listing(tuple(faults))] if faults else []),
        Rows(("", ""), tuple(_facts(validation))),
        *([Listing(tuple(noted))] if noted else []),
        Heading("Against the oracle"),
        Paragraph(ORACLE_TEXT),
        oracle_table(figures.cases),
        Heading("Against a full recomputation"),
        Paragraph(QUALITY_TEXT),
        quality_table(figures.cases),
        *(Picture(name, _CAPTIONS[name]) for name in pictures),
        Heading("Files for Polygraphy"),
        Paragraph(
            "Outputs of all runners, the feeds they had, and every comparison. A comparison can be judged anew, with "
            "other bounds, without running anything:"
        ),
        Code("polygraphy check accuracy regions.full-edit.zones.accuracy.json --compare psnr --psnr-threshold 30"),
        Listing(tuple(files)),
    ]


def oracle_table(cases: Iterable[CaseFigures]) -> Rows:
    """The errors against the oracle."""
    head = ("edit", "GroupNorm", "area", "computed", "error", "allowed", "ulp", "kept rows", "verdict")
    return Rows(head, tuple(_oracle_row(case, output) for case, output in _each(cases)))


def quality_table(cases: Iterable[CaseFigures]) -> Rows:
    """The edits against a full recomputation."""
    head = ("edit", "nothing recomputed", "inside", "cosine", "max error", "near", "outside")
    return Rows(head, tuple(_quality_row(case, output) for case, output in _each(cases)))


def summary_table(cases: Iterable[CaseFigures]) -> Rows:
    """Both in short, for a terminal."""
    head = ("edit", "computed", "oracle", "kept rows", "unedited", "inside", "near", "outside", "verdict")
    return Rows(head, tuple(_summary_row(case, output) for case, output in _each(cases)))


def policy_text(policy: str | RegionPolicy) -> str:
    """A policy in a word or two."""
    return policy if isinstance(policy, str) else f"dilation {policy.dilation}"


def _each(cases: Iterable[CaseFigures]) -> Iterable[tuple[CaseFigures, OutputFigures]]:
    return ((case, output) for case in cases for output in case.outputs)


def _facts(validation: Validation) -> Iterable[tuple[str, str]]:
    manifest, options = validation.bundle.manifest, validation.options
    yield "model", manifest.model.name
    yield "bundle", f"{validation.bundle.fingerprint[:16]}..."
    full = "the bundle's base graph" if options.original is None else options.original.name
    yield "full model", full
    yield "feeds", "made up" if options.feeds is None else options.feeds.name
    yield "region policy", policy_text(options.policy)
    yield "weights of edits", str(options.weights)
    asked = "nothing" if options.min_psnr is None else f"{options.min_psnr:g} dB"
    yield "PSNR asked for", asked
    yield "versions", (f"retouch {__version__}, Polygraphy {version('polygraphy')}, ONNX Runtime {_runtime_version()}")


def _runtime_version() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)


def _oracle_row(case: CaseFigures, output: OutputFigures) -> tuple[str, ...]:
    ulps = output.oracle_ulps
    return (
        _name(case, output),
        case.group_norm,
        f"{case.area:.1%}",
        f"{case.active:.1%}",
        _error(output.oracle_error),
        f"{output.oracle_bound:.0e}",
        "-" if ulps is None else f"{ulps:.1f}",
        _kept(output),
        _verdict(case),
    )


def _quality_row(case: CaseFigures, output: OutputFigures) -> tuple[str, ...]:
    inside = output.zones[INSIDE]
    return (
        _name(case, output),
        f"{output.unedited.psnr:.1f}",
        f"{inside.psnr:.1f}",
        f"{inside.cosine:.5f}",
        f"{inside.max_error:.1e}",
        *(_decibels(output.zones.get(zone)) for zone in (NEAR, OUTSIDE)),
    )


def _summary_row(case: CaseFigures, output: OutputFigures) -> tuple[str, ...]:
    return (
        _name(case, output),
        f"{case.active:.1%}",
        _error(output.oracle_error),
        _kept(output),
        f"{output.unedited.psnr:.1f}",
        *(_decibels(output.zones.get(zone)) for zone in ZONES),
        _verdict(case),
    )


def _error(error: float | None) -> str:
    return "-" if error is None else f"{error:.1e}"


def _kept(output: OutputFigures) -> str:
    return {None: "-", True: "identical", False: "CHANGED"}[output.kept_identical]


def _verdict(case: CaseFigures) -> str:
    return "FAILED" if case.faults else "passed"


def _name(case: CaseFigures, output: OutputFigures) -> str:
    return f"{case.name}, {output.name}" if len(case.outputs) > 1 else case.name


def _decibels(zone: ZoneFigures | None) -> str:
    return "-" if zone is None else f"{zone.psnr:.1f}"
