"""Folders of tiny models of every system, and what a folder gives when it is read."""

import dataclasses
import json
import shutil
from collections.abc import Callable

import numpy as np
import tensorflow as tf

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import writing
from etcmodel.models import encoders, gmat, heads, longformer
from etcmodel.models.led import LedForQuestionAnswering
from etcmodel.models.seq2seq import generation_config
from etcmodel.text.gmat_processor import GmatProcessor
from etcmodel.text.processor import EtcProcessor
from etcmodel.tools.demos import numerical_reasoning
from tests.checkpoints import berts, tensor_files
from tests.models.gmat import small as gmats
from tests.models.led import models as leds
from tests.models.longformer import small as longformers
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs
from tests.reference import cases
from tests.soak.whole_files import FIXTURES

__all__ = ["SYSTEMS", "System", "make", "read", "same"]

WORDS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "river", "is", "long", "##s", "a"),
    *(".",),
]
TEXT = "The rivers is long. A river is the long."
BYTE_LEVEL = cases.topic_folder("longformer") / "tokenizer"
PIECES = FIXTURES.parent / "sentence_pieces" / "spiece.model"
SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
}
DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@dataclasses.dataclass(frozen=True)
class System:
    """A model's folder.

    Attributes:
        make: function of a new folder, which writes the model.
        load: function of a folder that returns the model.
        example: what the processor reads.
    """

    make: Callable
    load: Callable = etcmodel.from_pretrained
    example: object = TEXT


def _randomized(model):
    with tf.name_scope(model.name):
        model.build(None)
    rng = np.random.default_rng(0)
    for variable in model.weights:
        center = float("gamma" in variable.name or len(variable.shape) < 1)
        variable.assign(rng.normal(center, 0.3, variable.shape))
    return model


def _vocab(folder, words=WORDS):
    path = folder / "vocab.txt"
    path.write_text("\n".join(words) + "\n", encoding="utf-8")
    return str(path)


def _byte_level(folder, names=("vocab.json", "merges.txt")):
    for name in names:
        shutil.copyfile(BYTE_LEVEL / name, folder / name)
    entries = {"add_prefix_space": False, "model_max_length": 40}
    (folder / "tokenizer_config.json").write_text(json.dumps(entries))


def _num_byte_level():
    return len(json.loads((BYTE_LEVEL / "vocab.json").read_text(encoding="utf-8")))


def _change(folder, name, **entries):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def _etc_config(**changes):
    sizes = {**SIZES, **DROPOUT, "vocab_size": len(WORDS), "local_radius": 4}
    labels = {"relative_pos_max_distance": 4, "relative_vocab_size": 16}
    return etcmodel.EtcConfig(**{**sizes, **labels, **changes})


def _etc(folder):
    model = _randomized(etcmodel.EtcModel(_etc_config(share_feed_forward_params=False)))
    model.save_pretrained(folder, EtcProcessor(_vocab(folder), max_long_len=40))


def _etc_head(folder):
    names = ("cites", "follows")
    model = _randomized(
        heads.EtcForSequenceClassification(_etc_config(), num_labels=3, relation_names=names)
    )
    model.save_pretrained(folder, EtcProcessor(_vocab(folder), relation_names=names))


def _etc_of_release(folder):
    config = _etc_config(num_hidden_layers=1)
    model = _randomized(encoders.build_encoder(config))
    values = {name: v.numpy() for name, v in checkpoints.release_names(model).items()}
    writing.write(values, str(folder), "released", config=config)
    _vocab(folder)


_BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": berts.VOCAB,
    "type_vocab_size": berts.TYPES,
    "max_position_embeddings": berts.POSITIONS,
    **SIZES,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.8.2",
}


def _bert(folder):
    berts.write_safetensors(folder, berts.hugging_face_weights(prefix="bert."))
    (folder / "config.json").write_text(json.dumps(_BERT))
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "unk_token": "[UNK]"}')
    _vocab(folder, WORDS[: berts.VOCAB])


def _original_bert(folder):
    weights = berts.original_weights(berts.hugging_face_weights(prefix="bert."))
    berts.write_released(folder, weights, "bert_model.ckpt")
    names = ("vocab_size", "type_vocab_size", "max_position_embeddings", "hidden_act", *SIZES)
    (folder / "bert_config.json").write_text(json.dumps({name: _BERT[name] for name in names}))
    _vocab(folder, WORDS[: berts.VOCAB])


def _roberta(folder):
    changes = {"vocab_size": _num_byte_level(), "max_position_embeddings": 42}
    weights = berts.hugging_face_weights(prefix="roberta.", positions=42, types=1)
    name, rng = "roberta.embeddings.word_embeddings.weight", np.random.default_rng(0)
    weights[name] = rng.normal(size=[_num_byte_level(), berts.HIDDEN]).astype(np.float32)
    head = {
        "lm_head.dense.weight": [8, 8],
        "lm_head.dense.bias": [8],
        "lm_head.layer_norm.weight": [8],
        "lm_head.layer_norm.bias": [8],
        "lm_head.bias": [_num_byte_level()],
    }
    weights |= {key: rng.normal(size=size).astype(np.float32) for key, size in head.items()}
    berts.write_safetensors(folder, weights)
    own = {"model_type": "roberta", "type_vocab_size": 1, "pad_token_id": 1}
    entries = {**_BERT, **changes, **own, "architectures": ["RobertaForMaskedLM"]}
    (folder / "config.json").write_text(json.dumps(entries))
    _byte_level(folder)


def _longformer_config():
    return longformers.config(vocab_size=_num_byte_level(), max_position_embeddings=60)


def _longformer(folder):
    _randomized(longformer.LongformerForMaskedLM(_longformer_config())).save_pretrained(folder)
    _byte_level(folder)


def _longformer_head(folder):
    model = longformer.LongformerForSequenceClassification(_longformer_config(), num_labels=3)
    _randomized(model).save_pretrained(folder)
    labels = {"a": 0, "b": 1, "c": 2}
    _change(folder, "config.json", id2label={v: k for k, v in labels.items()}, label2id=labels)
    # As version 5 of Hugging Face's library writes it.
    tokenizer = etcmodel.from_pretrained(_with_merges(folder)).processor.tokenizer
    (folder / "tokenizer.json").write_text(tokenizer._tokenizer.to_str())
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()


def _with_merges(folder):
    _byte_level(folder)
    return folder


def _keras(folder):
    shutil.copytree(FIXTURES.parent / "keras_h5" / "longformer", folder, dirs_exist_ok=True)
    (folder / "outputs.npz").unlink()


def _led(folder):
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "attention_window": 4}
    model = leds.model(vocab_size=_num_byte_level(), **sizes)
    model.save_pretrained(folder)
    _byte_level(folder)
    entries = {"num_beams": 2, "max_length": 9, "eos_token_id": 2, "decoder_start_token_id": 2}
    (folder / "generation_config.json").write_text(json.dumps(entries))


def _led_reader(folder):
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "attention_window": 4}
    model = leds.model(LedForQuestionAnswering, vocab_size=_num_byte_level(), **sizes)
    model.save_pretrained(folder)
    _byte_level(folder)


def _longt5(folder):
    longt5s.model(vocab_size=190, num_layers=1).save_pretrained(folder)
    shutil.copyfile(PIECES, folder / "spiece.model")
    (folder / "tokenizer_config.json").write_text('{"extra_ids": 100, "eos_token": "</s>"}')
    entries = {"max_new_tokens": 9, "do_sample": False, "length_penalty": 0.8}
    (folder / "generation_config.json").write_text(json.dumps(entries))


def _longt5_in_parts(folder):
    _longt5(folder)
    tensor_files.split(folder)


def _pegasus_x(folder):
    sizes = {"encoder_layers": 1, "decoder_layers": 1}
    pegasus_xs.model(vocab_size=193, **sizes).save_pretrained(folder)
    shutil.copyfile(PIECES, folder / "spiece.model")


def _gmat(folder):
    config = gmats.config(vocab_size=len(WORDS), num_hidden_layers=1, type_vocab_size=2)
    model = _randomized(gmat.GmatForSequenceClassification(config, num_labels=2))
    model.save_pretrained(folder, GmatProcessor(_vocab(folder), max_length=20))


def _gmat_seq2seq(folder):
    words = numerical_reasoning.vocabulary()
    tokens = {"decoder_start_token_id": words.index("@"), "eos_token_id": words.index("\\")}
    config = gmats.config(num_hidden_layers=1, vocab_size=len(words))
    config = etcmodel.GmatSeq2SeqConfig.of_encoder(config, **tokens)
    _randomized(etcmodel.GmatForConditionalGeneration(config)).save_pretrained(folder)
    _vocab(folder, words)


SYSTEMS = {
    "etc": System(_etc),
    "etc with a head": System(_etc_head),
    "etc of the release": System(_etc_of_release),
    "bert": System(_bert),
    "original bert": System(_original_bert),
    "roberta": System(_roberta),
    "roberta as a longformer": System(
        _roberta, lambda folder: checkpoints.lift_roberta(folder, max_length=40, attention_window=4)
    ),
    "bert as a gmat": System(
        _bert, lambda folder: checkpoints.lift_to_gmat(folder, chunk_size=4, num_memory_tokens=0)
    ),
    "longformer": System(_longformer),
    "longformer with a head": System(_longformer_head),
    "longformer of keras": System(_keras),
    "led": System(_led),
    "led that finds answers": System(_led_reader),
    "longt5": System(_longt5),
    "longt5 in parts": System(_longt5_in_parts),
    "pegasus_x": System(_pegasus_x),
    "gmat": System(_gmat),
    "gmat seq2seq": System(_gmat_seq2seq),
}


def make(name, folder):
    """Writes the folder of a system."""
    folder.mkdir()
    SYSTEMS[name].make(folder)


def read(name, folder, batch=None):
    """What a folder gives: dict of names to arrays, and to what is compared as it is.

    Args:
        name: str. Of `SYSTEMS`.
        folder: path.
        batch: dict of arrays that the model reads; None for one of its own processor.
    """
    system = SYSTEMS[name]
    model = system.load(str(folder))
    processor = getattr(model, "processor", None)
    found = {"class": type(model).__name__, "batch": _batch(processor, system.example)}
    if batch is None:
        batch = found["batch"] or {"input_ids": np.array([[5, 3, 7, 4, 6]])}
    found["outputs"] = _outputs(model, batch)
    if hasattr(model, "settings"):
        found["settings"] = json.dumps(model.settings(), sort_keys=True, default=str)
    if hasattr(model, "generation_config"):
        settings = generation_config.settings_of({}, model.config, model.generation_config)
        found["generation"] = str(settings)
    return found


def _batch(processor, example):
    """The arrays of an example; None if there is no processor, which says so when it is asked."""
    try:
        batch = None if processor is None else processor(example)
    except ValueError as error:
        if "has no processor" not in str(error):
            raise
        return None
    return batch and {name: np.asarray(value) for name, value in batch.items()}


def _outputs(model, batch):
    ids = tf.constant(batch.get("input_ids", batch.get("token_ids")))
    if hasattr(model, "generate") or hasattr(model, "decoder"):
        found = model(ids, decoder_input_ids=ids[:, :3])
    elif isinstance(model, etcmodel.EtcModel):
        found = model(**model.structure(ids))
    elif "token_ids" in batch:
        found = model({name: tf.constant(value) for name, value in batch.items()})
    else:
        found = model(ids)
    found = [x for x in tf.nest.flatten(found) if x is not None]
    return [np.asarray(x, np.float64) for x in found]


def same(one, other, tolerance=1e-6):
    """The names of what differs between two results of `read`: list of str."""
    return [name for name in sorted({*one, *other}) if not _equal(one, other, name, tolerance)]


def _equal(one, other, name, tolerance):
    if (name in one) != (name in other):
        return False
    first, second = (tf.nest.flatten(x[name]) for x in (one, other))
    return len(first) == len(second) and all(
        (np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=tolerance, atol=tolerance))
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        else type(a) is type(b) and a == b
        for a, b in zip(first, second, strict=True)
    )
