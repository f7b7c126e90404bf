"""Finding the trained terrain model, which a package on PyPI carries, without importing that package."""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from retouch.errors import ModelError

DISTRIBUTION = "adaptive-terrain-diffusion"
VERSION = "0.4.2"
IMPORT_NAME = "terrain_diffusion"
FILE = "weights/terrain_consistency_unet_difficulty100.onnx"
# Its metadata asks for onnxruntime-gpu on Linux, which would overwrite an installed onnxruntime: hence --no-deps.
INSTALL = f"pip install --no-deps {DISTRIBUTION}=={VERSION}"


def terrain() -> Path:
    """The path of the terrain model's ONNX file inside its installed package.

    A trained consistency UNet with 10.5 million parameters. Inputs: ``noisy`` [B, 1, 128, 128] (editable, axes 2
    and 3), ``sigma`` [B] between 0.002 and 80 and ``difficulty`` [B] between 0 and 1; output ``denoised``. The
    module ``retouch.validation.terrain`` speaks its conventions.

    Raises:
        ModelError: the package is not installed, has another version, or lacks the file.
    """
    require_terrain_package()
    spec = importlib.util.find_spec(IMPORT_NAME)
    if spec is None:
        raise ModelError(f"{DISTRIBUTION} is installed but has no module {IMPORT_NAME}; reinstall it: {INSTALL}")
    # A module that is made but never executed: enough to locate resources, and nothing of the package runs.
    path = Path(str(files(importlib.util.module_from_spec(spec)).joinpath(FILE)))
    if not path.is_file():
        raise ModelError(f"expected {FILE} in the package {IMPORT_NAME}, found no such file; reinstall it: {INSTALL}")
    return path


def require_terrain_package() -> None:
    """Checks that the terrain package is installed in the version whose weights and conventions are known.

    Raises:
        ModelError: it is not.
    """
    try:
        found = version(DISTRIBUTION)
    except PackageNotFoundError:
        raise ModelError(f"the terrain model comes with {DISTRIBUTION}, which is not installed; {INSTALL}") from None
    if found != VERSION:
        raise ModelError(f"expected {DISTRIBUTION} {VERSION}, got {found}, whose weights may differ; {INSTALL}")
