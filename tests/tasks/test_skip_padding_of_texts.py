"""With `skip_padding`, programs beside ETC's four compute the same with shorter inputs."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import inspection
from etcmodel.checkpoints import names
from etcmodel.models import modeling
from etcmodel.models.gmat.config import GmatConfig
from etcmodel.models.longformer.config import LongformerConfig
from etcmodel.ops.interception import intercept
from etcmodel.tasks.classification import task as classification
from etcmodel.tasks.majority_tagging import task as majority_tagging
from etcmodel.tasks.numerical_reasoning import task as numerical_reasoning
from etcmodel.tasks.triviaqa import task as triviaqa
from etcmodel.text import number_pieces
from etcmodel.training import task as task_lib
from etcmodel.training import trainer
from tests import vocabularies
from tests.models import etcs
from tests.models.random_weights import by_number

LENGTHS = (5, 9, 8)
WHOLE, KEPT = 40, 10  # Lengths are rounded up to even numbers.
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", number_pieces.START, number_pieces.END]
VOCAB += [str(digit) for digit in range(10)] + [f"##{digit}" for digit in range(10)]
SIZES = {"vocab_size": len(VOCAB), **etcs.sizes(intermediate_size=8), **etcs.NO_DROPOUT}
ETC = modeling.EtcConfig(
    **SIZES, local_radius=3, relative_pos_max_distance=2, relative_vocab_size=8
)
GMAT = GmatConfig(**SIZES, chunk_size=4, num_memory_tokens=2)
LONGFORMER = LongformerConfig(**SIZES, attention_window=4, max_position_embeddings=WHOLE + 2)
CASES = {
    "classification-etc": (classification.ClassificationTask, ETC, {"labels": ("a", "b")}),
    "classification-gmat": (classification.ClassificationTask, GMAT, {"labels": ("a", "b")}),
    "classification-longformer": (
        classification.ClassificationTask,
        LONGFORMER,
        {"labels": ("a", "b")},
    ),
    "majority_tagging": (majority_tagging.MajorityTask, GMAT, {"pairs": 2}),
    "numerical_reasoning": (numerical_reasoning.NumericalTask, GMAT, {"max_answer_length": 3}),
    "triviaqa-etc": (triviaqa.TriviaQaTask, ETC, {}),
    "triviaqa-longformer": (triviaqa.TriviaQaTask, LONGFORMER, {}),
}


vocab_file = vocabularies.fixture(VOCAB, vocabularies.write, "vocab_file")


def make_task(name, vocab_file, *, skip_padding):
    task_class, encoder_config, options = CASES[name]
    lengths = {"long_seq_length": WHOLE}
    if task_class not in (majority_tagging.MajorityTask, numerical_reasoning.NumericalTask):
        lengths["global_seq_length"] = 12
    return task_class(
        task_class.config_class(
            encoder_config=encoder_config,
            vocab_file=vocab_file,
            skip_padding=skip_padding,
            **lengths,
            **options,
        )
    )


def of_text(random):
    """Features of an encoder of one text, which are other ids where there is padding."""
    mask = np.arange(WHOLE) < np.array(LENGTHS)[:, np.newaxis]
    ids = random.integers(0, len(VOCAB), mask.shape)
    return {"input_ids": np.where(mask, ids, 1), "attention_mask": mask.astype(np.int64)}


def processed(random):
    """Features as those of `EtcProcessor`: three tokens of a question, then sentences of two."""
    text = of_text(random)
    mask, place = text["attention_mask"], np.arange(WHOLE)
    num_global = (np.array(LENGTHS)[:, np.newaxis] + 1) // 2 + 1
    is_global = (np.arange(12) < num_global).astype(np.int64)
    return {
        "token_ids": text["input_ids"] * mask,
        "segment_ids": np.where(place < 4, 0, 1) * mask,
        "example_ids": mask,
        "links": np.where(mask > 0, place // 2 + 1, -1) - (place == 0),
        "global_token_ids": 3 * is_global,
        "global_segment_ids": 0 * is_global,
        "global_example_ids": is_global,
    }


@functools.cache
def batch(name):
    """Features and labels: dict of int32 tensors."""
    random = np.random.default_rng(0)
    if name == "majority_tagging":
        features = of_text(random)
        tags = random.integers(0, 4, [3, WHOLE])
        features["labels"] = np.where(features["attention_mask"] > 0, tags, -1)
    elif name == "numerical_reasoning":
        features = {**of_text(random), "labels": np.array([[7, 5], [9, 5], [5, -100]])}
    else:
        features = processed(random)
    if name.startswith("classification"):
        features["labels"] = np.array([0, 1, 1])
    if name.startswith("triviaqa"):
        features["labels/starts"] = 1 * (np.arange(WHOLE) == [[4], [6], [5]])
        features["labels/ends"] = 1 * (np.arange(WHOLE) == [[4], [8], [7]])
    return {name: tf.constant(x, tf.int32) for name, x in features.items()}


def make_model(task):
    return by_number(task.build_model())


def run(task, model, features):
    """(outputs, losses, gradients, predictions, lengths of the encoder's inputs)."""
    lengths = []

    def observe(_, call, *args, **kwargs):
        given = [kwargs.get(name) for name in ("token_ids", "input_ids")]
        lengths.append(next(x.shape[1] for x in (*given, *args) if x is not None))
        return call(*args, **kwargs)

    with intercept(names.encoder_of(model), by=observe), tf.GradientTape() as tape:
        outputs = trainer.call_model(model, features, training=True, select=task.model_features)
        losses = task.loss(outputs, features)
    gradients = tape.gradient(losses["loss"], model.trainable_variables)
    predictions = trainer.call_model(model, features, training=False, select=task.model_features)
    gradients = [tf.convert_to_tensor(x) for x in gradients if x is not None]
    return outputs, losses, gradients, predictions, lengths


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", CASES)
def test_outputs_losses_and_gradients_are_those_of_the_whole_batch(name, vocab_file):
    found, expected = (
        run(task, make_model(task), batch(name))
        for task in (make_task(name, vocab_file, skip_padding=skip) for skip in (True, False))
    )
    assert (found[-1], expected[-1]) == ([KEPT], [WHOLE])
    is_token = np.arange(WHOLE) < np.array(LENGTHS)[:, np.newaxis]
    for one, other in ((found[0], expected[0]), (found[3], expected[3])):
        assert one.keys() == other.keys()
        for key, value in other.items():
            value, same = value.numpy(), one[key].numpy()
            assert value.shape == same.shape and value.dtype == same.dtype
            if value.shape[1] == WHOLE:
                value, same = value[is_token], same[is_token]
            np.testing.assert_allclose(same, value, atol=2e-5, err_msg=key)
    if name.startswith("triviaqa"):
        assert all(np.all(logits[:, KEPT:] == -1e9) for logits in found[0].values())
    for key, value in expected[1].items():
        np.testing.assert_allclose(found[1][key], value, rtol=1e-5, err_msg=key)
    assert len(found[2]) == len(expected[2])
    for gradient, value in zip(found[2], expected[2], strict=True):
        np.testing.assert_allclose(gradient, value, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_training_batches_are_made_by_the_number_of_tokens(name, vocab_file):
    """Whatever their ids, of which 0 may be a token's."""
    assert make_task(name, vocab_file, skip_padding=False).config.records().length_of() is None
    length_of = make_task(name, vocab_file, skip_padding=True).config.records().length_of()
    features = batch(name)
    rows = [{key: x[row] for key, x in features.items()} for row in range(3)]
    assert [int(length_of(row)) for row in rows] == list(LENGTHS)


@pytest.mark.parametrize("name", ["majority_tagging", "triviaqa-etc", "triviaqa-longformer"])
def test_attention_of_any_token_can_be_looked_at(name, vocab_file):
    rows = []
    for skip_padding in (True, False):
        model = make_model(make_task(name, vocab_file, skip_padding=skip_padding))
        (found, *_) = inspection.attention(
            model,
            task_lib.model_features(model, batch(name), training=False),
            layers=[0],
            heads=[inspection.MEAN],
            queries={"long": range(WHOLE)},
        )
        rows.append([found.dense(query, inspection.MEAN)["long"] for query in range(WHOLE)])
        assert model.skip_padding == skip_padding
    np.testing.assert_allclose(*rows, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["triviaqa-etc", "majority_tagging", "classification-gmat"])
def test_a_graph_for_any_lengths_as_of_an_export_tells_the_same(name, vocab_file):
    task = make_task(name, vocab_file, skip_padding=True)
    model = make_model(task)
    features = {key: batch(name)[key] for key in task.config.records().model_features()}
    specs = {key: tf.TensorSpec([None, None], tf.int32) for key in features}
    call = tf.function(
        lambda given: trainer.call_model(model, given, training=False), input_signature=[specs]
    )
    expected = trainer.call_model(model, features, training=False)
    for key, value in call(features).items():
        np.testing.assert_allclose(value, expected[key], atol=1e-5)
