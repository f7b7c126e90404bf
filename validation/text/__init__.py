"""Texts on ONNX Runtime against the same network in torch, and how good the trained networks' completions are."""

from __future__ import annotations

__all__ = [
    # What sampling costs
    "demo_main",
    "efficiency_main",
    "main",
    # What caches of full attention cost and lose
    "CacheFigures",
    "caches_main",
    "compare_caches",
    "cost_of_caches_main",
    "train_full_main",
    # How good completions are
    "CodeScore",
    "Completion",
    "PatternScore",
    "Verdict",
    "code_prompts",
    "evaluate_main",
    "judge",
    "score_code",
    "score_patterns",
]

from retouch.validation.text._caches import CacheFigures, caches_main, compare_caches
from retouch.validation.text._completions import CodeScore, Completion, Verdict, code_prompts, judge, score_code
from retouch.validation.text._cost_of_caches import cost_of_caches_main
from retouch.validation.text._demo import demo_main
from retouch.validation.text._efficiency import efficiency_main
from retouch.validation.text._evaluate import evaluate_main
from retouch.validation.text._full_network import train_full_main
from retouch.validation.text._measure import main
from retouch.validation.text._patterns import PatternScore, score_patterns
