"""PEGASUS-X (Phang et al. 2022): staggered blocks, global tokens, and PEGASUS's decoder.

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import SMALL_BART, System, homes

_HOMES = homes(__name__, PegasusXEncoder="modeling")

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
SYSTEMS = (
    System(
        config_class="etcmodel.models.pegasus_x.config:PegasusXConfig",
        encoder_class="etcmodel.models.pegasus_x.modeling:PegasusXModel",
        scope="pegasus_x",
        weights="etcmodel.models.pegasus_x.modeling:WEIGHTS",
        seq2seq_classes=(
            "etcmodel.models.pegasus_x.modeling:PegasusXForConditionalGeneration",
            "etcmodel.models.pegasus_x.modeling:PegasusXModel",
        ),
        processor="etcmodel.text.seq2seq_processor:Seq2SeqProcessor",
        own_tokens=("id_offset", "offset", 103),
        inner_encoder="etcmodel.models.pegasus_x.modeling:PegasusXEncoder",
        watched="etcmodel.inspection.attention:of_tokens_first",
        small={**SMALL_BART, "num_global_tokens": 8, "block_size": 32},
    ),
)
