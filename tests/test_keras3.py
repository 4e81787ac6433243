"""Models inside of Keras 3: `etcmodel.keras3`, and what is refused where the two Keras meet."""

import functools
import os
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel import keras3
from etcmodel.layers import sublayers
from etcmodel.models import heads, input_utils
from tests.models import head_cases
from tests.models.gmat import genbert
from tests.models.gmat import small as gmat_models
from tests.models.led import models as led_models
from tests.models.longformer import small as longformer_models
from tests.models.longformer_char_lm import char_models
from tests.models.longt5 import models as longt5_models
from tests.models.pegasus_x import models as pegasus_models

IDS = np.array([[5, 6, 7, 8, 9, 4, 0], [6, 5, 9, 2, 0, 0, 0]], np.int32)
MASK = (IDS > 0).astype(np.int32)
TEXT = {"input_ids": IDS, "attention_mask": MASK}
PAIR = {**TEXT, "decoder_input_ids": IDS[:, :3]}
LABELS = np.array([1, 0])


def encoder(**changes):
    """A built `EtcModel` with far from equal outputs."""
    made = etcmodel.EtcModel(head_cases.config(initializer_range=0.5, **changes))
    sublayers.build_sublayer(made, None)
    return made


def classifier(**changes):
    return head_cases.make("sequence", initializer_range=0.5, **changes)


MODELS = {
    "ETC": (encoder, {"token_ids": IDS, "links": np.tile(np.arange(7) // 3, [2, 1])}),
    "ETC of ids": (encoder, IDS),
    "GMAT": (gmat_models.model, TEXT),
    "GMAT, encoder and decoder": (genbert.model, PAIR),
    "Longformer": (longformer_models.model, TEXT),
    "Longformer's head": (
        lambda: etcmodel.LongformerForSequenceClassification(longformer_models.config()),
        TEXT,
    ),
    "Longformer of characters": (char_models.model, IDS),
    "LED": (led_models.model, PAIR),
    "LongT5": (longt5_models.model, PAIR),
    "PEGASUS-X": (pegasus_models.model, PAIR),
    **{
        f"head: {name}": (lambda name=name: head_cases.make(name), head_cases.data(name, 2)[0])
        for name in head_cases.CASES
    },
}


def called(model, features):
    """What a model returns without Keras 3."""
    if isinstance(model, etcmodel.EtcModel):
        return model(**model.structure(features))
    return model(features)


def symbols(features):
    """Inputs of Keras 3 for arrays of any length: a dict of them, or one."""
    inputs = {
        name: keras.Input([None, *x.shape[2:]], dtype="int32", name=name)
        for name, x in (features if isinstance(features, dict) else {"ids": features}).items()
    }
    return inputs if isinstance(features, dict) else inputs["ids"]


def assert_same(actual, expected, **tolerance):
    for one, other in zip(*map(tf.nest.flatten, (actual, expected)), strict=True):
        np.testing.assert_allclose(
            *(tf.cast(x, tf.float32) for x in (one, other)), **{"rtol": 0, **tolerance}
        )


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_a_keras_3_layer_and_comes_back_from_its_config(name):
    make, features = MODELS[name]
    model = make()
    layer = keras3.layer(model)
    expected = called(model, features)
    assert_same(layer(features), expected)
    assert {id(x.value) for x in layer.weights} == {id(x) for x in model.weights}
    assert [x.path for x in layer.trainable_weights] == [
        x.name.removesuffix(":0") for x in model.trainable_weights
    ]
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert [x.path for x in again.weights] == [x.path for x in layer.weights]
    again.set_weights(layer.get_weights())
    assert_same(again(features), expected)


def functional(model, features, **options):
    inputs = symbols(features)
    return keras.Model(inputs, keras3.layer(model, **options)(inputs))


class Around(keras.Model):
    """A subclassed model: two classes of the mean of an encoder's long output."""

    def __init__(self, model):
        super().__init__()
        self.encoder = keras3.layer(model)
        self.classes = keras.layers.Dense(2)

    def call(self, features):
        return self.classes(keras.ops.mean(self.encoder(features)[0], axis=1))


def crossentropy(module):
    return module.losses.SparseCategoricalCrossentropy(from_logits=True)


def batch():
    return head_cases.data("sequence", 8)


def test_fit_trains_the_models_own_weights_as_tf_keras_does():
    """One step of Adam from the same weights, and the same gradients before it."""
    features, labels = batch()
    model, twin = classifier(), classifier()
    twin.set_weights(model.get_weights())
    outer = functional(model, features)
    with tf.GradientTape(persistent=True) as tape:
        losses = [crossentropy(keras)(labels, one(features)) for one in (outer, twin)]
    gradients = [
        tape.gradient(loss, one.trainable_variables)
        for loss, one in zip(losses, (outer, twin), strict=True)
    ]
    assert_same(*([tf.convert_to_tensor(x) for x in one] for one in gradients), atol=1e-6)
    outer.compile(keras.optimizers.Adam(0.01), crossentropy(keras), run_eagerly=True)
    twin.compile(tf_keras.optimizers.Adam(0.01), crossentropy(tf_keras), run_eagerly=True)
    before = twin.get_weights()
    for one in (outer, twin):
        one.fit(features, labels, batch_size=8, verbose=0)
    assert max(np.abs(x - y).max() for x, y in zip(before, twin.get_weights(), strict=True)) > 5e-3
    assert_same(model.get_weights(), twin.get_weights(), atol=1e-5)


def test_a_subclassed_model_trains_with_callbacks_metrics_and_validation(tmp_path):
    features, labels = batch()
    model = encoder()
    outer = Around(model)
    outer.compile("sgd", crossentropy(keras), metrics=["accuracy"], run_eagerly=True)
    before = model.get_weights()
    history = outer.fit(
        features,
        labels,
        validation_data=(features, labels),
        epochs=9,
        verbose=0,
        callbacks=[
            keras.callbacks.EarlyStopping("val_loss", min_delta=100.0),
            keras.callbacks.ModelCheckpoint(
                tmp_path / "{epoch}.weights.h5", save_weights_only=True
            ),
        ],
    )
    assert len(history.history["val_accuracy"]) == 2
    moved = [np.abs(x - y).max() > 0 for x, y in zip(before, model.get_weights(), strict=True)]
    assert sum(moved) > 10
    after = model.get_weights()
    model.set_weights(before)
    outer.load_weights(tmp_path / "2.weights.h5")
    assert_same(model.get_weights(), after)


@pytest.mark.slow
def test_dropout_is_there_in_training_alone():
    features, labels = batch()
    model = classifier(hidden_dropout_prob=0.5)
    layer = keras3.layer(model)
    assert_same(layer(features), layer(features, training=False))
    differing = [np.abs(layer(features) - layer(features, training=True)).max() for _ in range(2)]
    assert min(differing) > 1e-3 and differing[0] != differing[1]
    outer = keras.Sequential([keras.Input([None], dtype="int32"), layer])
    outer.compile(keras.optimizers.SGD(0.0), crossentropy(keras), run_eagerly=True)
    trained = outer.fit(features["token_ids"], labels, verbose=0).history["loss"][0]
    assert abs(trained - outer.evaluate(features["token_ids"], labels, verbose=0)) > 1e-3


@pytest.mark.slow
def test_what_is_frozen_stays_frozen_in_the_file_too(tmp_path):
    features, labels = batch()
    model = classifier()
    model.encoder.trainable = False
    outer = functional(model, features)
    layer = outer.layers[-1]
    assert {x.path.split("/")[1] for x in layer.non_trainable_weights} == {"etc_document_bert"}
    outer.compile("adam", crossentropy(keras), run_eagerly=True)
    before = [x.numpy() for x in model.weights]
    outer.fit(features, labels, verbose=0)
    moved = [np.abs(x - y).max() > 0 for x, y in zip(before, model.weights, strict=True)]
    assert sum(moved) == len(layer.trainable_weights) > 1
    layer.trainable_weights[0].trainable = False  # As one freezes a single weight in Keras 3.
    outer.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_same(again(features), outer(features))
    paths = [[x.path for x in one.trainable_weights] for one in (again, outer)]
    assert paths[0] == paths[1]
    layer.trainable = False
    assert layer.trainable_weights == []
    frozen = type(layer).from_config(layer.get_config())
    frozen.trainable = True
    assert len(frozen.trainable_weights) == sum(moved)


def test_two_heads_over_one_encoder_train_it_together():
    shared = encoder()
    sequence = keras3.layer(heads.EtcForSequenceClassification(shared, name="one"))
    tokens = keras3.layer(heads.EtcForTokenClassification(shared, name="other"))
    outer = keras.Model()
    outer.first, outer.second = sequence, tokens
    assert len(outer.weights) == len(sequence.weights) + len(tokens.weights) - len(shared.weights)
    common = {id(x) for x in sequence.weights} & {id(x) for x in tokens.weights}
    values = {id(x.value) for x in outer.weights if id(x) in common}
    assert values == {id(x) for x in shared.weights}


def test_dense_masks_and_labels_are_features_of_the_encoder_too():
    model = encoder()
    sides = input_utils.make_global_local_transformer_side_inputs(
        long_breakpoints=np.array([[0, 1, 0, 0, 0, 1, 0], [0, 0, 1, 1, 0, 0, 0]]),
        global_breakpoints=np.array([[0, 1], [0, 1]]),
        sentence_ids=np.tile(np.arange(7) // 4, [2, 1]),
        local_radius=4,
        relative_pos_max_distance=3,
        use_hard_g2l_mask=False,
        use_hard_l2g_mask=False,
    )
    sides = {name: x for name, x in sides.to_dict().items() if x is not None}
    features = {"token_ids": IDS, "global_token_ids": IDS[:, :2], **sides}
    expected = model(**features)
    assert_same(keras3.layer(model)(features), expected)


def test_relations_are_features_of_the_encoder_too():
    model = encoder()
    edges = np.array([[[0, 1], [1, 0]], [[1, 1], [-1, -1]]], np.int32)
    features = {"token_ids": IDS, "global_token_ids": IDS[:, :2], "edges/cites": edges}
    layer = keras3.layer(model, relation_names=["cites"])
    expected = model(**model.structure(features, ["cites"]))
    assert_same(layer(features), expected)
    assert layer.get_config()["relation_names"] == ["cites"]
    plain = layer({**features, "edges/cites": -np.ones_like(edges)})
    assert np.abs(plain[1] - expected[1]).max() > 1e-3
    with pytest.raises(ValueError, match="^`edges/cites` is of no relation of the model"):
        keras3.layer(model)(features)


def test_gradients_reach_the_layers_before():
    model = longformer_models.model()
    embeddings = tf.random.normal([2, 7, 8])
    gradients = []
    for call in (model, functools.partial(keras3.layer(model), training=True)):
        with tf.GradientTape() as tape:
            tape.watch(embeddings)
            loss = tf.reduce_sum(
                call({"inputs_embeds": embeddings, "attention_mask": MASK})[0] ** 3
            )
        gradients.append(tape.gradient(loss, embeddings))
    assert np.abs(gradients[0]).max() > 0.1
    assert_same(*gradients, atol=1e-4)


@pytest.fixture
def policies():
    """Sets the policies of Keras 3 and of tf_keras, until the test ends."""

    def use(of_keras, of_tf_keras):
        keras.config.set_dtype_policy(of_keras)
        tf_keras.mixed_precision.set_global_policy(of_tf_keras)

    yield use
    use("float32", "float32")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_is_that_of_both(policy, policies, tmp_path):
    policies(policy, policy)
    features, labels = batch()
    model = classifier()
    outer = functional(model, features)
    assert {x.dtype for x in outer.weights} == {"float32"}
    assert keras3.layer(encoder())(IDS)[0].dtype == policy.removeprefix("mixed_")
    outer.compile(keras.optimizers.SGD(0.1), crossentropy(keras), run_eagerly=True)
    before = model.get_weights()
    outer.fit(features, labels, verbose=0)
    moved = [np.abs(x - y).max() > 0 for x, y in zip(before, model.get_weights(), strict=True)]
    assert sum(moved) > 10
    outer.save(tmp_path / "model.keras")
    policies("float32", "float32")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_same(again(features), outer(features))
    assert again.layers[-1].model.encoder.compute_dtype == policy.removeprefix("mixed_")


def test_a_model_of_another_precision_is_refused(policies):
    model = classifier()
    policies("mixed_bfloat16", "float32")
    with pytest.raises(
        ValueError,
        match=r"^The model 'sequence_classification' computes in 'float32', and this layer is to "
        r"compute in 'mixed_bfloat16'. Call `tf_keras.mixed_precision.set_global_policy\("
        r"'mixed_bfloat16'\)` before the model is made, or give `dtype='float32'`.$",
    ):
        keras3.layer(model)
    assert keras3.layer(model, dtype="float32").compute_dtype == "float32"


def answers():
    """A Longformer's head of tokens, some without a label."""
    config = longformer_models.config()
    return etcmodel.LongformerForTokenClassification(config, num_labels=3)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "make, data, weights",
    [
        (classifier, batch(), np.arange(8.0)),
        (lambda: head_cases.make("question"), head_cases.data("question", 4), None),
        (answers, (TEXT, np.where(MASK, IDS % 3, -100)), None),
    ],
    ids=["of classes", "of answers", "of tokens"],
)
def test_the_loss_of_a_head_is_as_in_tf_keras(make, data, weights, tmp_path):
    model = make()
    losses = keras3.loss(model)
    losses = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(losses))
    outer = keras.Sequential([keras3.layer(model)])
    outer.compile("sgd", losses, run_eagerly=True)
    model.compile(metrics=[], run_eagerly=True)
    expected, actual = (
        one.evaluate(*data, sample_weight=weights, verbose=0, return_dict=True)["loss"]
        for one in (model, outer)
    )
    assert actual == pytest.approx(expected, rel=1e-6) and actual > 0.1


def test_an_encoder_has_no_loss():
    with pytest.raises(ValueError, match="^`head` must be a model with a head .*: EtcModel$"):
        keras3.loss(encoder())


@tf_keras.utils.register_keras_serializable(package="tests")
class Penalized(heads.EtcForSequenceClassification):
    head_type = "penalized"

    def head(self, long_output, global_output, inputs, training):
        self.add_loss(tf.reduce_mean(long_output**2))
        return super().head(long_output, global_output, inputs, training)


@pytest.mark.slow
def test_losses_that_a_model_adds_are_the_layers():
    features, labels = batch()
    model = Penalized(head_cases.config(initializer_range=0.5))
    outer = functional(model, features)
    outer.compile(keras.optimizers.SGD(0.0), crossentropy(keras), run_eagerly=True)
    plain = crossentropy(keras)(labels, outer(features))
    (added,) = outer.losses
    assert added > 0.5
    assert outer.evaluate(features, labels, verbose=0) == pytest.approx(float(plain + added))


class TestRefusals:
    """One line each, which names the thing and says what to use."""

    ADVICE = r"or `etcmodel.keras3.layer\(model\)` in a Keras 3 project"

    def refuses(self, words):
        return pytest.raises(ValueError, match=f"^{words}[^\n]*{self.ADVICE}[^\n]*$")

    @pytest.mark.parametrize(
        "argument, given, known",
        [
            ("optimizer", keras.optimizers.Adam(), "optimizers.Adam"),
            ("optimizer", keras.optimizers.Muon(), "optimizers.Optimizer"),
            ("loss", crossentropy(keras), "losses.SparseCategoricalCrossentropy"),
            ("loss", {"logits": keras.losses.Hinge()}, "losses.Hinge"),
            ("metrics", [keras.metrics.AUC()], "metrics.AUC"),
            ("weighted_metrics", [["accuracy", keras.metrics.AUC()]], "metrics.AUC"),
        ],
    )
    def test_compile(self, argument, given, known):
        own = type(tf.nest.flatten(given)[-1]).__name__
        words = f"`{argument}`: this is Keras 3's {own}. Use `tf_keras.{known}`"
        with self.refuses(words):
            classifier().compile(**{argument: given})

    def test_callbacks(self):
        class Own(keras.callbacks.Callback):
            """Of no class that tf_keras has."""

        features, labels = batch()
        model = classifier()
        model.compile()
        stopping = [keras.callbacks.EarlyStopping()]
        words = (
            "`callbacks`: this is Keras 3's EarlyStopping. Use `tf_keras.callbacks.EarlyStopping`"
        )
        with self.refuses(words):
            model.fit(features, labels, callbacks=stopping)
        with self.refuses(words):
            model.fit(features, labels, 8, 1, 0, stopping)
        with self.refuses(words):
            model.evaluate(features, labels, callbacks=stopping[0])
        with self.refuses("`callbacks`: this is Keras 3's Own. Use `tf_keras.callbacks.Callback`"):
            model.predict(features, callbacks=[Own()])

    @pytest.mark.parametrize("make", [classifier, encoder])
    def test_symbols_of_keras_3(self, make):
        model = make()
        with self.refuses(f"Layer '{model.name}' .* got an input of Keras 3"):
            model(
                keras.Input([None], dtype="int32"),
                **({} if make is classifier else {"global_token_ids": IDS}),
            )

    def test_a_model_of_keras_3_around(self):
        model = classifier()

        class Bare(keras.Model):
            def call(self, ids):
                return model(ids)

        with self.refuses("Layer 'sequence_classification' .* is inside the Keras 3 layer 'bare'"):
            Bare()(IDS)

    def test_a_sequential_of_keras_3(self):
        """Keras's own words, in a line; nothing of ours is asked."""
        with pytest.raises(ValueError, match="^Only instances of `keras.Layer` can be [^\n]*$"):
            keras.Sequential([classifier()])


def test_what_is_no_built_model_is_refused():
    with pytest.raises(ValueError, match="^`model` must be an encoder or a head of .*: Dense$"):
        keras3.layer(keras.layers.Dense(2))
    with pytest.raises(ValueError, match="^The model 'dense.*' must be built, and its weights"):
        keras3.layer(tf_keras.layers.Dense(2))


def test_errors_of_the_model_are_told_in_its_own_line():
    layer = keras3.layer(classifier())
    for ids in (keras.Input([None], dtype="int32"), IDS):
        with pytest.raises(ValueError, match="^There is no feature `token_ids` [^\n]*$"):
            layer({"input_ids": ids})
    with pytest.raises(ValueError, match=r"^Token ids must be integers: .*float32$"):
        keras.Sequential([layer])(IDS)
    with pytest.raises(ValueError, match=r"^`token_ids` must .*Received.*30"):
        layer(IDS + 30)


def test_files_of_other_weights_and_models_are_refused():
    layer = keras3.layer(classifier())
    config = layer.get_config()
    config["model"]["registered_name"] = "os>system"
    with pytest.raises(ValueError, match="^There is no model of the name 'os>system'. Import the"):
        type(layer).from_config(config)
    store = {}
    layer.save_own_variables(store)
    other = keras3.layer(classifier(max_absolute_position_embeddings=9))
    with pytest.raises(ValueError, match="not those of the file. Only one of both has: .*position"):
        other.load_own_variables(store)


def run(code, *words, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_the_package_alone_imports_neither_tensorflow_nor_keras():
    code = "import sys, etcmodel; assert not {'keras', 'tensorflow', 'tf_keras'} & {*sys.modules}"
    assert run(code).returncode == 0
    assert "keras3" not in etcmodel.__all__


@pytest.mark.parametrize("version, backend", [("2.15.0", "tensorflow"), ("3.10.0", "torch")])
def test_another_keras_is_refused(version, backend, monkeypatch):
    other = types.SimpleNamespace(
        __version__=version, backend=types.SimpleNamespace(backend=lambda: backend)
    )
    monkeypatch.setitem(sys.modules, "keras", other)
    found = f"Found: Keras {version} with the backend '{backend}'$"
    with pytest.raises(ImportError, match=f"^etcmodel.keras3 needs Keras 3 [^\n]*{found}"):
        keras3._keras()


@pytest.mark.slow
def test_a_backend_that_is_not_installed_is_refused_in_a_line():
    done = run("import etcmodel; etcmodel.keras3", KERAS_BACKEND="jax")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: etcmodel.keras3 needs Keras 3 with the backend TensorFlow")
    assert "set KERAS_BACKEND=tensorflow before Keras is imported. Found: " in last


IN_ANOTHER_PROCESS = """
import sys
import numpy as np
from etcmodel import keras3
import keras

model = keras.saving.load_model(sys.argv[1])
given = np.load(sys.argv[2])
np.testing.assert_allclose(model(given["ids"]), given["logits"], atol=1e-6)
print(model.evaluate(given["ids"], given["labels"], verbose=0))
model.fit(given["ids"], given["labels"], verbose=0)
model.save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_file_is_loaded_in_another_process_and_goes_on(tmp_path):
    features, labels = batch()
    ids, model = features["token_ids"].astype(np.int32), classifier()
    outer = functional(model, ids)
    # Adam would make steps of what is rounding in gradients of 0.
    outer.compile(keras.optimizers.SGD(0.05, momentum=0.9), keras3.loss(model), run_eagerly=True)
    outer.fit(ids, labels, verbose=0)
    loss = outer.evaluate(ids, labels, verbose=0)
    outer.save(tmp_path / "model.keras")
    np.savez(tmp_path / "given.npz", ids=ids, labels=labels, logits=outer(ids))
    done = run(IN_ANOTHER_PROCESS, tmp_path / "model.keras", tmp_path / "given.npz")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(loss, rel=1e-5)
    outer.fit(ids, labels, verbose=0)
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_same(again.get_weights(), outer.get_weights(), atol=1e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["ETC", "LED", "LongT5"])
def test_graphs_give_the_gradients_of_eager_calls(name):
    make, features = MODELS[name]
    layer = keras3.layer(make())
    features = tf.nest.map_structure(tf.convert_to_tensor, features)

    def gradients(features):
        with tf.GradientTape() as tape:
            outputs = tf.nest.flatten(layer(features, training=True))
            loss = sum(tf.reduce_sum(x**2) for x in outputs if x is not None)
        found = tape.gradient(loss, layer.trainable_weights)
        return [tf.zeros(1) if x is None else x for x in found]

    for one, other in zip(tf.function(gradients)(features), gradients(features), strict=True):
        # Of projections for global tokens, where there are none: eager calls leave them out.
        assert one.shape == other.shape or not np.any(one)
        np.testing.assert_allclose(one, tf.broadcast_to(other, one.shape), atol=1e-3)


@pytest.mark.exhaustive
def test_steps_that_xla_compiles_are_the_same():
    features, labels = batch()
    weights = []
    for jit_compile in (False, True):
        tf_keras.utils.set_random_seed(0)
        model = classifier()
        outer = functional(model, features)
        outer.compile(keras.optimizers.SGD(0.1), crossentropy(keras), jit_compile=jit_compile)
        outer.fit(features, labels, epochs=2, batch_size=8, verbose=0)
        assert outer.jit_compile == jit_compile
        weights.append(model.get_weights())
    assert_same(*weights, atol=1e-5)


@pytest.mark.slow
def test_what_xla_cannot_compile_is_refused_in_a_line():
    """The length of the global input follows from the links, which XLA does not know."""
    features, labels = batch()
    features = {**features, "links": np.zeros_like(features["token_ids"])}
    outer = functional(classifier(), features)
    outer.compile("sgd", crossentropy(keras), jit_compile=True)
    words = (
        "^`global_token_ids` must be given beside `links` in a function that XLA compiles[^\n]*$"
    )
    with pytest.raises(ValueError, match=words):
        outer.fit(features, labels, verbose=0)


@pytest.mark.exhaustive
def test_an_export_answers_without_keras(tmp_path):
    features, _ = batch()
    outer = functional(classifier(), features)
    outer.export(tmp_path / "export", verbose=False)
    served = tf.saved_model.load(tmp_path / "export")
    inputs = {name: tf.cast(x, tf.int32) for name, x in features.items()}
    assert_same(served.serve(inputs), outer(features), atol=1e-6)
