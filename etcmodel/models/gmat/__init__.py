"""GMAT (Gupta and Berant 2020, arXiv:2006.03274): chunks of text that share a global memory.

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import SMALL_BERT, System, homes

_HOMES = homes(__name__)

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
_SMALL = {**SMALL_BERT, "chunk_size": 64, "num_memory_tokens": 8}
SYSTEMS = (
    System(
        config_class="etcmodel.models.gmat.config:GmatConfig",
        encoder_class="etcmodel.models.gmat.modeling:GmatModel",
        scope="gmat",
        has_whole_files=True,
        processor="etcmodel.text.gmat_processor:GmatProcessor",
        classifier="etcmodel.models.sequence_classifiers:gmat_classifier",
        span_reader="etcmodel.models.span_readers:GmatSpanReader",
        tagger="etcmodel.models.token_classifiers:GmatTagger",
        masked_lm="etcmodel.models.gmat.modeling:GmatForMaskedLM",
        # Gupta and Berant 2020, table 10: 16 instances of 512 tokens, four of them a window.
        pretraining={
            "optimizer": "bert_adam",
            "learning_rate": 2e-5,
            "warmup_proportion": 0.001,
            "train_batch_size": 4,
            "num_train_epochs": 5.0,
        },
        observed="etcmodel.inspection.observed:of_gmat",
        has_layer_rates=True,
        small=_SMALL,
    ),
    System(
        config_class="etcmodel.models.gmat.config:GmatSeq2SeqConfig",
        encoder_class="etcmodel.models.gmat.modeling:GmatForConditionalGeneration",
        scope="gmat_seq2seq",
        weights="etcmodel.models.gmat.modeling:SEQ2SEQ_WEIGHTS",
        seq2seq_classes=("etcmodel.models.gmat.modeling:GmatForConditionalGeneration",),
        processor="etcmodel.text.gmat_seq2seq_processor:GmatSeq2SeqProcessor",
        inner_encoder="etcmodel.models.gmat.modeling:GmatModel",
        small=_SMALL,
    ),
)
