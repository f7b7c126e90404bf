"""What a rule is, and the table of rules by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import onnx_ir as ir

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph
    from retouch.export.lattice import Fact

RETOUCH_DOMAIN = "ai.retouch"


class Rule(Protocol):
    """How one operator family is computed on rows."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The facts of the node's outputs, or the reason why the node cannot be computed on rows."""

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """Adds the node's row form to the edit graph; called only where ``transfer`` gave facts."""


_RULES: dict[tuple[str, str], Rule] = {}


def rule(*operators: str, domain: str = "") -> Callable[[type[Rule]], type[Rule]]:
    """Decorator that registers one instance of a rule class for some operators of a domain."""

    def register(cls: type[Rule]) -> type[Rule]:
        instance = cls()
        for operator in operators:
            _RULES[domain, operator] = instance
        return cls

    return register


def rule_for(node: ir.Node) -> Rule | None:
    """The rule of a node's operator, ``None`` if there is none: the node is then computed whole."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    return _RULES.get((domain, node.op_type))


def supported_operators() -> list[str]:
    """Names of all operators with a rule, with their domain unless it is the ONNX one."""
    return sorted(f"{domain}.{op}" if domain else op for domain, op in _RULES)
