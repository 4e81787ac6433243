"""Modules under the names that they had, which Keras writes into its files beside each class.

Or that what they hold has in the authors' release.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

_PARTS = {  # Of the systems, now in one module each.
    "gmat": "decoder embeddings encoder_decoder heads inputs layers",
    "led": "decoder encoder heads model names parts",
    "longformer": "heads inputs layers names",
    "longt5": "decoder encoder encoder_model model names parts",
    "pegasus_x": "decoder encoder generation model names parts",
}
_HEADS = "classification keyphrases language_model question_answering selection"
MOVED = {
    **{
        f"etcmodel.models.{system}.{part}": f"etcmodel.models.{system}.modeling"
        for system, parts in _PARTS.items()
        for part in parts.split()
    },
    **{f"etcmodel.models.heads.{head}": "etcmodel.models.heads.of_etc" for head in _HEADS.split()},
    "etcmodel.models.lamb_optimizer": "etcmodel.training.release_optimizers",
    "etcmodel.models.longformer.windows": "etcmodel.models.longformer.config",
    "etcmodel.models.longformer_char_lm.presets": "etcmodel.models.longformer_char_lm.config",
    "etcmodel.layers.tracked_lambda": "etcmodel.layers.helpers",
    "etcmodel.layers.attention.pieces": "etcmodel.layers.attention.fused",
    "etcmodel.layers.attention.qkv_local": "etcmodel.layers.attention.qkv",
    "etcmodel.layers.attention.relative_window": "etcmodel.layers.attention.sliding_window",
    "etcmodel.layers.relative_transformer": "etcmodel.layers.transformer",
    "etcmodel.models.heads.encoder_with_head": "etcmodel.models.heads.base",
    "etcmodel.models.heads.labelled": "etcmodel.models.heads.base",
    "etcmodel.models.optimization": "etcmodel.training.release_optimizers",
    "etcmodel.models.seq2seq.token_stack": "etcmodel.models.seq2seq.model",
    "etcmodel.training.bert_adam": "etcmodel.training.optimizer",
    "etcmodel.training.progress_bar": "etcmodel.progress_bar",
    "etcmodel.training.schedules": "etcmodel.training.optimizer",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of `MOVED`, after all others have been asked."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns what stands here under the name.
        sys.modules[module.__name__] = importlib.import_module(MOVED[module.__name__])


def install() -> None:
    """Lets modules be imported by the names of `MOVED`, too."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
