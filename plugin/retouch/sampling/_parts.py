"""The parts of an exported text-to-image pipeline, loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retouch.engines.ort import OrtEngine
from retouch.sampling._components import TEXT, Components
from retouch.sampling._decoder import Decoder
from retouch.sampling._denoiser import Denoiser, Guidance
from retouch.sampling._prompt import PromptEncoder
from retouch.session import EditSession

_KEPT_PROMPTS = 64


@dataclass(frozen=True)
class Parts:
    """The parts of a pipeline.

    Attributes:
        denoiser: the denoiser.
        decoder: the decoder of the autoencoder.
        encode: prompts as embeddings.
    """

    denoiser: Denoiser
    decoder: Decoder
    encode: Callable[[str], NDArray[np.float32]]

    @classmethod
    def load(cls, components: Components, make: Callable[[Path], EditSession], engine: OrtEngine) -> Parts:
        """The parts of a pipeline.

        Args:
            components: where they lie.
            make: makes a session on a bundle.
            engine: what runs the text encoder.
        """
        session = make(components.denoiser).open()
        inputs = {item.name: item for item in session.bundle.manifest.inputs}
        batch, tokens = inputs[TEXT].shape[:2]
        denoiser = Denoiser(session, Guidance.BATCH if batch == 2 else Guidance.CALLS)
        decoder = Decoder(make(components.decoder).open(), *components.scaling())
        encode = PromptEncoder(components.tokenizer, components.text_encoder, engine, tokens)
        return cls(denoiser, decoder, lru_cache(maxsize=_KEPT_PROMPTS)(encode))

    def close(self) -> None:
        """Close the sessions."""
        self.denoiser.session.close()
        self.decoder.session.close()
