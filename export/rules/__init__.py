"""One file per operator family: how facts pass through it and how its row form is emitted.

A new family is a new module with a class decorated by ``rule``; import it below so that it registers.
"""

from __future__ import annotations

from retouch.export.rules import (  # noqa: F401  (imported for registration)
    attention,
    concat_split,
    contraction,
    conv,
    conv_transpose,
    elementwise,
    gather,
    group_norm,
    norm,
    pad,
    pool,
    reduce,
    reduce_rows,
    reshape,
    resize,
    rotary_embedding,
    softmax,
    space_depth,
    transpose,
)
from retouch.export.rules._rule import Rule, rule, rule_for, supported_operators

__all__ = ["Rule", "rule", "rule_for", "supported_operators"]
