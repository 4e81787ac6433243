"""What holds for every encoder: what no result depends on, and the ways to compute one.

A new system gets an entry in `SYSTEMS`. What is of one system alone is among its own tests.
"""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import strategies as st

import etcmodel
from etcmodel.models import encoders, modeling
from etcmodel.ops import dropout as dropout_ops
from tests.models import head_cases, turns
from tests.models.bigbird import small as bigbirds
from tests.models.gmat import small as gmats
from tests.models.longformer import small as longformers
from tests.models.longformer_char_lm import char_models
from tests.models.modernbert import small as modernberts
from tests.models.random_texts import tensors, texts
from tests.models.random_weights import built

pytestmark = pytest.mark.slow_cases(2)  # The rest in the exhaustive suite.
VOCAB_SIZE = 30  # Ids are below it; of CharLM's, below 11.
INTS = tf.TensorSpec([None, None], tf.int32)
SAME = {"atol": 2e-5, "rtol": 1e-5}
BERT_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


class System(NamedTuple):
    """An encoder, small, in one of its ways.

    Attributes:
        make: function of a policy and changes of the config: a built model.
        changes: dict. Those of the config that are this way.
        of_tokens: tuple of str. What a text says of each token, 0 or 1, beside its id.
        given: function of the model and a batch: the arguments of its call.
        is_left_same: bool. Whether padding on the left changes nothing.
        are_all_same: bool. Whether that holds for masked tokens' outputs, too.
        of_text: bool. Whether the second output, if any, is of the text, not of other tokens.
        beside: dict of the extras that can be asked for to their numbers.
        sum_to_1: tuple of str. Those that are probabilities of what a token sees.
        other: dict. Changes that need no other weights.
        static: dict. Changes for graphs whose sizes must all be known.
        dropouts: tuple of str. The config's rates.
        refused: dict of the config's entries to values that cannot be, with the reason said.
        limits: dict of policies to the most that outputs may differ.
        is_causal: bool. Whether a token sees none after it.
        lacks: tuple of str. Checks of properties that the system has not.
    """

    make: Callable
    changes: Mapping = {}
    of_tokens: tuple = ("attention_mask",)
    given: Callable = lambda model, batch: batch
    is_left_same: bool = False
    are_all_same: bool = True
    of_text: bool = True
    beside: Mapping = {}
    sum_to_1: tuple = ()
    other: Mapping = {}
    static: Mapping = {}
    dropouts: tuple = BERT_DROPOUTS
    refused: Mapping = {
        "hidden_act": ("sine", "'sine'"),
        "num_attention_heads": (3, "multiple of `num_attention_heads`"),
        "num_hidden_layers": ("2", "`num_hidden_layers` must be of type int"),
        "vocab_size": ("40", "`vocab_size` must be of type int"),
    }
    limits: Mapping = {"mixed_bfloat16": 0.15, "mixed_float16": 0.15}
    is_causal: bool = False
    lacks: tuple = ()


def structured(model, batch):
    """Of an encoder of two inputs: global tokens of blocks of the text."""
    features = {"token_ids": batch["input_ids"], "example_ids": batch["attention_mask"]}
    return model.structure(features)


def etc_model(dtype=None, **changes):
    """Labels and embeddings differ, so that all tokens do."""
    return built(modeling.EtcModel(head_cases.config(**changes), dtype=dtype))


def gmat_model(dtype=None, **changes):
    return gmats.model(policy=dtype, **changes)


_LONGFORMER = System(
    longformers.model,
    changes={"max_position_embeddings": 100},
    of_tokens=("attention_mask", "global_attention_mask"),
    is_left_same=True,
    beside={"hidden_states": 3, "attentions": 2, "global_attentions": 2},
    other={"attention_window": (2, 4)},
    static={"max_global_tokens": 3},
    limits={"mixed_bfloat16": 0.1, "mixed_float16": 0.1},
)
_BIGBIRD = System(
    bigbirds.model,
    changes={"max_position_embeddings": 100},
    beside={"hidden_states": 3, "attentions": 2},
    other={"block_size": 3},
    lacks=("padding",),
)
_MODERNBERT = System(
    modernberts.model,
    is_left_same=True,
    beside={"hidden_states": 5, "attentions": 4},
    sum_to_1=("attentions",),
    other={"local_attention": 3},
    dropouts=("attention_dropout", "embedding_dropout", "mlp_dropout"),
    refused={
        "hidden_activation": ("sine", "'sine'"),
        "num_attention_heads": (3, "multiple of `num_attention_heads`"),
        "num_hidden_layers": ("2", "`num_hidden_layers` must be of type int"),
    },
)
_GMAT = System(
    gmat_model,
    of_tokens=("attention_mask", "token_type_ids"),
    beside={"hidden_states": 4, "attentions": 3, "memory_states": 4, "memory_attentions": 3},
    sum_to_1=("attentions", "memory_attentions"),
    other={"chunk_size": 7},
    limits={"mixed_bfloat16": 0.3, "mixed_float16": 0.05},
)
_COMPRESSED = _GMAT._replace(changes=gmats.COMPRESSED, beside={**_GMAT.beside, "attentions": 2})
_IDS_ALONE = ("embeddings", "beside", "calls")
_OF_TWO = (*_IDS_ALONE, "known sizes", "functional")  # The number of blocks is of the values.
SYSTEMS = {
    "Longformer": _LONGFORMER,
    "Longformer, autoregressive": _LONGFORMER._replace(
        changes={
            **_LONGFORMER.changes,
            "autoregressive": True,
            "attention_dilation": (1, (2, 3)),
        },
        of_tokens=("attention_mask",),
        beside={"hidden_states": 3, "attentions": 2},
        static={},
        is_causal=True,
    ),
    "BigBird": _BIGBIRD,
    "BigBird, by length": _BIGBIRD._replace(
        changes={**_BIGBIRD.changes, "pattern_by_length": True}, lacks=()
    ),
    "ModernBERT": _MODERNBERT,
    "ModernBERT, skipping padding": _MODERNBERT._replace(
        changes={"skip_padding": True}, are_all_same=False
    ),
    "GMAT": _GMAT,
    "GMAT, own": _GMAT._replace(changes=gmats.OWN),
    "GMAT, compressed": _COMPRESSED,
    "GMAT, compressed, own": _COMPRESSED._replace(changes={**gmats.COMPRESSED, **gmats.OWN}),
    "GMAT, no memory": _GMAT._replace(
        changes={"num_memory_tokens": 0},
        beside={"hidden_states": 4, "attentions": 3},
        sum_to_1=("attentions",),
    ),
    "CharLM": System(
        char_models.model,
        of_tokens=(),
        other={"attention_window": (4, 6, 10)},
        is_causal=True,
        lacks=("mask", "half outputs", *_IDS_ALONE),
    ),
    "ETC": System(
        etc_model,
        given=structured,
        of_text=False,
        other={"local_radius": 3},
        lacks=_OF_TWO,
    ),
    "EtcModernBert": _MODERNBERT._replace(
        make=modernberts.etc_model, given=structured, of_text=False, lacks=_OF_TWO
    ),
}


def having(check=None):
    return [name for name, system in SYSTEMS.items() if check not in system.lacks]


def every_system(check=None, first=None):
    """Of all systems that have the property."""
    return turns.each(having(check), first)


def made(name, policy=None, **changes):
    return SYSTEMS[name].make(dtype=policy, **{**SYSTEMS[name].changes, **changes})


@functools.cache
def model_of(name):
    return made(name)


def ids(batch, length, seed=0):
    """Token ids that all systems have, without those that pad or part a text in most."""
    return np.random.default_rng(seed).integers(4, 11, (batch, length)).astype(np.int32)


def batch_of(name, batch=2, length=9):
    """Texts, all but the first with padding; the first token is another one, if there are kinds."""
    mask = np.ones([batch, length], np.int32)
    mask[1:, (length + 1) // 2 :] = 0
    first = np.eye(length, dtype=np.int32)[[0] * batch]
    found = {"input_ids": ids(batch, length), **dict.fromkeys(SYSTEMS[name].of_tokens, first)}
    return {**found, "attention_mask": mask} if "mask" not in SYSTEMS[name].lacks else found


def mask_of(batch):
    return batch.get("attention_mask", np.ones_like(batch["input_ids"])) > 0


def run(name, model, batch, **options):
    """All outputs that are tensors, that of tokens first."""
    found = model(**SYSTEMS[name].given(model, batch), **options)
    return [x for x in tf.nest.flatten(found) if x is not None]


def check_same(found, wanted, **tolerance):
    for one, other in zip(found, wanted, strict=True):
        one, other = (tf.cast(x, tf.float32).numpy() for x in (one, other))
        np.testing.assert_allclose(one, other, **(tolerance or SAME))


@functools.cache
def traced(name, training):
    """A function of a batch of any length: the outputs, as NumPy's."""
    call = functools.partial(run, name, model_of(name), training=training)
    signature = [dict.fromkeys(batch_of(name), INTS)]
    graph = tf.function(lambda batch: call(batch), input_signature=signature, autograph=False)
    return lambda batch: [x.numpy() for x in graph(tensors(batch))]


def compared(name, batch, outputs):
    """The outputs of tokens, maybe without the masked ones, and all others."""
    hidden, *others = outputs
    return [hidden if SYSTEMS[name].are_all_same else hidden[mask_of(batch)], *others]


# What no result depends on.


@pytest.mark.quick_cases(1)
@every_system("padding", first="ModernBERT")
@hypothesis.settings(max_examples=20)
@hypothesis.given(st.data())
def test_padding_and_neighbors_do_not_matter(name, data):
    """Whatever padding is marked as, and whatever the neighbors are, be it all padding."""
    kinds = [key for key in batch_of(name) if key != "input_ids"]
    text, after = data.draw(texts(kinds, ids)), data.draw(st.integers(0, 30))
    before = data.draw(st.integers(0, 5)) if SYSTEMS[name].is_left_same else 0
    own_length = text["input_ids"].shape[1]
    length = before + own_length + after
    bits = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    neighbors = {key: [data.draw(bits), data.draw(bits)] for key in text}
    neighbors["input_ids"] = ids(2, length, seed=4)
    pad = model_of(name).config.pad_token_id if before else 7
    fills = {**dict.fromkeys(text, 1), "input_ids": pad, "attention_mask": 0}
    among = {
        key: np.concatenate(
            [np.pad(x, [(0, 0), (before, after)], constant_values=fills[key]), neighbors[key]]
        )
        for key, x in text.items()
    }
    hidden, *others = (x[:1] for x in traced(name, False)(among))
    found = [hidden[:, before : before + own_length], *others]
    wanted = traced(name, False)(text)
    count = None if SYSTEMS[name].of_text else 1
    check_same(*(compared(name, text, x[:count]) for x in (found, wanted)))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", [x for x, system in SYSTEMS.items() if system.is_causal])
@hypothesis.settings(max_examples=10)
@hypothesis.given(st.integers(1, 20), st.data())
def test_no_later_token_matters_to_an_autoregressive_model(name, length, data):
    first_changed = data.draw(st.integers(0, length - 1))
    one, other = ids(1, length), ids(1, length, seed=1)
    other = np.concatenate([one[:, :first_changed], other[:, first_changed:]], 1)
    differs = np.arange(length) >= first_changed
    differs &= (one != other)[0]
    one, other = (run(name, model_of(name), {"input_ids": x})[0][0].numpy() for x in (one, other))
    np.testing.assert_array_equal(one[:first_changed], other[:first_changed])
    assert (np.abs(one - other).max(-1)[differs] > 1e-4).all()


@pytest.mark.quick_cases(2)
@every_system("mask", first="Longformer")
def test_what_is_masked_matters_to_nobody_and_all_else_does(name):
    text = batch_of(name, batch=1, length=11)
    text["attention_mask"] = np.array([[1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1]])
    real = text["attention_mask"][0] > 0

    def states(ids):
        return run(name, model_of(name), {**text, "input_ids": ids})[0].numpy()[0, real]

    plain = states(text["input_ids"])
    for place in range(11):
        other = text["input_ids"].copy()
        other[0, place] = 4 + (other[0, place] - 3) % 7
        found = states(other)
        if real[place]:
            assert np.abs(found - plain).max() > 1e-6, place
        else:
            np.testing.assert_array_equal(found, plain)


# The ways to compute it.


@pytest.mark.quick_cases(3)
@every_system("embeddings")
def test_an_input_of_embeddings_and_one_of_a_dict(name):
    model, batch = model_of(name), batch_of(name)
    wanted = run(name, model, batch)
    others = {key: x for key, x in batch.items() if key != "input_ids"}
    words = tf.gather(model.get_token_embedding_table(), batch["input_ids"])
    check_same(run(name, model, {**others, "inputs_embeds": words}), wanted, atol=1e-6)
    of_dict = [x for x in tf.nest.flatten(model(batch)) if x is not None]
    check_same(of_dict, wanted, atol=0)


@pytest.mark.quick_cases(3)
@every_system("beside")
def test_what_is_asked_for_beside_changes_nothing(name):
    model, batch = model_of(name), batch_of(name)
    *more, extras = model(**batch, output_hidden_states=True, output_attentions=True)
    more = [x for x in more if x is not None]
    check_same(more, run(name, model, batch), atol=1e-5)
    assert {key: len(x) for key, x in extras.items()} == SYSTEMS[name].beside
    for key in SYSTEMS[name].sum_to_1:
        for probs in extras[key]:
            np.testing.assert_allclose(tf.reduce_sum(probs, -1)[:1], 1, atol=1e-5)
    assert [*model(**batch, output_attentions=True)[-1]] == [
        key for key in extras if key.endswith("attentions")
    ]


@pytest.mark.quick_cases(2)
@every_system(first="GMAT, compressed")
def test_it_is_made_again_of_its_config_and_of_a_folder(name, tmp_path):
    model, batch = model_of(name), batch_of(name)
    wanted = run(name, model, batch)
    again = built(tf_keras.layers.deserialize(tf_keras.layers.serialize(model)), lambda made: None)
    assert type(again) is type(encoders.make_encoder(again.config)) is type(model)
    assert [x.name for x in again.weights] == [x.name for x in model.weights]
    again.set_weights(model.get_weights())
    model.save_pretrained(tmp_path / "one")
    loaded = etcmodel.load_pretrained(tmp_path / "one")
    for twin in (again, loaded):
        assert type(twin) is type(model) and twin.config == model.config
        check_same(run(name, twin, batch), wanted, atol=0)
    etcmodel.save_pretrained(loaded, tmp_path / "two")
    one, other = (tmp_path / folder / "model.safetensors" for folder in ("one", "two"))
    assert one.read_bytes() == other.read_bytes()
    # Some settings need no other weights.
    changes = SYSTEMS[name].other
    changed = etcmodel.load_pretrained(tmp_path / "one", **changes)
    assert changed.config == encoders.replace(model.config, **changes)
    outputs = run(name, changed, batch)
    check_same(outputs, run(name, made(name, **changes), batch), atol=1e-6)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("training", [False, True])
@every_system(first="ModernBERT")
def test_a_graph_takes_any_length(name, training):
    for length in (1, 13, 14, 15, 33):
        batch = batch_of(name, length=length)
        wanted = run(name, model_of(name), batch, training=training)
        check_same(traced(name, training)(batch), wanted, atol=1e-5)


def gradients(name, model, batch, training=True, of_padding=True, **options):
    """(outputs, gradients of all weights, in order), maybe without those of padding's states."""
    with tf.GradientTape() as tape:
        outputs = run(name, model, batch, training=training, **options)
        sines = [tf.sin(tf.cast(x, tf.float32)) for x in outputs]
        if not of_padding and "attention_mask" in batch and SYSTEMS[name].of_text:
            sines[0] *= tf.cast(batch["attention_mask"], tf.float32)[..., tf.newaxis]
        loss = tf.add_n([tf.reduce_sum(x) for x in sines])
    found = tape.gradient(loss, model.trainable_variables)
    # Of a table whose rows are gathered it is one of slices.
    return outputs, [tf.zeros([]) if x is None else tf.convert_to_tensor(x) for x in found]


@pytest.mark.slow
@pytest.mark.slow_cases(3)
@every_system("known sizes")
def test_xla_gives_the_same_outputs_and_gradients(name):
    model, batch = made(name, **SYSTEMS[name].static), tensors(batch_of(name, length=11))
    step = functools.partial(gradients, name, model, of_padding=False)
    (found, slopes), (wanted, wanted_slopes) = (
        x(batch) for x in (tf.function(step, jit_compile=True, autograph=False), step)
    )
    check_same(found, wanted, atol=1e-5)
    for one, other in zip(slopes, wanted_slopes, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.slow_cases(2)
@every_system("functional")
def test_a_functional_model_takes_any_length(name):
    inputs = {key: tf_keras.Input([None], dtype=tf.int32) for key in batch_of(name)}
    model = tf_keras.Model(inputs, run(name, model_of(name), inputs))
    for length in (3, 11):
        batch = batch_of(name, length=length)
        found = tf.nest.flatten(model(batch))
        check_same(found, run(name, model_of(name), batch), atol=1e-6)


@pytest.mark.slow
@pytest.mark.slow_cases(3)
@every_system()
def test_an_exported_model_takes_any_length(name, tmp_path):
    module = tf.Module()
    module.model = made(name)
    signature = [dict.fromkeys(batch_of(name), INTS)]
    module.encode = tf.function(
        lambda batch: run(name, module.model, batch), signature, autograph=False
    )
    tf.saved_model.save(module, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path))
    for length in (1, 3, 14, 15, 33):
        batch = batch_of(name, length=length)
        found = served.encode(tensors(batch))
        check_same(found, run(name, module.model, batch), atol=1e-5)


# Training.


RECOMPUTED = [
    *((name, 1, {}, None) for name in SYSTEMS),
    *((name, 1, {"output_hidden_states": True}, None) for name in having("beside")),
    *((name, 2, {}, tf.function) for name in SYSTEMS),
]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("name", "period", "options", "compiler"),
    RECOMPUTED,
    ids=[f"{name}-{period}-{[*options]}" for name, period, options, _ in RECOMPUTED],
)
def test_recomputed_activations_give_the_same_gradients(name, period, options, compiler):
    """Compared with gradients that are computed eagerly, of what is kept."""
    batch = tensors(batch_of(name, length=13))
    models = (made(name, grad_checkpointing_period=x) for x in (0, period))
    kept, recomputed = (functools.partial(gradients, name, x, **options) for x in models)
    (plain, wanted), (again, found) = (
        kept(batch),
        (compiler(recomputed, autograph=False) if compiler else recomputed)(batch),
    )
    check_same(again, plain, atol=1e-5)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("name", "rate"), [(name, x) for name, system in SYSTEMS.items() for x in system.dropouts]
)
def test_dropout_is_of_training_and_by_seeds(name, rate):
    model, batch = made(name, **{rate: 0.5}), batch_of(name, length=13)
    still = [run(name, model, batch) for _ in range(2)]
    check_same(*still, atol=0)
    check_same(still[0], run(name, model_of(name), batch))
    seeded = []
    for seed in ([1, 2], [1, 2], [3, 4]):
        with dropout_ops.seed_scope(seed):
            seeded.append(run(name, model, batch, training=True))
    check_same(*seeded[:2], atol=0)
    dropped = [run(name, model, batch, training=True) for _ in range(2)]
    firsts = [x[0].numpy()[mask_of(batch)] for x in (still[0], *seeded[1:], *dropped)]
    for place, one in enumerate(firsts):
        assert all(np.abs(one - other).max() > 0.01 for other in firsts[:place])


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@every_system(first="Longformer")
def test_half_precision_stays_finite_and_near(name, policy):
    """Also where a row is all padding."""
    batch, model = batch_of(name, batch=3, length=14), made(name, policy)
    if "attention_mask" in batch:
        batch["attention_mask"][2] = 0
    for training in (False, True):
        found, slopes = gradients(name, model, batch, training)
        wanted = run(name, model_of(name), batch, training=training)
        is_half = "half outputs" not in SYSTEMS[name].lacks
        dtype = policy.removeprefix("mixed_") if is_half else tf.float32
        assert all(x.dtype == dtype for x in found)
        limit = SYSTEMS[name].limits[policy]
        check_same(*(compared(name, batch, x) for x in (found, wanted)), atol=limit)
        assert all(np.isfinite(tf.cast(x, tf.float32)).all() for x in (*found, *slopes))


# What cannot be.


def wrong_configs():
    for name, system in {x.make: (name, x) for name, x in SYSTEMS.items()}.values():
        for rate in system.dropouts:
            yield name, {rate: 1.0}, f"`{rate}` must be at least 0 and below 1"
        for entry, (value, message) in system.refused.items():
            yield name, {entry: value}, message


@pytest.mark.parametrize(("name", "changes", "message"), list(wrong_configs()))
def test_a_config_that_cannot_be_is_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        type(model_of(name))({**model_of(name).config.to_dict(), **changes})


@pytest.mark.quick_cases(4)
@every_system("calls")
def test_calls_that_cannot_be_are_refused(name):
    model, words = model_of(name), np.zeros([1, 3, 8], np.float32)
    for given, message in (
        ({}, "Give `input_ids` or `inputs_embeds`, one of them"),
        ({"input_ids": ids(1, 3), "inputs_embeds": words}, "Give `input_ids` or `inputs_embeds`"),
        ({"input_ids": [[3, VOCAB_SIZE * 2]]}, "`input_ids` must be at least 0 and below "),
        (
            {"input_ids": ids(1, 3), "attention_mask": np.ones([1, 4])},
            r"`attention_mask` must have shape \[batch, length\]",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            model(**given)
    with pytest.raises(ValueError, match="`config` must be a `.*Config`"):
        type(model)(3)
