"""Where pipelines on ONNX Runtime hold their sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retouch.drop_in._stock import StockSession

_COMPONENTS = ("unet", "transformer", "controlnet", "vae_encoder", "vae_decoder")
_ATTRIBUTES = ("session", "model")
"""Of the models of optimum-onnx, and of ``OnnxRuntimeModel`` of diffusers."""


@dataclass(frozen=True, eq=False)
class Seat:
    """An attribute that holds a session.

    Attributes:
        component: the component's name.
        owner: the object with the attribute.
        attribute: the attribute's name.
    """

    component: str
    owner: object
    attribute: str

    @property
    def session(self) -> StockSession:
        """The session that is there now."""
        return getattr(self.owner, self.attribute)

    @property
    def model(self) -> Path | None:
        """The file that the session was opened on, if it was opened on one."""
        path = getattr(self.session, "_model_path", None)
        return None if path is None else Path(path)

    def take(self, session: StockSession) -> None:
        """Puts another session there."""
        setattr(self.owner, self.attribute, session)


def seats_of(pipeline: object) -> Mapping[str, Seat]:
    """The seats of a pipeline's components, by name; those without a session of ONNX Runtime are left out."""
    found = {}
    for name in _COMPONENTS:
        owner = getattr(pipeline, name, None)
        for attribute in _ATTRIBUTES:
            if isinstance(getattr(owner, attribute, None), StockSession):
                found[name] = Seat(name, owner, attribute)
                break
    return found
