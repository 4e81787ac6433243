"""LED, the Longformer Encoder-Decoder (Beltagy et al. 2020, arXiv:2004.05150, section 7).

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import SMALL_BART, System, homes

_HOMES = homes(__name__)

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
SYSTEMS = (
    System(
        config_class="etcmodel.models.led.config:LedConfig",
        encoder_class="etcmodel.models.led.modeling:LedModel",
        scope="led",
        weights="etcmodel.models.led.modeling:WEIGHTS",
        seq2seq_classes=(
            "etcmodel.models.led.modeling:LedForConditionalGeneration",
            "etcmodel.models.led.modeling:LedForQuestionAnswering",
            "etcmodel.models.led.modeling:LedModel",
        ),
        processor="etcmodel.text.longformer_processor:LongformerProcessor",
        inner_encoder="etcmodel.models.led.modeling:LedEncoder",
        observed="etcmodel.inspection.observed:of_led",
        small={
            **SMALL_BART,
            "max_encoder_position_embeddings": 512,
            "max_decoder_position_embeddings": 512,
            "attention_window": 32,
        },
    ),
)
