"""LongT5 (Guo et al. 2022): ETC's local attention with T5's biases, and T5's decoder."""

from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.longt5.modeling import LongT5Encoder, LongT5EncoderModel, LongT5Model
from etcmodel.models.systems import System

__all__ = ["LongT5Config", "LongT5Encoder", "LongT5EncoderModel", "LongT5Model"]
SYSTEMS = (
    System(
        config_class="etcmodel.models.longt5.config:LongT5Config",
        encoder_class="etcmodel.models.longt5.modeling:LongT5Model",
        scope="longt5",
        seq2seq_classes=(
            "etcmodel.models.longt5.modeling:LongT5Model",
            "etcmodel.models.longt5.modeling:LongT5EncoderModel",
        ),
        processor="etcmodel.text.seq2seq_processor:Seq2SeqProcessor",
        own_tokens=("extra_ids", "extra_ids", 100),
        inner_encoder="etcmodel.models.longt5.modeling:LongT5Encoder",
    ),
)
