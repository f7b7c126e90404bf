"""The arguments of ``polygraphy run`` that make the runner."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from polygraphy.tools.args.base import BaseArgs, BaseRunnerArgs
from polygraphy.tools.script import make_invocable

from retouch.region import POLICIES
from retouch.session import GROUP_NORM_MODES

_OPTION = "retouch-edit"


class _StoreBundle(argparse.Action):
    """Selects the runner, in the order of the command line, and keeps its bundle."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 (argparse calls it so)
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002 (same)
    ) -> None:
        """Takes the option's value."""
        namespace.runners = [*getattr(namespace, "runners", []), _OPTION]
        namespace.retouch_bundle = values


class RetouchEditArgs(BaseRunnerArgs):  # type: ignore[misc] # Polygraphy has no types
    """Retouch: running edits of a base run with Retouch."""

    # Polygraphy reads title and description of its help from that docstring.

    def get_name_opt_impl(self) -> tuple[str, str]:
        """Name of the runner, and its option."""
        return "Retouch edits", _OPTION

    def add_parser_args_impl(self) -> None:
        """Adds the options."""
        # Polygraphy has made a flag without a value of the runner's name; this option takes its place.
        self.group.conflict_handler = "resolve"
        self.group.add_argument(
            f"--{_OPTION}",
            metavar="BUNDLE",
            action=_StoreBundle,
            dest="retouch_bundle",
            help="Run edits of that bundle: the first feeds are a base run, all others edits of it where they differ.",
        )
        self.group.add_argument(
            "--retouch-box",
            metavar="Y0,X0,Y1,X1",
            nargs="+",
            default=[],
            type=_box,
            help="Edit these boxes, whatever differs; for tokens START,STOP.",
        )
        self.group.add_argument(
            "--retouch-policy",
            choices=list(POLICIES),
            default="balanced",
            help="How far around regions to compute.",
        )
        self.group.add_argument(
            "--retouch-group-norm",
            choices=GROUP_NORM_MODES,
            default="corrected",
            help="How GroupNorm sees edits; an edit of everything equals the full model only with 'corrected'.",
        )
        self.group.add_argument(
            "--retouch-follow",
            action="store_true",
            help="Base every edit on the one before.",
        )

    def parse_impl(self, args: argparse.Namespace) -> None:
        """Keeps the values."""
        self.bundle: str | None = args.retouch_bundle
        self.options = {
            "boxes": args.retouch_box,
            "policy": args.retouch_policy,
            "group_norm": args.retouch_group_norm,
            "follow": args.retouch_follow,
        }

    def add_to_script_impl(self, script: Any) -> None:  # noqa: ANN401 (Polygraphy has no types)
        """Adds the runner to what Polygraphy runs."""
        script.add_import(imports=["EditsRunner"], frm="retouch.validation.polygraphy_run")
        script.add_runner(make_invocable("EditsRunner", self.bundle, **self.options))


def argument_groups() -> list[BaseArgs]:
    """What Polygraphy asks a plugin for."""
    return [RetouchEditArgs()]


def _box(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected numbers like 4,4,12,12, got {text!r}") from error
