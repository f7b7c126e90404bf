"""``retouch text generate`` and ``retouch text edit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from retouch.cli._text_delivery import deliver_text
from retouch.cli._text_options import (
    PRESET_HELP,
    BundlePath,
    EditThreshold,
    Json,
    Output,
    PresetName,
    Prompt,
    Seed,
    Temperature,
    Threads,
    Threshold,
    Tokens,
    TopK,
    TopP,
    prompt_of,
)
from retouch.cli._text_spans import find_spans, parse_spans
from retouch.errors import FeedError, RegionError
from retouch.text import (
    EditMode,
    Generation,
    Masks,
    Replacement,
    TextSession,
    check_text_target,
    preset,
    read_text_record,
)
from retouch.text_view import TextView

_Edits = Annotated[bool, typer.Option("--edits/--no-edits", help="Replace tokens at all.")]
_MultiBlock = Annotated[int, typer.Option(min=1, help="Edit so many finished blocks together; 1: none.")]
_Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Keep keys and values of finished blocks.")]
_Base = Annotated[Path, typer.Argument(help="Directory of a text, as `generate -o` or `edit -o` wrote it.")]
_Spans = Annotated[
    list[str] | None, typer.Option("--tokens", metavar="A:B", help="Span of tokens, B not included; repeatable.")
]
_Characters = Annotated[
    list[str] | None, typer.Option("--chars", metavar="A:B", help="Span of characters, B not included.")
]
_Find = Annotated[list[str] | None, typer.Option("--find", help="A text that occurs once: its span.")]
_With = Annotated[list[str] | None, typer.Option("--with", help="What comes in a span's place, one for each.")]
_Length = Annotated[
    int | None, typer.Option("--length", min=0, help="Let the model choose so many tokens for the only span.")
]
_Mode = Annotated[EditMode, typer.Option(help="What is done with blocks behind a span.")]
_Disagreement = Annotated[float, typer.Option(help="Confidence from which verify chooses anew.")]
_Moved = Annotated[Path | None, typer.Option(help="The text bundle, if it was moved.")]
_OtherPreset = Annotated[str | None, typer.Option("--preset", help=f"{PRESET_HELP} By default as the base.")]


def generate(
    bundle: BundlePath,
    prompt: Prompt,
    tokens: Tokens = 256,
    output: Output = None,
    preset_name: PresetName = "quality",
    threshold: Threshold = None,
    edit_threshold: EditThreshold = None,
    edits: _Edits = True,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    multi_block: _MultiBlock = 1,
    seed: Seed = 0,
    cache: _Cache = True,
    threads: Threads = None,
    json_file: Json = None,
) -> None:
    """Continues a prompt. The text goes to standard output, what it took to standard error.

    On a terminal blocks are shown as they are filled: new tokens green, replaced ones yellow. Models in which all
    tokens see each other are for `retouch text fill`.
    """
    if output is not None:
        check_text_target(output)
    given: dict[str, Any] = {"threshold": threshold, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    given["edit_threshold"] = edit_threshold
    options = replace(preset(preset_name), **{name: value for name, value in given.items() if value is not None})
    options = options if edits else replace(options, edit_threshold=None)
    options = replace(options, multi_block=multi_block)
    with TextSession(bundle, threads=threads) as session:
        ids = session.tokens_of(prompt_of(prompt))
        with TextView(session.tokenizer, session.model.spec.mask_id, ids, len(ids)) as view:
            made = session.generate(
                ids.tolist(), tokens, options=options, seed=seed or 0, cache=cache, callback=view.told
            )
        _deliver(session, made, output, json_file)


def edit(
    base: _Base,
    tokens: _Spans = None,
    characters: _Characters = None,
    find: _Find = None,
    replacement: _With = None,
    length: _Length = None,
    mode: _Mode = EditMode.EXACT,
    disagreement: _Disagreement = 0.9,
    output: Output = None,
    bundle: _Moved = None,
    preset_name: _OtherPreset = None,
    seed: Seed = None,
    threads: Threads = None,
    json_file: Json = None,
) -> None:
    """Chooses spans of a text anew, or replaces them, for the price of the blocks that they are in."""
    if output is not None:
        check_text_target(output)
    with TextSession(bundle or read_text_record(base).bundle_path(base), threads=threads) as session:
        loaded = session.load(base)
        spans = parse_spans(tokens or [], "--tokens")
        places = [*parse_spans(characters or [], "--chars"), *find_spans(loaded.text, find or [])]
        if bool(spans) == bool(places):
            raise RegionError(
                "Expected spans of tokens (--tokens), or places in the text (--chars, --find), got "
                f"{'both' if spans else 'neither'}. Give one kind."
            )
        with TextView(session.tokenizer, session.model.spec.mask_id, loaded.padded, 0) as view:
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


def _replacements(count: int, texts: list[str] | None, length: int | None) -> Sequence[Replacement] | None:
    if length is None:
        return texts or None
    if texts or count != 1:
        raise FeedError("Expected --length with a single span and without --with. Give one span, or leave it out.")
    return [Masks(length)]


def _deliver(session: TextSession, made: Generation, output: Path | None, json_file: str | None) -> None:
    if output is not None:
        session.save(made, output)
    deliver_text(made.text, made.tokens.tolist(), made.report, json_file, id=made.id)
