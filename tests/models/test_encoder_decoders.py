"""What holds for every encoder-decoder: what no result depends on, and the ways to compute one.

A new system gets an entry in `SYSTEMS`. What is of one system alone is among its own tests.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import strategies as st

from etcmodel.models import bigbird_pegasus, gmat, led, longt5, pegasus_x
from tests.models import turns
from tests.models.bigbird_pegasus import models as bigbird_pegasuses
from tests.models.gmat import genbert
from tests.models.led import models as leds
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs
from tests.models.random_texts import tensors, texts

pytestmark = pytest.mark.slow_cases(3)  # The rest in the exhaustive suite.
VOCAB_SIZE = 30  # Of all of them, as d_model is 16.
INTS = tf.TensorSpec([None, None], tf.int32)


class System(NamedTuple):
    """An encoder-decoder, small, in one of its ways.

    Attributes:
        make: function of the class, a policy and changes of the config: a built model.
        classes: tuple of its classes, the first of which generates.
        changes: dict. Those of the config that are this way.
        of_tokens: tuple of str. What a text says of each token, 0 or 1, beside its id.
        embedding_scale: float. What embeddings of ids are multiplied by.
        reads_again: bool. Whether the decoder by default reads the text.
        sum_to_1: tuple of str. The encoder's outputs that are probabilities of what a token sees.
        dropouts: tuple of str. The config's rates.
        refused: dict of the config's entries to values that cannot be, with the reason said.
        static: dict. Changes for graphs whose sizes must all be known.
        few_positions: dict. Changes for which texts have at most 8 tokens.
        limits: dict of policies to the most that logits may differ.
        lacks: dict of checks to the reason why the system has not this property.
    """

    make: Callable
    classes: tuple
    changes: Mapping = {}
    of_tokens: tuple = ("attention_mask",)
    embedding_scale: float = 1.0
    reads_again: bool = False
    sum_to_1: tuple = ()
    dropouts: tuple = ("dropout", "attention_dropout", "activation_dropout")
    refused: Mapping = {
        "activation_function": ("sine", "Unknown activation 'sine'"),
        "decoder_attention_heads": (3, "`d_model` must be a multiple of `decoder_attention_heads`"),
        "encoder_layers": ("2", "`encoder_layers` must be of type int"),
        "tie_word_embeddings": (False, "`tie_word_embeddings` must be true"),
    }
    static: Mapping = {}
    few_positions: Mapping = {}
    limits: Mapping = {"mixed_bfloat16": 0.3, "mixed_float16": 0.03}
    lacks: Mapping = {}


_LONGT5 = System(
    longt5s.model,
    (longt5.LongT5Model,),
    sum_to_1=("encoder_attentions",),
    dropouts=("dropout_rate",),
    refused={
        "feed_forward_proj": ("gated-sine", "Unknown activation 'sine'"),
        "num_layers": ("2", "`num_layers` must be of type int"),
    },
    lacks={
        "positions": "its positions are relative",
        "few positions": "its positions are relative",
        "bare": "its files have no class without logits",
    },
)
_BIGBIRD_PEGASUS = System(
    bigbird_pegasuses.model,
    (
        bigbird_pegasus.BigBirdPegasusForConditionalGeneration,
        bigbird_pegasus.BigBirdPegasusModel,
        bigbird_pegasus.BigBirdPegasusForQuestionAnswering,
    ),
    changes={"max_position_embeddings": 80},
    embedding_scale=4.0,
    reads_again=True,
    few_positions={"max_position_embeddings": 8},
    lacks={
        "padding": "its blocks attend by the padded length, as Hugging Face's",
        "positions": "its positions are always 0, 1, 2 …",
    },
)
SYSTEMS = {
    "LongT5, local": _LONGT5._replace(changes={"encoder_attention_type": "local"}),
    "LongT5, transient-global": _LONGT5,
    "PEGASUS-X": System(
        pegasus_xs.model,
        (pegasus_x.PegasusXForConditionalGeneration, pegasus_x.PegasusXModel),
        embedding_scale=4.0,
        sum_to_1=("encoder_attentions", "encoder_global_attentions"),
        lacks={"few positions": "its positions are computed, without a table"},
    ),
    "LED": System(
        leds.model,
        (led.LedForConditionalGeneration, led.LedModel, led.LedForQuestionAnswering),
        changes={"max_encoder_position_embeddings": 80},
        of_tokens=("attention_mask", "global_attention_mask"),
        reads_again=True,
        static={"max_global_tokens": 1},
        few_positions={"max_decoder_position_embeddings": 8},
        lacks={"start": "its config always has a start token"},
    ),
    "BigBird-Pegasus": _BIGBIRD_PEGASUS,
    "BigBird-Pegasus, by length": _BIGBIRD_PEGASUS._replace(
        changes={**_BIGBIRD_PEGASUS.changes, "pattern_by_length": True},
        lacks={"positions": _BIGBIRD_PEGASUS.lacks["positions"]},
    ),
    "GMAT": System(
        genbert.model,
        (gmat.GmatForConditionalGeneration,),
        changes={"num_hidden_layers": 2},
        of_tokens=("attention_mask", "token_type_ids"),
        dropouts=("hidden_dropout_prob", "attention_probs_dropout_prob"),
        refused={
            "hidden_act": ("sine", "Unknown activation 'sine'"),
            "num_attention_heads": (3, "multiple of `num_attention_heads`"),
            "num_hidden_layers": ("2", "`num_hidden_layers` must be of type int"),
        },
        few_positions={"position_period": 4, "num_position_quotients": 2},
        lacks={
            "bare": "it has no class without logits",
            "table": "its encoder's table is that of the `GmatModel` in it",
        },
    ),
}


def every_system(check=None, first=None):
    """Of all systems that have the property."""
    return turns.each([x for x, system in SYSTEMS.items() if check not in system.lacks], first)


def made(name, place=0, policy=None, **changes):
    """A new model of the class at the place."""
    system = SYSTEMS[name]
    return system.make(system.classes[place], policy=policy, **{**system.changes, **changes})


@functools.cache
def model_of(name):
    return made(name)


def ids(batch, length, seed=0):
    """Token ids without those that start, end or pad a text in most systems."""
    return np.random.default_rng(seed).integers(3, VOCAB_SIZE, (batch, length)).astype(np.int32)


def batch_of(name, batch=2, length=9):
    """Texts, all but the first with padding; the first token is another one, if there are kinds."""
    mask = np.ones([batch, length], np.int32)
    mask[1:, length - 4 :] = 0
    first = np.eye(length, dtype=np.int32)[[0] * batch]
    kinds = dict.fromkeys(SYSTEMS[name].of_tokens, first)
    return {"input_ids": ids(batch, length), **kinds, "attention_mask": mask}


# What no result depends on.


@functools.cache
def traced(name):
    """A function of the dict of a call: its logits."""
    model, names = model_of(name), ("input_ids", "decoder_input_ids", *SYSTEMS[name].of_tokens)
    signature = [dict.fromkeys(names, INTS)]
    return tf.function(lambda x: model(x)["logits"], input_signature=signature, autograph=False)


def logits(name, text, decoder_ids):
    given = {**text, "decoder_input_ids": decoder_ids}
    return traced(name)({key: tf.constant(x, tf.int32) for key, x in given.items()}).numpy()


@pytest.mark.quick_cases(1)
@every_system(first="LongT5, transient-global")
@hypothesis.settings(max_examples=15)
@hypothesis.given(st.integers(2, 9), st.data())
def test_a_later_token_never_matters(name, length, data):
    text = data.draw(texts(SYSTEMS[name].of_tokens, ids))
    changed = data.draw(st.integers(1, length - 1))
    one, other = ids(1, length, seed=1), ids(1, length, seed=2)
    other = np.concatenate([one[:, :changed], other[:, changed:]], 1)
    differs = one != other
    one, other = (logits(name, text, x) for x in (one, other))
    np.testing.assert_array_equal(one[:, :changed], other[:, :changed])
    assert np.all(np.abs(one - other).max(-1)[differs] > 1e-4)


@pytest.mark.quick_cases(1)
@every_system("padding", first="LongT5, transient-global")
@hypothesis.settings(max_examples=20)
@hypothesis.given(st.integers(0, 30), st.data())
def test_padding_and_neighbors_do_not_matter(name, padding, data):
    """Whatever padding is marked as, and whatever the neighbors are, be it all padding."""
    names = SYSTEMS[name].of_tokens
    text, decoder_ids = data.draw(texts(names, ids)), ids(1, 5, seed=3)
    length = text["input_ids"].shape[1] + padding
    fills = {**dict.fromkeys(text, 1), "input_ids": 7, "attention_mask": 0}
    bits = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    neighbors = {key: [data.draw(bits), data.draw(bits)] for key in names}
    neighbors["input_ids"] = ids(2, length, seed=4)
    padded = {
        key: np.pad(x, [(0, 0), (0, padding)], constant_values=fills[key])
        for key, x in text.items()
    }
    among = {key: np.concatenate([x, neighbors[key]]) for key, x in padded.items()}
    found = logits(name, among, np.concatenate([decoder_ids, ids(2, 5, seed=5)]))[:1]
    np.testing.assert_allclose(found, logits(name, text, decoder_ids), atol=2e-5, rtol=1e-5)


@pytest.mark.quick_cases(1)
@every_system(first="LongT5, transient-global")
def test_what_is_masked_matters_to_nobody_and_all_else_to_all(name):
    text, decoder_ids = batch_of(name, batch=1, length=11), ids(1, 4, seed=2)
    text["attention_mask"] = np.array([[1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1]])
    plain = logits(name, text, decoder_ids)
    for place in range(11):
        other = text["input_ids"].copy()
        other[0, place] = (other[0, place] + 1) % VOCAB_SIZE
        found = logits(name, {**text, "input_ids": other}, decoder_ids)
        if text["attention_mask"][0, place]:
            assert np.abs(found - plain).max(-1).min() > 1e-6, place
        else:
            np.testing.assert_array_equal(found, plain)


# The ways to compute it.


@pytest.mark.quick_cases(2)
@every_system()
def test_an_input_of_embeddings(name):
    model, batch, decoder_ids = model_of(name), batch_of(name), ids(2, 4, seed=1)
    wanted = model(**batch, decoder_input_ids=decoder_ids)["logits"]
    table = model.get_token_embedding_table() * SYSTEMS[name].embedding_scale
    text, target = (tf.gather(table, x) for x in (batch["input_ids"], decoder_ids))
    others = {key: x for key, x in batch.items() if key != "input_ids"}
    encoded = model.encoder(**batch)["last_hidden_state"]
    mask = {"attention_mask": batch["attention_mask"]}
    for given in (
        {**others, "inputs_embeds": text, "decoder_inputs_embeds": target},
        {**others, "inputs_embeds": text, "decoder_input_ids": decoder_ids},
        {**batch, "decoder_inputs_embeds": target},
        {**mask, "encoder_output": encoded, "decoder_input_ids": decoder_ids},
    ):
        np.testing.assert_allclose(model(**given)["logits"], wanted, atol=1e-6)
    of_dict = model({**batch, "decoder_input_ids": decoder_ids})["logits"]
    np.testing.assert_array_equal(of_dict, wanted)


@pytest.mark.quick_cases(1)
@every_system("positions")
def test_positions_may_be_given(name):
    batch, positions = {**batch_of(name), "labels": ids(2, 4)}, np.arange(9)[np.newaxis]
    plain, same, other = (
        model_of(name)(batch, position_ids=x)["logits"] for x in (None, positions, positions + 5)
    )
    np.testing.assert_allclose(plain, same, atol=1e-6)
    assert np.abs(plain - other).max() > 1e-3


@pytest.mark.quick_cases(2)
@every_system()
def test_what_is_asked_for_beside_changes_nothing(name):
    batch = {**batch_of(name), "labels": ids(2, 4, seed=1)}
    plain = model_of(name)(batch)
    more = model_of(name)(batch, output_hidden_states=True, output_attentions=True)
    assert set(plain) == {"logits", "loss", "encoder_last_hidden_state"}
    for key, value in plain.items():
        np.testing.assert_allclose(value, more[key], atol=1e-6)
    for key in ("decoder_attentions", "cross_attentions", *SYSTEMS[name].sum_to_1):
        for probs in more[key]:
            np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-5)


@pytest.mark.quick_cases(1)
@every_system("bare")
def test_the_model_without_logits_is_the_same(name):
    model, bare = model_of(name), made(name, place=1)
    bare.set_weights([x.numpy() for x in model.weights if "logits_bias" not in x.name])
    batch = {**batch_of(name), "decoder_input_ids": ids(2, 3)}
    found = model.logits(bare(batch)["last_hidden_state"])
    np.testing.assert_allclose(found, model(batch)["logits"], atol=1e-6)


@pytest.mark.quick_cases(2)
@every_system()
def test_an_encoder_alone(name):
    model = model_of(name)
    alone, batch = type(model.encoder)(model.config), batch_of(name)
    if "table" not in SYSTEMS[name].lacks:
        assert alone.get_token_embedding_table().shape == [VOCAB_SIZE, 16]
    assert alone(**batch)["last_hidden_state"].shape[0] == 2
    alone.set_weights(model.encoder.get_weights())
    found, wanted = (x(**batch)["last_hidden_state"] for x in (alone, model.encoder))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("name", "place"),
    [(name, i) for name, system in SYSTEMS.items() for i in range(len(system.classes))],
)
def test_its_config_makes_it_again(name, place):
    model = made(name, place)
    again = tf_keras.layers.deserialize(tf_keras.layers.serialize(model))
    assert type(again) is SYSTEMS[name].classes[place] and again.config == model.config
    with tf.name_scope(again.name):
        again.build(None)
    again.set_weights(model.get_weights())
    batch = batch_of(name)
    if not SYSTEMS[name].reads_again:
        batch["decoder_input_ids"] = ids(2, 3)
    one, other = model(batch), again(batch)
    assert set(one) == set(other)
    for key, value in one.items():
        np.testing.assert_array_equal(value, other[key])


@pytest.mark.slow
@pytest.mark.slow_cases(2)
@every_system()
def test_xla_gives_the_same_logits(name):
    model = made(name, **SYSTEMS[name].static)
    batch = tensors({**batch_of(name, length=11), "decoder_input_ids": ids(2, 4)})
    compiled = tf.function(lambda x: model(x)["logits"], jit_compile=True, autograph=False)
    np.testing.assert_allclose(compiled(batch), model(batch)["logits"], atol=1e-5)


@pytest.mark.slow
@pytest.mark.slow_cases(1)
@every_system()
def test_an_exported_model_generates(name, tmp_path):
    module = tf.Module()
    module.model = made(name)
    module.write = tf.function(
        lambda batch: module.model.generate(batch, max_length=7, num_beams=2),
        input_signature=[dict.fromkeys(batch_of(name), INTS)],
        autograph=False,
    )
    tf.saved_model.save(module, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path))
    for length in (4, 11):
        batch = tensors(batch_of(name, length=length))
        found, wanted = served.write(batch), module.model.generate(batch, max_length=7, num_beams=2)
        np.testing.assert_array_equal(found["sequences"], wanted["sequences"])
        np.testing.assert_allclose(found["sequences_scores"], wanted["sequences_scores"], atol=1e-5)


# Training.


def gradients(model, batch, training=None):
    with tf.GradientTape() as tape:
        outputs = model({**batch, "labels": ids(len(batch["input_ids"]), 4)}, training=training)
    found = tape.gradient(outputs["loss"], model.trainable_variables)
    return outputs, [tf.convert_to_tensor(x).numpy() for x in found]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("period", [1, 2])
@every_system()
def test_recomputed_activations_give_the_same_gradients(name, period):
    (plain, wanted), (again, found) = (
        gradients(made(name, grad_checkpointing_period=x), batch_of(name, length=13), training=True)
        for x in (0, period)
    )
    np.testing.assert_allclose(plain["loss"], again["loss"], rtol=1e-5)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("name", "rate"), [(name, x) for name, system in SYSTEMS.items() for x in system.dropouts]
)
def test_dropout_is_of_training(name, rate):
    model, batch = made(name, **{rate: 0.5}), {**batch_of(name, length=13), "labels": ids(2, 4)}
    still = [model(batch)["loss"].numpy() for _ in range(2)]
    dropped = [model(batch, training=True)["loss"].numpy() for _ in range(2)]
    assert still[0] == still[1]
    assert len({still[0], *dropped}) == 3


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@every_system()
def test_half_precision_stays_finite_and_near(name, policy):
    """Also where a row is all padding."""
    batch = batch_of(name, batch=3, length=14)
    batch["attention_mask"][2] = 0
    wanted = model_of(name)({**batch, "labels": ids(3, 4)})["logits"]
    found, slopes = gradients(made(name, policy=policy), batch)
    assert found["logits"].dtype == tf.float32
    assert found["encoder_last_hidden_state"].dtype == policy.removeprefix("mixed_")
    limit = SYSTEMS[name].limits[policy]
    np.testing.assert_allclose(found["logits"][:2], wanted[:2], atol=limit)
    assert np.isfinite(found["logits"]).all() and all(np.isfinite(x).all() for x in slopes)


# Generation.


@pytest.mark.quick_cases(2)
@pytest.mark.slow_cases(5)
@every_system()
def test_token_by_token_it_gives_what_it_gives_as_a_whole(name):
    model, batch, decoder_ids = model_of(name), batch_of(name), ids(2, 7, seed=1)
    wanted = model(batch, decoder_input_ids=decoder_ids)["logits"]
    encoded = model.encoder(**batch)["last_hidden_state"]
    memory, cache = model.decoder.begin(encoded, batch["attention_mask"], num_rows=2, max_length=7)
    for place in range(7):
        hidden, cache = model.decoder.step(decoder_ids[:, place], memory, cache)
        np.testing.assert_allclose(model.logits(hidden), wanted[:, place], rtol=1e-4, atol=1e-5)


@pytest.mark.quick_cases(1)
@every_system()
def test_greedy_tokens_are_the_most_probable_ones(name):
    """Of a batch as in training, with labels, and of a model that was never called."""
    model, batch = SYSTEMS[name].classes[0](model_of(name).config), batch_of(name)
    settings = {"max_length": 8, "forced_eos_token_id": None, "with_scores": True}
    assert not model.built
    assert model.generate(batch, **settings)["sequences"].shape[1] <= 8
    model.set_weights(model_of(name).get_weights())  # Those that tell tokens apart.
    found = model.generate({**batch, "labels": ids(2, 4)}, **settings)
    sequences = found["sequences"].numpy()
    wanted = model(batch, decoder_input_ids=sequences[:, :-1])["logits"].numpy()
    for row, sequence in enumerate(sequences):
        ends = np.flatnonzero(sequence[1:] == model.config.eos_token_id)
        count = ends[0] + 1 if len(ends) else len(sequence) - 1
        assert sequence[1 : count + 1].tolist() == wanted[row, :count].argmax(-1).tolist()
        scores = found["step_scores"][row, :count]
        np.testing.assert_allclose(scores, wanted[row, :count], atol=1e-4)


@pytest.mark.quick_cases(1)
@every_system("few positions")
def test_generation_ends_where_positions_do(name):
    model, text = made(name, **SYSTEMS[name].few_positions), ids(1, 7)
    settings = {"min_length": 9, "no_repeat_ngram_size": 2}
    assert model.generate(text, max_length=9, **settings)["sequences"].shape == [1, 9]
    for given in ({"max_length": 10}, {"max_length": 21}, {}):
        message = f"`max_length` must be at most 9, .* Received: {given.get('max_length', 21)}"
        with pytest.raises(ValueError, match=message):
            model.generate(text, **given)


# What cannot be.


def wrong_configs():
    """(name, changes, what is said) of all systems."""
    for name, system in SYSTEMS.items():
        for entry in system.classes[0].config_class.at_least_1:
            yield name, {entry: 0}, f"`{entry}` must be at least 1"
        for rate in system.dropouts:
            yield name, {rate: 1.0}, f"`{rate}` must be at least 0 and below 1"
        for entry, (value, message) in system.refused.items():
            yield name, {entry: value}, message


@pytest.mark.parametrize(("name", "changes", "message"), list(wrong_configs()))
def test_a_config_that_cannot_be_is_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        model_of(name).config.from_dict({**model_of(name).config.to_dict(), **changes})


@pytest.mark.quick_cases(2)
@every_system()
def test_calls_that_cannot_be_are_refused(name):
    model = model_of(name)
    with pytest.raises(ValueError, match="Give ids, or embeddings|Give `input_ids` or `inputs_emb"):
        model.encoder()
    source = "`labels` or `input_ids`" if SYSTEMS[name].reads_again else "`labels`"
    with pytest.raises(ValueError, match=f"Give `decoder_input_ids`, or {source} to make them of"):
        model(inputs_embeds=np.zeros([1, 9, 16], np.float32))
    if not SYSTEMS[name].reads_again:
        with pytest.raises(ValueError, match="Give `decoder_input_ids`, or `labels` to make them"):
            model(ids(1, 9))
    with pytest.raises(ValueError, match="`attention_mask` must have shape"):
        model(ids(1, 9), attention_mask=np.ones([1, 8]), decoder_input_ids=ids(1, 2))
    for each in SYSTEMS[name].classes:
        with pytest.raises(ValueError, match=f"`config` must be a `{each.config_class.__name__}`"):
            each(3)


@pytest.mark.quick_cases(1)
@every_system("start")
def test_without_a_start_token_labels_make_no_decoder_ids(name):
    config = dataclasses.replace(model_of(name).config, decoder_start_token_id=None)
    model = SYSTEMS[name].classes[0](config)
    with pytest.raises(ValueError, match="no `decoder_start_token_id`"):
        model(ids(1, 9), labels=ids(1, 9))
