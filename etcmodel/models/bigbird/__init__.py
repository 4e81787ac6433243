"""BigBird (Zaheer et al. 2020, arXiv:2007.14062): windows of blocks, global and random blocks.

The names here are imported at first use.
"""

from etcmodel import lazy_imports
from etcmodel.models.systems import SMALL_BERT, System, homes

_HOMES = homes(__name__)

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
SYSTEMS = (
    System(
        config_class="etcmodel.models.bigbird.config:BigBirdConfig",
        encoder_class="etcmodel.models.bigbird.modeling:BigBirdModel",
        scope="big_bird",
        weights="etcmodel.models.bigbird.modeling:WEIGHTS",
        processor="etcmodel.text.bigbird_processor:BigBirdProcessor",
        classifier="etcmodel.models.bigbird.modeling:bigbird_classifier",
        span_reader="etcmodel.models.bigbird.modeling:BigBirdSpanReader",
        tagger="etcmodel.models.token_classifiers:BigBirdTagger",
        lift={},
        masked_lm="etcmodel.models.bigbird.modeling:BigBirdForMaskedLM",
        # Zaheer et al. 2020, for the base model.
        pretraining={"optimizer": "bert_adam", "learning_rate": 1e-4, "train_batch_size": 256},
        observed="etcmodel.inspection.observed:of_bigbird",
        has_layer_rates=True,
        small={**SMALL_BERT, "max_position_embeddings": 512, "block_size": 16, "sep_token_id": 3},
    ),
)
