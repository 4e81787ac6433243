"""Extended Transformer Construction (ETC) for TensorFlow 2: long and structured inputs.

`etcmodel.EtcConfig`, `etcmodel.EtcModel`, `etcmodel.from_pretrained` … are imported at first use,
so that programs that only prepare data do not wait for TensorFlow.
"""

import sys

from etcmodel import lazy_imports, models, moved_modules, onednn, program_start, quiet

_LOADERS = ("from_pretrained", "load_pretrained", "save_pretrained")
# In `etcmodel.models` alone.
_PARTS = ("HeadModel", "best_phrases", "best_spans", "embed", "pool")
_HOMES = {
    **{name: home for name, home in models.HOMES.items() if name not in _PARTS},
    "BigBirdProcessor": "etcmodel.text.bigbird_processor",
    "EtcProcessor": "etcmodel.text.processor",
    "GmatProcessor": "etcmodel.text.gmat_processor",
    "GmatSeq2SeqProcessor": "etcmodel.text.gmat_seq2seq_processor",
    "LongformerProcessor": "etcmodel.text.longformer_processor",
    "ModernBertProcessor": "etcmodel.text.modernbert_processor",
    "Seq2SeqProcessor": "etcmodel.text.seq2seq_processor",
    "TextEncoder": "etcmodel.checkpoints.text_encoder",
    **dict.fromkeys(_LOADERS, "etcmodel.checkpoints"),
}

__all__ = [*_HOMES]  # noqa: PLE0604
__version__ = "0.1.0"
# Not among the names above: it needs Keras 3, which `import *` does not.
__getattr__ = lazy_imports.attributes(__name__, {**_HOMES, "keras3": "keras3"})

moved_modules.install()
onednn.prefer()
if sys.argv[:1] == ["-m"] and any(arg.startswith(__name__) for arg in sys.orig_argv):
    # One of this package's programs is being started.
    program_start.begin()
else:
    quiet.quiet_tensorflow(is_program=False)
