"""An example of each kind that a processor reads, and a processor and a config for all of them."""

import string

import tf_keras

from etcmodel.models import heads, longformer, modeling
from etcmodel.text.processor import EtcProcessor
from tests.models import etcs

RELATIONS = (
    *("part_of", "row", "column", "header", "under", "link", "mentions"),
    *("father", "sister"),
)
PAGE = """<h1 id=wey>The Wey</h1><p>It joins the <a href="#th">Thames</a>.</p>
<h2 id=th>Thames</h2><ul><li>Long<li>See <a href="#wey">the Wey</a></ul>"""
EXAMPLES = {
    "text": "The Wey is a river. It rises in Hampshire.",
    "documents": {
        "question": "Who wrote Emma?",
        "documents": [{"title": "Emma", "text": "A novel. By Jane."}, "Anne was born."],
    },
    "sections": {
        "title": "Emma",
        "sections": [{"title": "One", "paragraphs": ["It was long. She sat.", ["She rose."]]}],
    },
    "table": {
        "question": "How long?",
        "table": {"header": ["name", "km"], "rows": [["Wey", 140], ["Thames", 346]]},
    },
    "html": {"html": PAGE},
    "graph": {
        "nodes": {"jane": "Jane", "anne": "Anne", "george": "George"},
        "edges": [["jane", "anne", "sister"], ["jane", "george", "father"]],
    },
}


def processor(folder, **settings):
    """A processor whose tokens are letters and digits."""
    path = folder / "vocab.txt"
    characters = string.ascii_lowercase + string.digits
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[GLOBAL]", *string.punctuation, *characters]
    path.write_text("\n".join([*words, *(f"##{x}" for x in characters)]), encoding="utf-8")
    return EtcProcessor(str(path), **{"relation_names": RELATIONS, **settings})


def longformer_config(processor, **changes):
    entries = {
        "vocab_size": len(processor.vocabulary),
        **etcs.sizes(intermediate_size=8),
        "attention_window": 4,
        "max_position_embeddings": 100,
    }
    return longformer.LongformerConfig(**{**entries, **changes})


def config(processor, **changes):
    entries = {
        "vocab_size": len(processor.vocabulary),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "local_radius": 6,
        "intermediate_size": 32,
        "relative_pos_max_distance": 4,
        "relative_vocab_size": 24,
        "initializer_range": 0.3,
    }
    return modeling.EtcConfig(**{**entries, **changes})


def classifier(processor, *, loss=None, is_eager=True, **settings):
    """A compiled classifier with one layer, without dropout, of weights that are always the same.

    Args:
        is_eager: bool. Tracing takes longer than all that is computed of a few texts.
        **settings: of `EtcForSequenceClassification`; of Longformer's with `problem_type`.
    """
    tf_keras.utils.set_random_seed(1)
    if settings.get("problem_type"):
        made = longformer.LongformerForSequenceClassification(
            longformer_config(processor), **settings
        )
    else:
        of_one_layer = config(processor, num_hidden_layers=1, **etcs.NO_DROPOUT)
        made = heads.EtcForSequenceClassification(of_one_layer, **settings)
    made.compile(tf_keras.optimizers.SGD(0.1), loss=loss, run_eagerly=is_eager)
    made.processor = processor
    return made
