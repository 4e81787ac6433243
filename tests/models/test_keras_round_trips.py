"""Keras models around `EtcModel`: compiled, trained, evaluated, saved and loaded again."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import layers
from etcmodel.checkpoints import names
from etcmodel.models import input_utils, modeling, multihop_utils
from etcmodel.ops import relations
from tests.models import etcs

pytestmark = pytest.mark.slow

CONFIG = etcs.config(vocab_size=3000, relative_pos_max_distance=1, **etcs.NO_DROPOUT)
LENGTHS = {"long": 9, "global": 3}
FEATURES = {
    "token_ids": "long",
    "global_token_ids": "global",
    "long_paragraph_breakpoints": "long",
    "long_paragraph_ids": "long",
    "long_sentence_ids": "long",
    "global_paragraph_breakpoints": "global",
}


@pytest.fixture(params=["float32", "mixed_bfloat16", "mixed_float16"])
def policy(request):
    """Sets the global precision policy until the test ends."""
    before = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(request.param)
    yield request.param
    tf_keras.mixed_precision.set_global_policy(before)


@pytest.fixture(autouse=True)
def seed():
    tf_keras.utils.set_random_seed(0)


def examples():
    """Features of four examples. Ids are large: half precision would change them."""
    rng = np.random.default_rng(0)
    features = {name: rng.integers(-1, 3, [4, LENGTHS[side]]) for name, side in FEATURES.items()}
    for name in ("token_ids", "global_token_ids"):
        features[name] = rng.integers(2500, 3000, features[name].shape)
    for name in ("long_paragraph_breakpoints", "global_paragraph_breakpoints"):
        features[name] = np.maximum(features[name], 0) // 2
        features[name][:, -1] = 1
    return {name: values.astype(np.int32) for name, values in features.items()}


LABELS = np.random.default_rng(1).integers(0, 2, [4, LENGTHS["long"]])


def structure_of(features):
    """A structure with every kind of field: links, some that masks ignore, flags, relations."""
    structure = multihop_utils.make_structure(
        *(features[name] for name in list(FEATURES)[2:]),
        relative_pos_max_distance=1,
        use_hard_g2l_mask=True,
        ignore_hard_g2l_mask=features["global_paragraph_breakpoints"],
        l2g_linked_ids=features["long_sentence_ids"],
    )
    sentences = features["long_sentence_ids"]
    return structure.with_relations(
        relations.GlobalEdges(tf.stack([sentences[:, :2], sentences[:, :2]], 2), "is a", 6),
        relations.LinkIds(sentences, "names", 7, is_hard=True),
    )


def head():
    return tf_keras.layers.Dense(2, dtype="float32", name="head")


def functional_model():
    inputs = {name: tf_keras.Input([None], dtype=tf.int32, name=name) for name in FEATURES}
    encoder = modeling.EtcModel(CONFIG)
    long_output, global_output = encoder(
        inputs["token_ids"], inputs["global_token_ids"], structure=structure_of(inputs)
    )
    pooled = tf_keras.layers.GlobalAveragePooling1D(keepdims=True)(global_output)
    return tf_keras.Model(inputs, head()(long_output + pooled))


@tf_keras.utils.register_keras_serializable(package="round_trips")
class TokenClassifier(tf_keras.Model):
    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.encoder = modeling.EtcModel(config)
        self.head = head()

    def call(self, features, training=None):
        long_output, global_output = self.encoder(
            features["token_ids"],
            features["global_token_ids"],
            structure=structure_of(features),
            training=training,
        )
        return self.head(long_output + tf.reduce_mean(global_output, axis=1, keepdims=True))

    def get_config(self):
        return {**super().get_config(), "config": self.encoder.config.to_dict()}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def trained(model, run_eagerly):
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        tf_keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], run_eagerly=run_eagerly
    )
    model.fit(examples(), LABELS, epochs=2, batch_size=4, verbose=0)
    return model


# A SavedModel without the graphs of all layers, whose tracing takes long.
SAVED_MODEL = {"save_format": "tf", "save_traces": False}


def assert_same_evaluation(loaded, model):
    loaded.run_eagerly = model.run_eagerly
    actual, expected = (one.evaluate(examples(), LABELS, verbose=0) for one in (loaded, model))
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def assert_same_model(loaded, model):
    np.testing.assert_array_equal(loaded(examples()), model(examples()))
    assert list(names.release_names(loaded)) == list(names.release_names(model))


@pytest.mark.exhaustive
def test_a_functional_model_is_saved_and_loaded(policy, tmp_path):
    model = trained(functional_model(), run_eagerly=policy != "float32")
    for file, options in (("model.keras", {}), ("model.h5", {}), ("model", SAVED_MODEL)):
        model.save(str(tmp_path / file), **options)
        loaded = tf_keras.models.load_model(str(tmp_path / file))
        assert_same_model(loaded, model)
        assert [w.name for w in loaded.weights] == [w.name for w in model.weights]
    assert_same_evaluation(loaded, model)


@pytest.mark.slow_cases(1)
def test_a_subclassed_model_is_saved_and_loaded(policy, tmp_path):
    model = trained(TokenClassifier(CONFIG), run_eagerly=policy != "float32")
    for file, options in (("model.keras", {}), ("model", SAVED_MODEL)):
        model.save(str(tmp_path / file), **options)
        loaded = tf_keras.models.load_model(str(tmp_path / file))
        assert type(loaded) is TokenClassifier
        assert_same_model(loaded, model)
    assert_same_evaluation(loaded, model)
    # Keras itself refuses to write a whole subclassed model to HDF5; its weights it writes.
    model.save_weights(str(tmp_path / "weights.h5"))
    loaded = TokenClassifier.from_config(model.get_config())
    loaded(examples())
    loaded.load_weights(str(tmp_path / "weights.h5"))
    assert_same_model(loaded, model)


def test_a_loaded_model_trains_on_as_the_saved_one_does(tmp_path):
    model = trained(functional_model(), run_eagerly=True)
    model.save(str(tmp_path / "model.keras"))
    loaded = tf_keras.models.load_model(str(tmp_path / "model.keras"))
    loaded.run_eagerly = True
    for one in (model, loaded):
        one.fit(examples(), LABELS, batch_size=4, verbose=0)
    for weight, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(weight, expected, atol=1e-6)


@pytest.mark.parametrize(
    "layer_class, sizes",
    [
        (layers.GlobalLocalTransformerLayers, (1, 2, 2)),
        (layers.FusedGlobalLocalAttention, (2, 2)),
    ],
)
def test_layers_inside_take_the_structure_of_a_loaded_model_too(layer_class, sizes):
    layer = layer_class(8, 8, *sizes, relative_vocab_size=8)
    inputs = {name: tf_keras.Input([None], dtype=tf.int32, name=name) for name in FEATURES}
    vectors = [tf_keras.Input([None, 8], name=f"{name}_input") for name in LENGTHS]
    model = tf_keras.Model([inputs, vectors], layer(*vectors, structure=structure_of(inputs)))
    twin = tf_keras.models.model_from_json(model.to_json())
    twin.set_weights(model.get_weights())
    rng = np.random.default_rng(0)
    values = [rng.normal(size=[4, size, 8]).astype(np.float32) for size in LENGTHS.values()]
    arguments = [examples(), values]
    for output, expected in zip(twin(arguments), model(arguments), strict=True):
        np.testing.assert_array_equal(output, expected)


def test_the_config_alone_gives_the_model_whatever_the_structure_is_made_of():
    """Constants too: masks that are the same for all examples, and blocks of tokens."""
    ids = tf_keras.Input([4], dtype=tf.int32)
    structure, global_ids = input_utils.make_fixed_block_structure(tf.ones_like(ids), 2, 1)
    structure = structure._replace(
        use_hard_g2l_mask=True, ignore_hard_g2l_mask=tf.constant([[1, 0]])
    )
    model = tf_keras.Model(ids, modeling.EtcModel(CONFIG)(ids, global_ids, structure=structure))
    twin = tf_keras.models.model_from_json(model.to_json())
    twin.set_weights(model.get_weights())
    tokens = tf.constant([[1, 2, 3, 4]])
    for output, expected in zip(twin(tokens), model(tokens), strict=True):
        np.testing.assert_array_equal(output, expected)


def test_ids_may_come_as_floats_even_in_half_precision():
    """Keras gives floats where it does not know better; a cast would round large ids."""
    model = modeling.EtcModel(CONFIG, dtype="mixed_bfloat16")
    features = examples()
    ids = [features["token_ids"], features["global_token_ids"]]
    structure = structure_of(features)
    expected = model(*ids, structure=structure)
    outputs = model(*(x.astype(np.float32) for x in ids), structure=structure)
    for output, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("wrong", ["a word", 3, [0] * 12])
def test_something_else_than_a_structure_is_refused(wrong):
    with pytest.raises(ValueError, match="`structure` must be a GlobalLocalStructure. Received"):
        modeling.EtcModel(CONFIG)(tf.constant([[1]]), tf.constant([[1]]), structure=wrong)


@pytest.mark.exhaustive
def test_a_saved_model_with_the_graphs_of_all_layers_answers_alike(tmp_path):
    """What `save` writes if it is told nothing else: a server runs it without this package."""
    model = trained(functional_model(), run_eagerly=False)
    model.save(str(tmp_path / "model"), save_format="tf")
    loaded = tf_keras.models.load_model(str(tmp_path / "model"))
    np.testing.assert_allclose(loaded(examples()), model(examples()), atol=1e-6)
    assert_same_evaluation(loaded, model)
