"""Masks are 0 and 1, as whole numbers, bools or floats; all else is refused with its value."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import feature_utils
from etcmodel.layers import (
    EmbeddingLookup,
    FusedGlobalLocalAttention,
    GlobalLocalTransformerLayers,
    QkvRelativeAttention,
    QkvRelativeLocalAttention,
    RelativeAttention,
    RelativeTransformerLayers,
)
from etcmodel.models import input_utils, modeling, multihop_utils
from etcmodel.ops import masks as masks_ops
from etcmodel.ops.structure import GlobalLocalStructure
from tests.models import etcs
from tests.models.bigbird import small as bigbirds
from tests.models.gmat import genbert
from tests.models.gmat import small as gmats
from tests.models.led import models as leds
from tests.models.longformer import small as longformers
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs

LONG, GLOBAL, RADIUS, LABELS = 5, 3, 2, 7
PIECES = {"l2l": (LONG, 2 * RADIUS + 1), "g2g": (GLOBAL,) * 2}
PIECES |= {"l2g": (LONG, GLOBAL), "g2l": (GLOBAL, LONG)}
MASKS = {f"{piece}_att_mask": np.ones((2, *shape)) for piece, shape in PIECES.items()}
IDS = {f"{piece}_relative_att_ids": np.ones((2, *shape)) for piece, shape in PIECES.items()}
IDS = {name: x.astype(np.int32) for name, x in IDS.items()}
TOKENS = {"token_ids": np.ones([2, LONG], int), "global_token_ids": np.ones([2, GLOBAL], int)}


def hidden(length):
    return np.random.default_rng(0).normal(size=[2, length, 8]).astype(np.float32)


def heads(length):
    return tf.reshape(hidden(length), [2, length, 2, 4])


def etc_model():
    config = etcs.config(
        vocab_size=20,
        local_radius=RADIUS,
        intermediate_size=8,
        relative_pos_max_distance=0,
        relative_vocab_size=LABELS,
    )
    return modeling.EtcModel(config)


def etc():
    model = etc_model()
    return lambda **given: model(**TOKENS, **given)[0], {**MASKS, **IDS}


def etc_structure():
    model = etc()[0]

    def call(**given):
        example_ids = [np.ones([2, length], int) for length in (LONG, LONG, GLOBAL)]
        return model(structure=GlobalLocalStructure(*example_ids, use_hard_g2l_mask=True, **given))

    return call, {"ignore_hard_g2l_mask": np.ones([2, GLOBAL])}


def layers_of_etc(make):
    layer = make()
    return lambda **given: layer(hidden(LONG), hidden(GLOBAL), **given)[0], {**MASKS, **IDS}


def transformer():
    return GlobalLocalTransformerLayers(
        8, 8, 2, 2, local_radius=RADIUS, relative_vocab_size=LABELS, hidden_dropout_prob=0.0
    )


def fused():
    return FusedGlobalLocalAttention(8, 8, 2, RADIUS, relative_vocab_size=LABELS)


def full(make, *inputs):
    layer, shape = make(relative_vocab_size=LABELS), (2, LONG, LONG)
    given = {"att_mask": np.ones(shape), "relative_att_ids": np.ones(shape, np.int32)}
    return lambda **given: layer(*inputs, **given), given


def local():
    layer = QkvRelativeLocalAttention(RADIUS, LABELS)
    side = {"side_keys": heads(GLOBAL), "side_values": heads(GLOBAL)}
    given = {
        "att_mask": MASKS["l2l_att_mask"],
        "side_att_mask": MASKS["l2g_att_mask"],
        "relative_att_ids": IDS["l2l_relative_att_ids"],
        "side_relative_att_ids": IDS["l2g_relative_att_ids"],
    }
    return lambda **changes: layer(*[heads(LONG)] * 3, **side, **changes), given


def embedding():
    layer = EmbeddingLookup(9, 4)
    return functools.partial(layer, np.ones([2, 3], int)), {"input_mask": np.ones([2, 3])}


def encoder(model, *names):
    ids = np.full([2, 6], 3)
    given = {name: np.ones([2, 6]) for name in names}
    return lambda **given: model(ids, **given)[0], given


def gmat():
    call, given = encoder(gmats.model(), "attention_mask")
    return call, {**given, "memory_mask": np.ones([2, 3])}


def seq2seq(model):
    ids = np.full([2, 6], 3)
    names = ("attention_mask", "decoder_attention_mask")
    given = {name: np.ones([2, 6]) for name in names}
    return lambda **given: model(ids, decoder_input_ids=ids, **given)["logits"], given


def decoder(model):
    run = functools.partial(model.decoder, np.full([2, 4], 3), np.ones([2, 6, 16], np.float32))
    return lambda **given: run(**given)["last_hidden_state"], {"encoder_mask": np.ones([2, 6])}


def function(made, **given):
    return lambda **changes: tf.nest.flatten(made(**changes))[0], given


def breakpoints(length):
    return np.eye(length)[[-1, -1]]


def structure():
    sentence_ids = np.zeros([2, LONG], int)
    make = functools.partial(
        input_utils.make_structure, sentence_ids=sentence_ids, relative_pos_max_distance=0
    )
    return function(
        make, long_breakpoints=breakpoints(LONG), global_breakpoints=breakpoints(GLOBAL)
    )


def paragraphs():
    ids = {f"long_{x}_ids": np.zeros([2, LONG], int) for x in ("paragraph", "sentence")}
    make = functools.partial(multihop_utils.make_structure, **ids, relative_pos_max_distance=0)
    return function(
        make,
        long_paragraph_breakpoints=breakpoints(LONG),
        global_paragraph_breakpoints=breakpoints(GLOBAL),
    )


def blocks():
    make = functools.partial(
        input_utils.make_fixed_block_structure, num_tokens_per_block=2, relative_pos_max_distance=0
    )
    return function(make, input_mask=np.ones([2, LONG]))


CASES = {
    "BigBird": lambda: encoder(bigbirds.model(), "attention_mask"),
    "EtcModel": etc,
    "structure": etc_structure,
    "GlobalLocalTransformerLayers": lambda: layers_of_etc(transformer),
    "FusedGlobalLocalAttention": lambda: layers_of_etc(fused),
    "RelativeTransformerLayers": lambda: full(
        functools.partial(RelativeTransformerLayers, 8, 1, 2), hidden(LONG)
    ),
    "RelativeAttention": lambda: full(functools.partial(RelativeAttention, 8, 2), hidden(LONG)),
    "QkvRelativeAttention": lambda: full(QkvRelativeAttention, *[heads(LONG)] * 3),
    "QkvRelativeLocalAttention": local,
    "EmbeddingLookup": embedding,
    "GMAT": gmat,
    "LongT5": lambda: seq2seq(longt5s.model(num_layers=1)),
    "decoder": lambda: decoder(longt5s.model(num_layers=1)),
    "make_att_mask_from_input_mask": lambda: function(
        feature_utils.make_att_mask_from_input_mask, input_mask=np.ones([2, 4])
    ),
    "make_att_mask_from_breakpoints": lambda: function(
        feature_utils.make_att_mask_from_breakpoints, att_breakpoints=breakpoints(4)
    ),
    "make_structure": structure,
    "multihop_utils": paragraphs,
    "make_fixed_block_structure": blocks,
}
SLOW_CASES = {
    "PEGASUS-X": lambda: seq2seq(pegasus_xs.model()),
    "GenBERT": lambda: seq2seq(genbert.model()),
}
LONGFORMER = functools.cache(lambda: longformers.model(num_hidden_layers=1, attention_window=4))
LED = functools.cache(lambda: leds.model(encoder_layers=1, decoder_layers=1, attention_window=4))
# An `attention_mask` of these may be 2, too.
THREE_KINDS = {
    "Longformer": lambda: encoder(LONGFORMER(), "attention_mask"),
    "LED": lambda: (seq2seq(LED())[0], {"attention_mask": np.ones([2, 6])}),
    "LED's decoder": lambda: decoder(LED()),
}
GLOBALS = {
    "Longformer": lambda: encoder(LONGFORMER(), "global_attention_mask"),
    "LED": lambda: (seq2seq(LED())[0], {"global_attention_mask": np.ones([2, 6])}),
}
ADDITIVE, NO_WHOLE, NO_NUMBER = -10000.0, 0.5, np.nan


def with_wrong(given, name, wrong):
    """The arguments, one of them with a wrong value in its second row."""
    given = {**given, name: given[name].astype(np.float32)}
    given[name][1, ..., -1] = wrong
    return given


def check(made, wrongs):
    call, given = made()
    given = {name: np.ones_like(x) for name, x in given.items()} if not is_local(given) else given
    as_ints = {name: x.astype(np.int32) for name, x in given.items()}
    wanted = call(**as_ints)
    for dtype in (np.float32, np.bool_):
        masks = {name: x.astype(dtype) for name, x in given.items() if "ids" not in name}
        np.testing.assert_array_equal(call(**{**as_ints, **masks}), wanted)
    for name in given:
        for wrong in [LABELS, -1, NO_WHOLE] if "ids" in name else wrongs:
            with pytest.raises(ValueError) as raised:
                call(**with_wrong(as_ints, name, wrong))
            line = str(raised.value)
            assert line.split("`")[1].removeprefix("structure.").split(" ")[0] == name
            assert f"{np.float32(wrong)} in row 1 of the batch" in line and "\n" not in line


def is_local(given):
    return any("breakpoints" in name for name in given)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("kind", CASES)
def test_masks_are_0_and_1_and_labels_those_of_the_table(kind):
    check(CASES[kind], [ADDITIVE, NO_WHOLE, NO_NUMBER, 2.0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", SLOW_CASES)
def test_masks_are_0_and_1_of_further_systems(kind):
    check(SLOW_CASES[kind], [ADDITIVE, NO_WHOLE, NO_NUMBER, 2.0])


@pytest.mark.parametrize("kind", THREE_KINDS)
def test_masks_of_three_kinds(kind):
    check(THREE_KINDS[kind], [ADDITIVE, NO_WHOLE, NO_NUMBER, 3.0])


@pytest.mark.parametrize("kind", GLOBALS)
def test_global_masks(kind):
    check(GLOBALS[kind], [ADDITIVE, NO_WHOLE, NO_NUMBER, 2.0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["EtcModel", "GMAT", "QkvRelativeLocalAttention"])
def test_a_graph_refuses_them_when_it_runs(kind):
    call, given = CASES[kind]()
    given = {name: x.astype(np.float32) for name, x in given.items()}
    specs = {name: tf.TensorSpec([None, *x.shape[1:]]) for name, x in given.items()}
    traced = tf.function(lambda given: call(**given), input_signature=[specs], autograph=False)
    as_tensors = functools.partial(tf.nest.map_structure, tf.constant)
    np.testing.assert_allclose(traced(as_tensors(given)), call(**given), atol=1e-5)
    for name in given:
        wrong = LABELS if "ids" in name else ADDITIVE
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"`{name}` must be") as raised:
            traced(as_tensors(with_wrong(given, name, wrong)))
        assert f"[{wrong:g}] [in row] [1]" in str(raised.value)


class OfMasks(tf_keras.Model):
    """Numbers [batch] of masks alone."""

    def __init__(self):
        super().__init__()
        self.etc = etc_model()

    def call(self, mask):
        ids = [tf.ones([tf.shape(mask)[0], length], tf.int32) for length in (LONG, GLOBAL)]
        return tf.reduce_mean(self.etc(*ids, l2l_att_mask=mask)[0] ** 2, axis=[1, 2])


@pytest.mark.exhaustive
def test_checks_survive_fit_and_export(tmp_path):
    model, right = OfMasks(), MASKS["l2l_att_mask"].astype(np.float32)
    wrong = with_wrong(MASKS, "l2l_att_mask", ADDITIVE)["l2l_att_mask"]
    model.compile("sgd", "mse")
    model.fit(right, np.zeros(2), verbose=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`l2l_att_mask` must be"):
        model.fit(wrong, np.zeros(2), verbose=0)
    module = tf.Module()
    module.model_variables = model.variables
    specs = [tf.TensorSpec([None, *right.shape[1:]])]
    module.run = tf.function(model, input_signature=specs, autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.run(right), model(right), atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`l2l_att_mask` must be"):
        loaded.run(wrong)


def test_ids_of_examples_and_sentences_are_whole():
    ids = {
        "long_example_ids": np.ones([2, LONG]),
        "global_example_ids": np.ones([2, GLOBAL]),
        "sentence_ids": np.zeros([2, LONG]),
    }
    make = input_utils.make_structure_from_example_ids
    structure = make(**ids, relative_pos_max_distance=0)
    assert {x.dtype for x in structure[:3]} == {tf.int32}
    for name in ids:
        for wrong in (1.5, np.nan, np.inf):
            given = with_wrong(ids, name, wrong)
            with pytest.raises(ValueError, match=f"`{name}` must be whole numbers"):
                make(**given, relative_pos_max_distance=0)
    with pytest.raises(ValueError, match="`segment_ids` must be whole numbers. Received: 1.5"):
        feature_utils.make_segmented_att_mask([[1.0, 1.5]])
    model = etc()[0]
    for place, name in enumerate(GlobalLocalStructure._fields[:3]):
        given = [np.ones([2, length]) for length in (LONG, LONG, GLOBAL)]
        given[place][1, 1] = 1.5
        with pytest.raises(ValueError, match=f"`structure.{name}` must be whole.*1.5 in row 1"):
            model(structure=GlobalLocalStructure(*given))


def test_the_engine_refuses_masks_of_other_values():
    for mask in (masks_ops.KeyMask([[0.0, ADDITIVE]]), masks_ops.LinkMask((), [[0, 2]])):
        with pytest.raises(ValueError, match="must be .*at least 0 and below 2"):
            mask.prepare(None)
