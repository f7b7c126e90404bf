"""The exported pipeline on stock ONNX Runtime, in a loop that shares nothing with ``retouch.sampling``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.engines.ort import load_onnxruntime, rest_between_runs

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["Frozen", "Image", "StockPipeline"]

Image = NDArray[np.uint8]
Latents = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Frozen:
    """Latents that a generation keeps from another one.

    Attributes:
        before: the other one's latents before every step, and the finished ones.
        inside: where latents are free, [height, width].
        start: the first step that is computed.
    """

    before: Sequence[Latents] = field(repr=False)
    inside: NDArray[np.bool_] = field(repr=False)
    start: int = 0

    def put_back(self, latents: Latents, index: int) -> Latents:
        """Latents with everything outside replaced by what stood there before the step of that index."""
        return np.where(self.inside, latents, self.before[index])


class StockPipeline:
    """The denoiser and the decoder of an exported pipeline as stock sessions."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        """Opens the sessions; see :class:`retouch.sampling.TextToImage` for what the directory holds."""
        self._path = path
        self._unet = _session(path / "unet" / "model.onnx", threads)
        self._inputs = self._unet.get_inputs()
        self._decoder = _session(path / "vae_decoder" / "model.onnx", threads)
        config = json.loads((path / "vae_decoder" / "config.json").read_text(encoding="utf-8"))
        self._scale = np.float32(config["scaling_factor"])
        self._shift = np.float32(config.get("shift_factor") or 0.0)

    def generate(
        self,
        text: NDArray[np.float32],
        *,
        guidance: float,
        steps: int = 20,
        seed: int = 0,
        frozen: Frozen | None = None,
    ) -> Image:
        """An image [height, width, 3] of a prompt's embeddings, those of the negative prompt first.

        Args:
            text: [2, tokens, width].
            guidance: scale of guidance.
            steps: number of steps.
            seed: seed of the noise.
            frozen: what is kept of another generation; then this is an inpainting by the full model.
        """
        import torch

        scheduler = _scheduler(self._path / "scheduler")
        scheduler.set_timesteps(steps)
        start = 0 if frozen is None else frozen.start
        latents = self._noise(seed, scheduler) if frozen is None or start == 0 else frozen.before[start]
        for index, time in enumerate(scheduler.timesteps[start:], start):
            if frozen is not None:
                latents = frozen.put_back(latents, index)
            doubled = scheduler.scale_model_input(torch.from_numpy(np.concatenate([latents, latents])), time).numpy()
            feeds = {"sample": doubled, "timestep": np.float32(time), "encoder_hidden_states": text}
            negative, positive = np.split(self._unet.run(None, self._typed(feeds))[0], 2)
            guided = negative + np.float32(guidance) * (positive - negative)
            latents = scheduler.step(torch.from_numpy(guided), time, torch.from_numpy(latents)).prev_sample.numpy()
        return self._decode(latents if frozen is None else frozen.put_back(latents, steps))

    def _noise(self, seed: int, scheduler: Any) -> Latents:  # noqa: ANN401 (diffusers is untyped)
        import torch

        shape = (1, *self._inputs[0].shape[1:])
        noise = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        drawn: Latents = (noise * scheduler.init_noise_sigma).numpy()
        return drawn

    def _typed(self, feeds: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
        """The feeds in the types and shapes of the graph, whose time may be one number or one per latents."""
        wanted = {item.name: (item.shape, np.int64 if "int64" in item.type else np.float32) for item in self._inputs}
        return {name: np.broadcast_to(feeds[name], shape).astype(kind) for name, (shape, kind) in wanted.items()}

    def _decode(self, latents: Latents) -> Image:
        feeds = {self._decoder.get_inputs()[0].name: latents / self._scale + self._shift}
        pixels: Latents = self._decoder.run(None, feeds)[0][0]
        return np.rint(np.clip(pixels.transpose(1, 2, 0) / 2 + 0.5, 0, 1) * 255).astype(np.uint8)


def _session(graph: Path, threads: int) -> onnxruntime.InferenceSession:
    runtime = load_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    rest_between_runs(options)
    session: onnxruntime.InferenceSession = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return session


def _scheduler(folder: Path) -> Any:  # noqa: ANN401 (diffusers is untyped)
    import diffusers

    name = json.loads((folder / "scheduler_config.json").read_text(encoding="utf-8"))["_class_name"]
    return getattr(diffusers, name).from_pretrained(str(folder))
