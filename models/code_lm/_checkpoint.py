"""A network in a directory: ``config.json``, ``tokenizer.json``, ``model.safetensors``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from retouch.models.code_lm._config import CodeLmConfig
from retouch.tokens import CharacterTokenizer

if TYPE_CHECKING:
    from retouch.models.code_lm._network import CodeLm

__all__ = ["PATTERNS_MODEL", "load_code_lm", "load_tokenizer", "save_code_lm"]

PATTERNS_MODEL = Path(__file__).parent / "patterns"
"""The directory of a network that was trained on patterns."""


def save_code_lm(network: CodeLm, tokenizer: CharacterTokenizer, folder: Path, *, half: bool = True) -> None:
    """Writes the network, in half precision unless told otherwise; a tied output layer is not written twice."""
    import torch
    from safetensors.torch import save_file

    tied = {"lm_head.weight"} if network.config.tie_word_embeddings else set()
    dtype = torch.float16 if half else torch.float32
    tensors = {name: value.to(dtype).contiguous() for name, value in network.state_dict().items() if name not in tied}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    _write(folder / "config.json", network.config.to_dict())
    _write(folder / "tokenizer.json", {"kind": "characters", "symbols": list(tokenizer.symbols)})


def load_code_lm(folder: Path) -> CodeLm:
    """The network in a directory, in single precision, in evaluation mode."""
    from safetensors.torch import load_file

    from retouch.models.code_lm._network import CodeLm

    network = CodeLm(CodeLmConfig.from_dict(json.loads((folder / "config.json").read_text(encoding="utf-8"))))
    tensors = {name: value.float() for name, value in load_file(folder / "model.safetensors").items()}
    if network.config.tie_word_embeddings:
        tensors["lm_head.weight"] = tensors["model.word_embeddings.weight"]
    network.load_state_dict(tensors)
    return network.eval()


def load_tokenizer(folder: Path) -> CharacterTokenizer:
    """The tokenizer in a directory."""
    return CharacterTokenizer(json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["symbols"])


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
