"""``onnxruntime.InferenceSession`` on a bundle: applications record and edit without being changed.

Implement nothing here.
"""

from __future__ import annotations

__all__ = [
    # One model
    "InferenceSession",
    "Editing",
    "Recording",
    # A pipeline
    "attach",
    "AttachedPipeline",
    "PipelineEditing",
    "PipelineRecording",
]

from retouch.drop_in._attach import AttachedPipeline, PipelineEditing, PipelineRecording, attach
from retouch.drop_in._editing import Editing
from retouch.drop_in._recording import Recording
from retouch.drop_in._session import InferenceSession
