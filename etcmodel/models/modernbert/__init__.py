"""ModernBERT (Warner et al. 2024, arXiv:2412.13663): windows, full attention, rotary positions.

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import SMALL_BERT, System, homes

_HOMES = homes(__name__, EtcModernBertModel="global_local")

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
_SMALL = {**SMALL_BERT, "num_hidden_layers": 4, "local_attention": 32, "pad_token_id": 0}
SYSTEMS = (
    System(
        config_class="etcmodel.models.modernbert.config:ModernBertConfig",
        encoder_class="etcmodel.models.modernbert.modeling:ModernBertModel",
        scope="modernbert",
        weights="etcmodel.models.modernbert.modeling:WEIGHTS",
        processor="etcmodel.text.modernbert_processor:ModernBertProcessor",
        classifier="etcmodel.models.sequence_classifiers:modernbert_classifier",
        span_reader="etcmodel.models.span_readers:ModernBertSpanReader",
        tagger="etcmodel.models.token_classifiers:ModernBertTagger",
        masked_lm="etcmodel.models.modernbert.modeling:ModernBertForMaskedLM",
        # For going on from a checkpoint. Masks, decay and the second moment are those of Warner et
        # al. 2024 for the base model; the rest is plain: theirs is for 2 trillion tokens.
        pretraining={
            "optimizer": "adamw",
            "learning_rate": 5e-5,
            "weight_decay_rate": 1e-5,
            "adam_beta_2": 0.98,
            "mlm_share": 0.3,
            "train_batch_size": 64,
            "num_train_epochs": 3.0,
        },
        watched="etcmodel.inspection.attention:of_tokens_first",
        has_layer_rates=True,
        small=_SMALL,
    ),
    System(
        config_class="etcmodel.models.modernbert.config:EtcModernBertConfig",
        encoder_class="etcmodel.models.modernbert.global_local:EtcModernBertModel",
        scope="etc_modernbert",
        protocol="etcmodel.models.encoders:GlobalLocalEncoder",
        weights="etcmodel.models.modernbert.global_local:WEIGHTS",
        classifier="etcmodel.models.sequence_classifiers:etc_classifier",
        span_reader="etcmodel.models.span_readers:etc_span_reader",
        tagger="etcmodel.models.token_classifiers:EtcTagger",
        watched="etcmodel.inspection.attention:of_etc_modernbert",
        has_layer_rates=True,
        small={**_SMALL, "cls_token_id": 2},
    ),
)
