"""What an application does without Retouch: the exported graphs on stock sessions, and diffusers' scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["StockPipeline"]


class StockPipeline:
    """Text encoder, denoiser and decoder of an exported pipeline on stock sessions of ONNX Runtime."""

    def __init__(self, path: Path, threads: int) -> None:
        """Loads the graphs and the scheduler.

        Args:
            path: the directory that ``retouch export`` wrote with ``--fix batch=2``.
            threads: threads per session.
        """
        import diffusers
        from transformers import AutoTokenizer

        self._sessions = {
            part: _session(path / part / "model.onnx", threads) for part in ("text_encoder", "unet", "vae_decoder")
        }
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(path / "tokenizer"), local_files_only=True)
        self._scheduler: Any = diffusers.DDIMScheduler.from_pretrained(str(path / "scheduler"))
        self._scale = float(diffusers.AutoencoderKL.load_config(str(path / "vae_decoder"))["scaling_factor"])

    def generate(self, prompt: str, *, steps: int, guidance: float, seed: int) -> NDArray[np.uint8]:
        """The image of a prompt, uint8 ``[H, W, 3]``."""
        import torch

        text = np.concatenate([self._encode(""), self._encode(prompt)])
        sample, time, _ = self._sessions["unet"].get_inputs()
        latents = torch.randn((1, *sample.shape[1:]), generator=torch.Generator().manual_seed(seed))
        self._scheduler.set_timesteps(steps)
        for step in self._scheduler.timesteps:
            times = np.full(time.shape, step.item(), _dtype(time.type))
            fed = {sample.name: latents.repeat(2, 1, 1, 1).numpy(), time.name: times, "encoder_hidden_states": text}
            without, asked = np.split(self._sessions["unet"].run(None, fed)[0], 2)
            predicted = torch.from_numpy(without + np.float32(guidance) * (asked - without))
            latents = self._scheduler.step(predicted, step, latents).prev_sample
        return self._decode(latents.numpy())

    def _encode(self, prompt: str) -> NDArray[np.float32]:
        ids = self._sessions["text_encoder"].get_inputs()[0]
        tokens = self._tokenizer(prompt, padding="max_length", max_length=ids.shape[1]).input_ids
        fed = {ids.name: np.array([tokens], _dtype(ids.type))}
        embeddings: NDArray[np.float32] = self._sessions["text_encoder"].run(None, fed)[0]
        return embeddings

    def _decode(self, latents: NDArray[np.float32]) -> NDArray[np.uint8]:
        session = self._sessions["vae_decoder"]
        pixels = session.run(None, {session.get_inputs()[0].name: latents / np.float32(self._scale)})[0][0]
        image: NDArray[np.uint8] = np.round(np.clip(pixels / 2 + 0.5, 0, 1).transpose(1, 2, 0) * 255).astype(np.uint8)
        return image


def _session(path: Path, threads: int) -> Any:  # noqa: ANN401 (onnxruntime has no types)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _dtype(kind: str) -> type[np.generic]:
    return {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}[kind]
