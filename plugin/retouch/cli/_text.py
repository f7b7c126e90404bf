"""``retouch text``: texts by block diffusion, edits of them, and what both cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from retouch.bench import TextMeasurement, measure_text
from retouch.cli._results import JSON_HELP, result_console, write_json
from retouch.cli._run import THREADS_HELP
from retouch.cli._steps import counted, progress_console
from retouch.cli._text_spans import find_spans, parse_spans
from retouch.errors import FeedError
from retouch.text import (
    PRESETS,
    EditMode,
    Generation,
    Masks,
    Replacement,
    TextSession,
    preset,
    read_text_record,
)
from retouch.text_view import TextView

text = typer.Typer(help="Texts by block diffusion: make one, edit spans of it, measure.", no_args_is_help=True)

_PRESET_HELP = f"How to sample: {', '.join(PRESETS)}."
_EDIT_HELP = "Replace a token where another has a confidence above this."

Threshold = Annotated[float | None, typer.Option(help="Set a masked token above this confidence.")]
EditThreshold = Annotated[float | None, typer.Option(help=_EDIT_HELP)]
Temperature = Annotated[float | None, typer.Option(help="0 takes the likeliest token; above, tokens are drawn.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of what is drawn.")]
Threads = Annotated[int | None, typer.Option(min=1, help=THREADS_HELP)]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Directory to keep the text in, for edits.")]


@text.command()
def generate(
    bundle: Annotated[Path, typer.Argument(help="Directory of a text bundle.")],
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="The text to continue; @FILE reads it from a file.")],
    tokens: Annotated[int, typer.Option("--tokens", "-n", min=1, help="The most new tokens.")] = 256,
    output: Output = None,
    preset_name: Annotated[str, typer.Option("--preset", help=_PRESET_HELP)] = "quality",
    threshold: Threshold = None,
    edit_threshold: EditThreshold = None,
    edits: Annotated[bool, typer.Option("--edits/--no-edits", help="Replace tokens at all.")] = True,
    temperature: Temperature = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw among so many likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Draw among tokens with so much probability together.")] = None,
    multi_block: Annotated[int, typer.Option(min=1, help="Edit so many finished blocks together; 1: none.")] = 1,
    seed: Seed = 0,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep keys and values of finished blocks.")] = True,
    threads: Threads = None,
    json_file: Json = None,
) -> None:
    """Continues a prompt. The text goes to standard output, what it took to standard error.

    On a terminal blocks are shown as they are filled: new tokens green, replaced ones yellow.
    """
    given: dict[str, Any] = {"threshold": threshold, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    given["edit_threshold"] = edit_threshold
    options = replace(preset(preset_name), **{name: value for name, value in given.items() if value is not None})
    options = options if edits else replace(options, edit_threshold=None)
    options = replace(options, multi_block=multi_block)
    with TextSession(bundle, threads=threads) as session:
        ids = session.tokens_of(_content(prompt))
        with TextView(session, ids, len(ids)) as view:
            made = session.generate(
                ids.tolist(), tokens, options=options, seed=seed or 0, cache=cache, callback=view.told
            )
        _deliver(session, made, output, json_file)


@text.command()
def edit(
    base: Annotated[Path, typer.Argument(help="Directory of a text, as `generate -o` or `edit -o` wrote it.")],
    tokens: Annotated[
        list[str] | None, typer.Option("--tokens", metavar="A:B", help="Span of tokens, B not included; repeatable.")
    ] = None,
    characters: Annotated[
        list[str] | None, typer.Option("--chars", metavar="A:B", help="Span of characters, B not included.")
    ] = None,
    find: Annotated[list[str] | None, typer.Option("--find", help="A text that occurs once: its span.")] = None,
    replacement: Annotated[
        list[str] | None,
        typer.Option("--with", help="What comes in a span's place, one for each."),
    ] = None,
    length: Annotated[
        int | None, typer.Option("--length", min=0, help="Let the model choose so many tokens for the only span.")
    ] = None,
    mode: Annotated[EditMode, typer.Option(help="What is done with blocks behind a span.")] = EditMode.EXACT,
    disagreement: Annotated[float, typer.Option(help="Confidence from which verify chooses anew.")] = 0.9,
    output: Output = None,
    bundle: Annotated[Path | None, typer.Option(help="The text bundle, if it was moved.")] = None,
    preset_name: Annotated[str | None, typer.Option("--preset", help=f"{_PRESET_HELP} By default as the base.")] = None,
    seed: Seed = None,
    threads: Threads = None,
    json_file: Json = None,
) -> None:
    """Chooses spans of a text anew, or replaces them, for the price of the blocks that they are in."""
    record, _ = read_text_record(base)
    with TextSession(bundle or base / record.bundle, threads=threads) as session:
        loaded = session.load(base)
        spans = parse_spans(tokens or [], "--tokens")
        places = [*parse_spans(characters or [], "--chars"), *find_spans(loaded.text, find or [])]
        with TextView(session, loaded.padded, 0) as view:
            made = session.edit(
                loaded,
                spans or None,
                characters=places or None,
                replacements=_replacements(len(spans) + len(places), replacement, length),
                mode=mode,
                disagreement=disagreement,
                options=preset_name,
                seed=seed,
                callback=view.told,
            )
        _deliver(session, made, output, json_file)


@text.command()
def bench(
    bundle: Annotated[Path, typer.Argument(help="Directory of a text bundle.")],
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="The text to continue.")] = "class A:\n",
    tokens: Annotated[int, typer.Option("--tokens", "-n", min=1, help="New tokens; ends are ignored.")] = 256,
    span: Annotated[int, typer.Option(min=1, help="Tokens of the span that edits choose anew.")] = 16,
    preset_name: Annotated[str, typer.Option("--preset", help=_PRESET_HELP)] = "quality",
    threads: Annotated[int, typer.Option(min=1, help="Threads per run.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds that count, after one to warm up.")] = 5,
    json_file: Json = None,
) -> None:
    """Times a text with and without a cache, and edits of a span in its middle, in turn, in one process.

    Ratios are of the CPU time of the process, to that of making the text with a cache.
    """
    with TextSession(bundle, threads=threads) as session, counted(repeats + 1) as begin:
        rows = measure_text(
            session, _content(prompt), tokens, preset(preset_name), span=span, repeats=repeats, progress=begin
        )
    write_json(json_file, rows)
    result_console(json_file).print(_times(rows))


def _content(prompt: str) -> str:
    if not prompt.startswith("@"):
        return prompt
    try:
        return Path(prompt[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FeedError(f"Expected the file of a prompt, got {prompt[1:]!r} ({error}). Give a text file.") from error


def _replacements(count: int, texts: list[str] | None, length: int | None) -> Sequence[Replacement] | None:
    if length is None:
        return texts or None
    if texts or count != 1:
        raise FeedError("Expected --length with a single span and without --with. Give one span, or leave it out.")
    return [Masks(length)]


def _deliver(session: TextSession, made: Generation, output: Path | None, json_file: str | None) -> None:
    """The text to standard output, what it took to standard error, and both to where they are asked for."""
    if output is not None:
        session.save(made, output)
    data = {"id": made.id, "text": made.text, "tokens": made.tokens.tolist(), "report": dataclasses.asdict(made.report)}
    write_json(json_file, data)
    if json_file != "-":
        typer.echo(made.text, nl=not made.text.endswith("\n"))
    progress_console().print(str(made.report), highlight=False, soft_wrap=True, markup=False)


def _times(rows: Sequence[TextMeasurement]) -> Table:
    table = Table("case", "forwards", "CPU ms", "wall ms", "tokens / CPU s", "to cached", "same tokens")
    for row in rows:
        table.add_row(
            row["case"],
            str(row["forwards"]),
            f"{1e3 * row['cpu_s']:.1f}",
            f"{1e3 * row['wall_s']:.1f}",
            f"{row['tokens_per_s']:.0f}",
            f"{row['ratio']:.3f}",
            "yes" if row["identical"] else "no",
        )
    return table
