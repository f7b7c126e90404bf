"""Bundles of small models, and validations of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("polygraphy")

from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx
from retouch.validation.accuracy import Validation, ValidationOptions, validate
from retouch.validation.reference_models import export_reference

# Few cases, and none that computes everything: the models are small.
QUICK = {"areas": (0.05,), "policy": "exact", "drift": 2, "threads": 1}


@pytest.fixture(scope="session")
def quick() -> Callable[..., Validation]:
    def quick(bundle: Bundle, **options: Any) -> Validation:
        return validate(bundle, ValidationOptions(**{**QUICK, **options}), lambda _: None)

    return quick


@pytest.fixture(scope="session")
def exported(reference_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bundle]:
    folder, done = tmp_path_factory.mktemp("bundles"), {}

    def exported(name: str) -> Bundle:
        if name not in done:
            done[name] = export_onnx(
                export_reference(name, reference_models), folder / name, ExportOptions(verify=False)
            )
        return done[name]

    return exported


@pytest.fixture(scope="session")
def unet(exported: Callable[[str], Bundle]) -> Bundle:
    return exported("ddpm_unet_tiny")


@pytest.fixture(scope="session")
def unet_model(reference_models: Path) -> Path:
    return export_reference("ddpm_unet_tiny", reference_models)


@pytest.fixture(scope="session")
def llada(exported: Callable[[str], Bundle]) -> Bundle:
    return exported("llada_tiny")


@pytest.fixture(scope="session")
def of_unet(unet: Bundle, quick: Callable[..., Validation]) -> Validation:
    return quick(unet)
