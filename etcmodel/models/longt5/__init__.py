"""LongT5 (Guo et al. 2022): ETC's local attention with T5's biases, and T5's decoder.

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import System, homes

_HOMES = homes(__name__, LongT5Encoder="modeling")

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
SYSTEMS = (
    System(
        config_class="etcmodel.models.longt5.config:LongT5Config",
        encoder_class="etcmodel.models.longt5.modeling:LongT5Model",
        scope="longt5",
        weights="etcmodel.models.longt5.modeling:WEIGHTS",
        seq2seq_classes=(
            "etcmodel.models.longt5.modeling:LongT5Model",
            "etcmodel.models.longt5.modeling:LongT5EncoderModel",
        ),
        processor="etcmodel.text.seq2seq_processor:Seq2SeqProcessor",
        classifier="etcmodel.models.longt5.modeling:longt5_classifier",
        own_tokens=("extra_ids", "extra_ids", 100),
        inner_encoder="etcmodel.models.longt5.modeling:LongT5Encoder",
        watched="etcmodel.inspection.attention:of_tokens_first",
        small={
            "vocab_size": 128,
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 128,
            "num_layers": 2,
            "num_heads": 4,
            "local_radius": 31,
            "encoder_attention_type": "transient-global",
        },
    ),
)
