"""A small conditional denoiser, and a sampling loop in full that is written without the code under test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from retouch import EditSession, Region, RegionPolicy
from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx
from retouch.sampling import Conditions, Denoiser, Guidance, Schedule, Step, TextToImage

os.environ["HF_HUB_OFFLINE"] = "1"

Array = NDArray[np.float32]
SHAPE = (1, 2, 8, 8)
EVERYWHERE = RegionPolicy(dilation=8)
"""All rows of the small grid, so that an edit is what a full recompute with the same frozen latents is."""

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[B,2,8,8] sample, float[B] timestep, float[B,3,4] text) => (float[B,2,8,8] prediction)
    <int64[2] last = {-1, 1}, int64[4] image = {-1, 8, 1, 1}, float thousandth = {0.001}, int64[1] one = {1}> {
    tau = Mul(timestep, thousandth)
    t0 = Reshape(tau, last)
    t1 = MatMul(t0, wt)
    c0 = ReduceMean<keepdims = 0>(text, one)
    c1 = MatMul(c0, wc)
    e0 = Add(t1, c1)
    e = Reshape(e0, image)
    a0 = Conv<pads = [1, 1, 1, 1]>(sample, k1)
    a1 = Add(a0, e)
    g = Sigmoid(a1)
    a = Mul(a1, g)
    prediction = Conv<pads = [1, 1, 1, 1]>(a, k2)
}
"""


def save_model(path: Path, batch: int) -> Path:
    model = onnx.parser.parse_model(MODEL.replace("[B,", f"[{batch},").replace("[B]", f"[{batch}]"))
    generator = np.random.default_rng(3)
    shapes = {"wt": (1, 8), "wc": (4, 8), "k1": (8, 2, 3, 3), "k2": (2, 8, 3, 3)}
    for name, shape in shapes.items():
        weight = generator.standard_normal(shape, dtype=np.float32) / np.float32(np.prod(shape[1:]) ** 0.5)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    onnx.save(model, path)
    return path


@dataclass(frozen=True)
class Network:
    """A model and its bundle."""

    model: Path
    bundle: Bundle


def _network(folder: Path, batch: int) -> Network:
    model = save_model(folder / "model.onnx", batch)
    options = ExportOptions(editable="sample", axes=(2, 3), min_coverage=0.0)
    return Network(model, export_onnx(model, folder / "bundle", options))


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    return _network(tmp_path_factory.mktemp("denoiser"), 1)


@pytest.fixture(scope="session")
def pair_network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """The same model with a batch of two."""
    return _network(tmp_path_factory.mktemp("denoiser_of_two"), 2)


@pytest.fixture
def denoiser(network: Network) -> Iterator[Denoiser]:
    with EditSession(network.bundle, threads=1) as session:
        yield Denoiser(session)


@pytest.fixture
def pair_denoiser(pair_network: Network) -> Iterator[Denoiser]:
    with EditSession(pair_network.bundle, threads=1) as session:
        yield Denoiser(session, Guidance.BATCH)


class Setting:
    """What tests ask of the small denoiser."""

    shape = SHAPE

    def text(self, seed: int) -> dict[str, Array]:
        return {"text": np.random.default_rng(seed).standard_normal((1, 3, 4), dtype=np.float32)}

    def asked(self, seed: int = 1, guidance: float = 3.0) -> Conditions:
        return Conditions(self.text(seed), self.text(0), guidance)

    def corner(self, policy: str | RegionPolicy = EVERYWHERE) -> Region:
        return Region.from_boxes([(1, 2, 4, 5)], SHAPE[2:], policy)

    def schedule(self, kind: str = "DDIMScheduler", steps: int = 5, **options: Any) -> Schedule:
        import diffusers

        return Schedule(getattr(diffusers, kind)(**options), steps)


@pytest.fixture(scope="session")
def setting() -> Setting:
    return Setting()


@dataclass
class FullLoop:
    """A loop over a diffusers scheduler with a stock session, as a pipeline has it."""

    model: Path

    def __post_init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])

    def run(
        self,
        plan: Schedule,
        conditions: Conditions,
        seed: int,
        frozen: tuple[NDArray[np.bool_], tuple[Step, ...], Array] | None = None,
    ) -> list[Array]:
        """The latents before every step and after the last, those outside a mask replaced by a base's at every step."""
        import torch

        scheduler = type(plan.scheduler).from_config(plan.scheduler.config)
        scheduler.set_timesteps(plan.steps)
        generator = torch.Generator().manual_seed(seed)
        latents = torch.randn(SHAPE, generator=generator) * getattr(scheduler, "init_noise_sigma", 1.0)
        visited = []
        for index, time in enumerate(scheduler.timesteps):
            latents = self._freeze(latents, frozen, index)
            visited.append(latents.numpy().copy())
            scaled = scheduler.scale_model_input(latents, time) if hasattr(scheduler, "scale_model_input") else latents
            output = torch.from_numpy(self._predict(scaled.numpy(), float(time), conditions))
            if frozen is not None:
                mask, steps, _ = frozen
                output = torch.where(torch.from_numpy(mask), output, torch.from_numpy(steps[index].output.copy()))
            more = {"generator": generator} if self._takes_generator(scheduler) else {}
            latents = scheduler.step(output, time, latents, **more).prev_sample
        visited.append(self._freeze(latents, frozen, len(visited)).numpy())
        return visited

    @staticmethod
    def _takes_generator(scheduler: Any) -> bool:
        return "generator" in scheduler.step.__code__.co_varnames[: scheduler.step.__code__.co_argcount]

    @staticmethod
    def _freeze(latents: Any, frozen: Any, index: int) -> Any:
        import torch

        if frozen is None:
            return latents
        mask, steps, last = frozen
        outside = steps[index].latents if index < len(steps) else last
        return torch.where(torch.from_numpy(mask), latents, torch.from_numpy(outside.copy()))

    def _predict(self, latents: Array, time: float, conditions: Conditions) -> Array:
        times = np.array([time], np.float32)
        sides = [conditions.positive] if conditions.negative is None else [conditions.negative, conditions.positive]
        outputs = [self.session.run(None, {"sample": latents, "timestep": times, **side})[0] for side in sides]
        if len(outputs) == 1:
            return outputs[0]
        return outputs[0] + np.float32(conditions.guidance) * (outputs[1] - outputs[0])


@pytest.fixture(scope="session")
def full_loop(network: Network) -> FullLoop:
    return FullLoop(network.model)


@pytest.fixture(scope="session")
def exported(exported_tiny_pipeline: Any) -> Path:
    """A tiny pipeline for guidance in two calls; its images have 16x16 pixels."""
    return exported_tiny_pipeline(1)


@pytest.fixture(scope="module")
def pipeline(exported: Path) -> Iterator[TextToImage]:
    with TextToImage(exported, threads=1) as opened:
        yield opened


@pytest.fixture
def region() -> Region:
    """Where tests edit the images of that pipeline."""
    return Region.from_boxes([(2, 3, 8, 9)], (16, 16), "exact")


@pytest.fixture
def progress_limit() -> Callable[[int], Callable[[object], None]]:
    """A callback that gives up after so many steps."""

    def limited(steps: int) -> Callable[[object], None]:
        def callback(progress: Any) -> None:
            if progress.index + 1 >= steps:
                raise KeyboardInterrupt

        return callback

    return limited
