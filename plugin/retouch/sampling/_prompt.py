"""Prompts as the embeddings that a denoiser takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.engines import Engine
from retouch.errors import SamplingError


class PromptEncoder:
    """A tokenizer, and a text encoder: an ONNX graph that takes token ids and gives the embeddings first."""

    def __init__(self, tokenizer: Path, graph: Path, engine: Engine, tokens: int) -> None:
        """Loads both.

        Args:
            tokenizer: the tokenizer's directory.
            graph: the text encoder's graph.
            engine: what runs it.
            tokens: the number of tokens that it, and the denoiser, take.
        """
        from transformers import AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(tokenizer), local_files_only=True)
        self._engine = engine
        self._program = engine.open(graph)
        self._ids = ir.load(graph).graph.inputs[0]
        self._tokens = tokens

    def __call__(self, prompt: str) -> NDArray[np.float32]:
        """The embeddings of a prompt: [1, tokens, width].

        Raises:
            SamplingError: the prompt is no text, or has more tokens than the encoder takes.
        """
        if not isinstance(prompt, str):
            raise SamplingError(f"Expected a prompt, as a string, got {type(prompt).__name__}.")
        ids = self._tokenizer(prompt, truncation=False).input_ids
        if len(ids) > self._tokens:
            raise SamplingError(
                f"Expected a prompt of at most {self._tokens} tokens, with those for start and end, got {len(ids)}. "
                "Shorten it; cutting it off would silently ignore its end."
            )
        padded = self._tokenizer(prompt, padding="max_length", max_length=self._tokens).input_ids
        assert self._ids.name is not None and self._ids.dtype is not None, "an encoder's input has a name and a type"
        value = self._engine.value(np.array([padded], self._ids.dtype.numpy()))
        outputs = self._program.run({self._ids.name: value})
        return np.asarray(outputs[self._program.outputs[0]].numpy(), np.float32)
