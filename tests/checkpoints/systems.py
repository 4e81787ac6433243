"""Every system whose weights are read, as a small folder: add a new one to `SYSTEMS`."""

import functools
import shutil
from collections.abc import Callable, Mapping
from typing import NamedTuple

import etcmodel
from etcmodel import checkpoints
from etcmodel.models.gmat import GmatForMaskedLM
from etcmodel.models.longt5 import LongT5EncoderModel
from tests.checkpoints import berts, longformers
from tests.checkpoints.tensor_files import rewrite
from tests.models import head_cases
from tests.models.bigbird import small as bigbird_models
from tests.models.bigbird_pegasus import models as bigbird_pegasus_models
from tests.models.gmat import genbert
from tests.models.gmat import small as gmat_models
from tests.models.led import models as led_models
from tests.models.longformer_char_lm import char_models
from tests.models.longt5 import models as longt5_models
from tests.models.modernbert import small as modernberts
from tests.models.pegasus_x import models as pegasus_models
from tests.reference import cases

LIFTED = cases.topic_folder("longformer") / "lift"


class System(NamedTuple):
    """How a folder of a system is made and read.

    Attributes:
        write: function that makes it at a path.
        weight: name in the file of an array that becomes a weight.
        copies: dict of names to those of which they are copies, in the file: of all arrays that
            files may have beside those that the model needs.
        load: function that reads the folder.
        model_type: str, as it is registered; None for what another system's is lifted into.
    """

    write: Callable
    weight: str
    copies: Mapping = {}
    load: Callable = etcmodel.from_pretrained
    model_type: str | None = None


def _saved(make):
    return lambda folder: etcmodel.save_pretrained(make(), folder)


def _bert(folder):
    berts.write_folder(folder, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef"))
    rewrite(folder, lambda tensors: tensors.update(berts.masked_lm_weights()))


def _longformer(folder):
    longformers.write(folder, longformers.masked_lm())


def _reference(name):
    def write(folder):
        folder.mkdir()
        for path in sorted((LIFTED / name).glob("*.*")):
            shutil.copyfile(path, folder / path.name)

    return write


def _tables(table, prefix=""):
    names = (f"{prefix}encoder.embed_tokens", f"{prefix}decoder.embed_tokens", "lm_head")
    return {f"{name}.weight": table for name in names}


def _head(table, bias, prefix):
    return {f"{prefix}.decoder.weight": table, f"{prefix}.decoder.bias": bias}


_OF_LONGFORMER = _head(
    "longformer.embeddings.word_embeddings.weight", "lm_head.bias", prefix="lm_head"
)
_OF_ROBERTA = _head("roberta.embeddings.word_embeddings.weight", "lm_head.bias", prefix="lm_head")
_OF_BERT = _head(
    "bert.embeddings.word_embeddings.weight", "cls.predictions.bias", prefix="cls.predictions"
)
_OF_LED = _tables("led.shared.weight", prefix="led.")
_OF_LONGT5 = _tables("shared.weight")
_IN_BERT = "bert.encoder.layer.1.output.dense.weight"
_IN_ROBERTA = "roberta.encoder.layer.1.output.dense.bias"
_IN_LONGT5 = "encoder.block.1.layer.1.DenseReluDense.wo.weight"
_lift_to_gmat = functools.partial(
    checkpoints.lift_to_gmat, as_class=GmatForMaskedLM, num_memory_tokens=2
)
_lift_modernbert = functools.partial(  # Labels begin at random.
    checkpoints.lift_modernbert, relative_vocab_size=None, relative_pos_max_distance=0
)

_bigbird = _saved(lambda: etcmodel.BigBirdForMaskedLM(bigbird_models.config()))
_longt5 = _saved(longt5_models.model)

SYSTEMS = {
    "ETC": System(
        _saved(functools.partial(head_cases.make, "masked")),
        "etc_document_bert/long_emb_layer_norm/gamma",
        {"mlm/embedding_table": "etc_document_bert/token_emb_lookup/embedding_table"},
        model_type="etc",
    ),
    "GMAT": System(
        _saved(lambda: GmatForMaskedLM(gmat_models.config())),
        "gmat/embeddings/position_embeddings/embedding_table",
        {"mlm/embedding_table": "gmat/embeddings/word_embeddings/embedding_table"},
        model_type="gmat",
    ),
    "GMAT, encoder and decoder": System(
        _saved(genbert.model), "logits_bias", model_type="gmat_seq2seq"
    ),
    "BigBird": System(
        _bigbird,
        _IN_BERT,
        _OF_BERT,
        model_type="big_bird",
    ),
    "BigBird, the encoder": System(
        _bigbird,
        "bert.embeddings.LayerNorm.bias",
        _OF_BERT,
        etcmodel.BigBirdModel.from_pretrained,
    ),
    "BigBird-Pegasus": System(
        _saved(bigbird_pegasus_models.model),
        "model.decoder.layers.1.fc1.weight",
        _tables("model.shared.weight", prefix="model."),
        model_type="bigbird_pegasus",
    ),
    "Longformer": System(
        _longformer,
        "longformer.encoder.layer.1.output.dense.weight",
        _OF_LONGFORMER,
        model_type="longformer",
    ),
    "Longformer, the encoder": System(
        _longformer,
        "longformer.embeddings.LayerNorm.bias",
        _OF_LONGFORMER,
        etcmodel.LongformerModel.from_pretrained,
    ),
    "ModernBERT": System(
        _saved(lambda: etcmodel.ModernBertForMaskedLM(modernberts.config())),
        "model.layers.1.mlp.Wo.weight",
        model_type="modernbert",
    ),
    "ModernBERT with ETC's structure": System(
        _saved(modernberts.etc_model), "layers.1.attn.long_labels.emb", model_type="etc_modernbert"
    ),
    "ModernBERT into ETC's structure": System(
        _saved(lambda: modernberts.model(cls_token_id=2)),
        "layers.1.mlp.Wo.weight",
        load=_lift_modernbert,
    ),
    "Longformer of characters": System(
        _saved(char_models.model),
        "longformer_char_lm/embeddings/embedding_table",
        model_type="longformer_char_lm",
    ),
    "LED": System(
        _saved(led_models.model), "led.decoder.layers.1.fc1.weight", _OF_LED, model_type="led"
    ),
    "LongT5": System(
        _longt5,
        _IN_LONGT5,
        {name: table for name, table in _OF_LONGT5.items() if name != "lm_head.weight"},
        model_type="longt5",
    ),
    "LongT5, the encoder": System(
        _longt5,
        _IN_LONGT5,
        {name: table for name, table in _OF_LONGT5.items() if name != "lm_head.weight"},
        LongT5EncoderModel.from_pretrained,
    ),
    "PEGASUS-X": System(
        _saved(pegasus_models.model),
        "model.decoder.layers.1.fc1.weight",
        _tables("model.shared.weight", prefix="model."),
        model_type="pegasus_x",
    ),
    "BERT into ETC": System(_bert, _IN_BERT, _OF_BERT),
    "RoBERTa into ETC": System(_reference("roberta"), _IN_ROBERTA, _OF_ROBERTA),
    "BERT into GMAT": System(_bert, _IN_BERT, _OF_BERT, _lift_to_gmat),
    "RoBERTa into GMAT": System(_reference("roberta"), _IN_ROBERTA, _OF_ROBERTA, _lift_to_gmat),
    "RoBERTa into Longformer": System(
        _reference("roberta"), _IN_ROBERTA, _OF_ROBERTA, checkpoints.lift_roberta
    ),
    "BERT into Longformer": System(_bert, _IN_BERT, _OF_BERT, checkpoints.lift),
    "RoBERTa into BigBird": System(
        _reference("roberta"),
        _IN_ROBERTA,
        _OF_ROBERTA,
        functools.partial(checkpoints.lift, into="big_bird"),
    ),
    "BART into LED": System(
        _reference("bart"),
        "model.encoder.layers.0.fc1.bias",
        _tables("model.shared.weight", prefix="model."),
        functools.partial(checkpoints.lift_bart, max_length=40),
    ),
}
