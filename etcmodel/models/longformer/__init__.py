"""Longformer (Beltagy et al. 2020, arXiv:2004.05150): sliding windows and global tokens.

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import SMALL_BERT, System, homes

_HOMES = homes(__name__)

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
SYSTEMS = (
    System(
        config_class="etcmodel.models.longformer.config:LongformerConfig",
        encoder_class="etcmodel.models.longformer.modeling:LongformerModel",
        scope="longformer",
        weights="etcmodel.models.longformer.modeling:WEIGHTS",
        processor="etcmodel.text.longformer_processor:LongformerProcessor",
        classifier="etcmodel.models.sequence_classifiers:longformer_classifier",
        span_reader="etcmodel.models.span_readers:LongformerSpanReader",
        tagger="etcmodel.models.token_classifiers:LongformerTagger",
        lift={"attention_window": 512},
        masked_lm="etcmodel.models.longformer.modeling:LongformerForMaskedLM",
        # Beltagy et al. 2020, section 5: 65,000 updates, the first 500 of them warm-up.
        pretraining={
            "optimizer": "adamw",
            "learning_rate": 3e-5,
            "poly_power": 3.0,
            "warmup_proportion": 500 / 65_000,
            "train_batch_size": 64,
            "num_train_epochs": 3.0,
        },
        observed="etcmodel.inspection.observed:of_longformer",
        has_layer_rates=True,
        small={**SMALL_BERT, "max_position_embeddings": 512, "attention_window": 32},
    ),
)
