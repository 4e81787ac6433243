"""Reading weights: the authors' checkpoints."""

from etcmodel.checkpoints.names import release_names
from etcmodel.checkpoints.released import (
    LoadReport,
    initialize,
    load_pretrained,
    load_released_checkpoint,
)

__all__ = [
    "LoadReport",
    "initialize",
    "load_pretrained",
    "load_released_checkpoint",
    "release_names",
]
