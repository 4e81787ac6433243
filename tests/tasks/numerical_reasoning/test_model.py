"""The model and its loss, first weights, and what a run refuses."""

import functools

import numpy as np
import pytest

from etcmodel.checkpoints import names as names_lib
from etcmodel.tasks.numerical_reasoning import model
from etcmodel.tasks.numerical_reasoning import task as task_lib
from etcmodel.text import number_pieces
from etcmodel.tools.demos import numerical_reasoning as demo
from tests.models.gmat import genbert, small
from tests.tasks.slow_losses import slow_loss

LABELS = np.array([[3, 7, 29, -100, -100], [9, 9, 4, 5, 29]], np.int32)
BATCH = {
    "input_ids": small.ids(2, 9),
    "attention_mask": np.array([[1] * 9, [1] * 5 + [0] * 4], np.int32),
}


@functools.cache
def answer_model():
    made = model.AnswerModel(genbert.model(num_hidden_layers=1).config, 6)
    made.build()
    return made


@pytest.fixture
def task(tmp_path):
    """A function of changed options to a task with the generated data's vocabulary."""
    vocab = demo.vocabulary()
    (tmp_path / "vocab.txt").write_text("\n".join(vocab))
    sizes = {"num_hidden_layers": 1, "vocab_size": len(vocab)}

    def make(**changes):
        options = {
            "encoder_config": small.config(**sizes),
            "vocab_file": str(tmp_path / "vocab.txt"),
            "long_seq_length": 9,
            "max_answer_length": 6,
        }
        return task_lib.NumericalTask(task_lib.NumericalConfig(**{**options, **changes}))

    return make


def test_the_loss_is_over_all_tokens_but_padding():
    logits = np.random.default_rng(0).normal(size=[2, 5, 30]).astype(np.float32)
    found = model.loss({"logits": logits}, {"labels": LABELS})
    wanted = slow_loss(logits, LABELS)
    np.testing.assert_allclose([found["loss"], found["train_accuracy"]], wanted, rtol=1e-5)


def test_it_gives_logits_in_training_and_else_padded_sequences():
    made = answer_model()
    generator = made.generator
    wanted = generator(**BATCH, labels=LABELS)["logits"]
    np.testing.assert_allclose(made({**BATCH, "labels": LABELS}, training=True)["logits"], wanted)
    found = made({**BATCH, "labels": LABELS})["sequences"].numpy()
    sequences = generator.generate(BATCH, max_length=6)["sequences"].numpy()
    assert found.shape == (2, 6)
    np.testing.assert_array_equal(found[:, : sequences.shape[1]], sequences)
    assert not found[:, sequences.shape[1] :].any()


def test_answers_begin_and_end_with_the_vocabularys_tokens(task):
    one = task(untied_memory=True, chunk_size=2)
    made = one.build_model()
    config = made.generator.config
    vocab = demo.vocabulary()
    assert (config.decoder_start_token_id, config.eos_token_id) == tuple(
        map(vocab.index, (number_pieces.START, number_pieces.END))
    )
    assert config.has_own_memory_projections and config.chunk_size == 2
    assert not task(num_memory_tokens=0).build_model().generator.config.num_memory_tokens
    assert not config.has_own_memory_output


def test_it_begins_with_an_encoders_weights(task, tmp_path):
    one = task()
    made, encoder = one.build_model(), small.model(**_sizes(one))
    encoder.save_pretrained(tmp_path / "encoder")
    one.initialize(made, str(tmp_path / "encoder"))
    np.testing.assert_array_equal(made.generator.encoder.gmat(BATCH)[0], encoder(BATCH)[0])


UNTIED = {"untied_memory": True}
ROWS = [UNTIED, {"untied_memory": False}, {**UNTIED, "num_memory_tokens": 0}]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_kind_of_memory_begins_with_a_folder_of_untied_projections(task, tmp_path, row):
    one = task(**row)
    encoder = small.model(**_sizes(one), has_own_memory_projections=True)
    encoder.save_pretrained(tmp_path / "encoder")
    made = one.build_model()
    one.initialize(made, str(tmp_path / "encoder"))
    begun = names_lib.release_names(made.generator.encoder.gmat)
    known = names_lib.release_names(encoder)
    assert len(begun) == len(known) if row == UNTIED else len(begun) < len(known)
    for name, variable in begun.items():
        np.testing.assert_array_equal(variable, known[name], name)


def _sizes(one):
    config = one.config.encoder_config
    return {"num_hidden_layers": config.num_hidden_layers, "vocab_size": config.vocab_size}


def test_what_does_not_fit_is_refused(task, tmp_path):
    with pytest.raises(ValueError, match="Either --vocab_file or --spm_model_file must be given"):
        task(vocab_file=None).build_model()
    (tmp_path / "short.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]")
    with pytest.raises(ValueError, match="short.txt' lacks the tokens @"):
        task(vocab_file=str(tmp_path / "short.txt")).build_model()
