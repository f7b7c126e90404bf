"""The terrain model's file and conventions against the package that carries them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from retouch.errors import FeedError, ModelError
from retouch.validation import terrain as conventions
from retouch.validation.reference_models import _terrain_file, terrain

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("terrain_diffusion") is None, reason="adaptive-terrain-diffusion is not installed"
)


@pytest.fixture(scope="module")
def session() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(terrain()), providers=["CPUExecutionProvider"])


def terrain_generator() -> Any:
    """The package's ``TerrainGenerator`` class."""
    return importlib.import_module("terrain_diffusion.generator").TerrainGenerator


class TestFile:
    @needs_package
    def test_has_the_documented_inputs_and_output(self, session: onnxruntime.InferenceSession) -> None:
        assert [value.name for value in session.get_inputs()] == ["noisy", "sigma", "difficulty"]
        assert [value.name for value in session.get_outputs()] == ["denoised"]

    @needs_package
    def test_is_found_without_importing_the_package(self) -> None:
        script = (
            "import sys\n"
            "from retouch.validation.reference_models import terrain\n"
            "print(terrain().is_file(), 'terrain_diffusion' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["True", "False"]

    def test_missing_package_says_how_to_install_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> str:
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(_terrain_file, "version", missing)
        with pytest.raises(ModelError, match=r"pip install --no-deps adaptive-terrain-diffusion==0\.4\.2"):
            terrain()

    def test_other_version_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_terrain_file, "version", lambda name: "0.5.0")
        with pytest.raises(ModelError, match=r"got 0\.5\.0"):
            terrain()

    @needs_package
    def test_missing_file_is_named(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(_terrain_file, "files", lambda module: tmp_path)
        with pytest.raises(ModelError, match=r"terrain_consistency_unet_difficulty100\.onnx"):
            terrain()


@needs_package
class TestConventions:
    def test_making_a_terrain_equals_the_package(self, session: onnxruntime.InferenceSession) -> None:
        expected = terrain_generator()(device="cpu").generate(2, difficulty=40, seed=5)
        noise = conventions.draw_noise(seed=5, count=2)
        feeds = conventions.terrain_feeds(noise, sigma=conventions.SIGMA_MAX, difficulty=40)
        heights = conventions.to_heights(session.run(["denoised"], feeds)[0])
        assert heights.shape == (2, 128, 128)
        np.testing.assert_allclose(heights, expected, atol=1e-4)

    def test_varying_a_terrain_equals_the_package(self, session: onnxruntime.InferenceSession) -> None:
        slope = np.linspace(0, 3, 128, dtype=np.float32) * np.ones((128, 1), np.float32)
        expected = terrain_generator()(device="cpu").generate_from(slope, difficulty=70, strength=0.4, seed=8)
        feeds = conventions.terrain_feeds(
            conventions.draw_noise(seed=8),
            sigma=conventions.sigma_for_strength(0.4),
            difficulty=70,
            source=conventions.to_model_space(slope[None]),
        )
        heights = conventions.to_heights(session.run(["denoised"], feeds)[0])
        np.testing.assert_allclose(heights, expected, atol=1e-4)

    def test_heights_survive_the_round_trip(self) -> None:
        heights = np.random.default_rng(0).uniform(0, 20, (2, 128, 128)).astype(np.float32)
        heights -= heights.min(axis=(1, 2), keepdims=True)
        np.testing.assert_allclose(conventions.to_heights(conventions.to_model_space(heights)), heights, atol=1e-3)

    def test_without_zero_floor_a_local_change_stays_local(self) -> None:
        values = np.zeros((1, 1, 128, 128), np.float32)
        edited = values.copy()
        edited[..., :8, :8] = -0.9
        difference = conventions.to_heights(edited, zero_floor=False) - conventions.to_heights(values, zero_floor=False)
        assert (difference[0, :8, :8] < 0).all()
        assert not difference[0, 8:].any()

    def test_strength_spans_the_noise_levels(self) -> None:
        assert conventions.sigma_for_strength(0.0) == pytest.approx(conventions.SIGMA_MIN)
        assert conventions.sigma_for_strength(1.0) == pytest.approx(conventions.SIGMA_MAX)
        assert conventions.sigma_for_strength(0.5) == pytest.approx(0.4)

    def test_difficulty_spans_zero_to_one(self) -> None:
        assert conventions.difficulty_label(1) == 0.0
        assert conventions.difficulty_label(100) == 1.0

    def test_constants_are_the_package_s(self) -> None:
        generator = terrain_generator()
        package = (generator.native_size, generator.sigma_min, generator.sigma_max)
        assert package == (conventions.NATIVE_SIZE, conventions.SIGMA_MIN, conventions.SIGMA_MAX)


@needs_package
class TestBadInput:
    @pytest.mark.parametrize("difficulty", [0, 101, 2.5, None, "random"])
    def test_difficulty(self, difficulty: Any) -> None:
        with pytest.raises(FeedError, match="1 to 100"):
            conventions.difficulty_label(difficulty)

    @pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan")])
    def test_strength(self, strength: float) -> None:
        with pytest.raises(FeedError, match="between 0 and 1"):
            conventions.sigma_for_strength(strength)

    @pytest.mark.parametrize("sigma", [0.0, 81.0, float("nan")])
    def test_sigma(self, sigma: float) -> None:
        with pytest.raises(FeedError, match="expected sigma"):
            conventions.terrain_feeds(conventions.draw_noise(0), sigma=sigma, difficulty=1)

    def test_noise_shape(self) -> None:
        with pytest.raises(FeedError, match="draw_noise"):
            conventions.terrain_feeds(np.zeros((128, 128), np.float32), sigma=1.0, difficulty=1)

    def test_source_shape(self) -> None:
        source = np.zeros((128, 128), np.float32)
        with pytest.raises(FeedError, match="source of the noise's shape"):
            conventions.terrain_feeds(conventions.draw_noise(0), sigma=1.0, difficulty=1, source=source)

    def test_ranks(self) -> None:
        with pytest.raises(FeedError, match="batch axis"):
            conventions.to_model_space(np.zeros((128, 128), np.float32))
        with pytest.raises(FeedError, match="model's output"):
            conventions.to_heights(np.zeros((128, 128), np.float32))
