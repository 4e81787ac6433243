"""BigBird-Pegasus (Zaheer et al. 2020): BigBird's attention in PEGASUS's encoder, and its decoder.

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import SMALL_BART, System, homes

_HOMES = homes(__name__, BigBirdPegasusEncoder="modeling")

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
SYSTEMS = (
    System(
        config_class="etcmodel.models.bigbird_pegasus.config:BigBirdPegasusConfig",
        encoder_class="etcmodel.models.bigbird_pegasus.modeling:BigBirdPegasusModel",
        scope="bigbird_pegasus",
        weights="etcmodel.models.bigbird_pegasus.modeling:WEIGHTS",
        seq2seq_classes=(
            "etcmodel.models.bigbird_pegasus.modeling:BigBirdPegasusForConditionalGeneration",
            "etcmodel.models.bigbird_pegasus.modeling:BigBirdPegasusForQuestionAnswering",
            "etcmodel.models.bigbird_pegasus.modeling:BigBirdPegasusModel",
        ),
        processor="etcmodel.text.seq2seq_processor:Seq2SeqProcessor",
        own_tokens=("id_offset", "offset", 0),
        inner_encoder="etcmodel.models.bigbird_pegasus.modeling:BigBirdPegasusEncoder",
        small={**SMALL_BART, "max_position_embeddings": 512, "block_size": 16},
    ),
)
