"""LongT5 (Guo et al. 2022): ETC's local attention with T5's biases, and T5's decoder."""

from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.longt5.encoder import LongT5Encoder
from etcmodel.models.longt5.encoder_model import LongT5EncoderModel
from etcmodel.models.longt5.model import LongT5Model

__all__ = ["LongT5Config", "LongT5Encoder", "LongT5EncoderModel", "LongT5Model"]
