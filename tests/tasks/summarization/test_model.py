"""The model in training and when it summarizes, and what a run refuses."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import inspection
from etcmodel.models import modeling
from etcmodel.models.seq2seq import inputs as seq2seq_inputs
from etcmodel.models.seq2seq.generation_config import GenerationConfig
from etcmodel.tasks.summarization import config as summarization_config
from etcmodel.tasks.summarization import model, task
from etcmodel.training import tensorboard_extras
from tests.models.led import models as led
from tests.models.longt5 import models as longt5
from tests.models.pegasus_x import models as pegasus_x
from tests.tasks import programs
from tests.tasks.summarization.raw_documents import write_vocab

PIECES = pathlib.Path(__file__).parents[2] / "fixtures" / "sentence_pieces" / "spiece.model"
LABELS = np.array([[3, 9, 2, -100], [4, 2, -100, -100]], np.int32)


def config(encoder_config=None, **changes):
    entries = {"long_seq_length": 12, "target_length": 6}
    entries["encoder_config"] = encoder_config or led.config()
    return summarization_config.SummarizationConfig(**{**entries, **changes})


def summarizer(made):
    """(`Summarizer`, the model in it) of a config, with larger weights than new ones have."""
    settings = task.generation_settings({"num_beams": 2}, 5, made.model_config(), None)
    found = model.Summarizer(made.model_config(), lambda: settings)
    found.build()
    rng = np.random.default_rng(0)
    for variable in found.trainable_variables:
        variable.assign_add(rng.normal(scale=0.3, size=variable.shape))
    return found, found.generator


def batch(length):
    """Texts of 7 and 5 tokens, padded."""
    mask = (np.arange(length) < [[7], [5]]).astype(np.int32)
    ids = np.pad(led.ids(2, 7), [[0, 0], [0, length - 7]])
    return {"input_ids": np.where(mask, ids, 1), "attention_mask": mask}


ONE_LAYER = {"encoder_layers": 1, "decoder_layers": 1}
SMALL = {
    "led": led.config(**ONE_LAYER, attention_window=4),
    "longt5": longt5.config(num_layers=1),
    "pegasus_x": pegasus_x.config(**ONE_LAYER),
}


@pytest.fixture
def eagerly():
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def test_logits_and_summaries_are_the_models_whatever_the_padding(eagerly):
    check_logits_and_summaries(SMALL["led"])


@pytest.mark.slow
@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("system", SMALL)
def test_they_are_in_graphs(system):
    check_logits_and_summaries(SMALL[system])


def check_logits_and_summaries(encoder_config):
    made, generator = summarizer(config(encoder_config))
    long, short = batch(40), batch(7)  # Of the longer one 8 places are encoded.
    logits = made({**long, "labels": LABELS}, training=True)["logits"]
    wanted = generator(**short, labels=LABELS)["logits"]
    np.testing.assert_allclose(logits, wanted, atol=1e-5)
    sequences = made(long, training=False)["sequences"].numpy()
    assert sequences.shape == (2, 6)  # The start token and --target_length's.
    wanted = generator.generate(**short, num_beams=2, max_new_tokens=5)["sequences"].numpy()
    np.testing.assert_array_equal(sequences[:, : wanted.shape[1]], wanted)
    assert not sequences[:, wanted.shape[1] :].any()


@pytest.mark.slow
def test_tensorboard_shows_what_the_encoder_looks_at():
    made, generator = summarizer(config())
    layer, sides = tensorboard_extras._attention_rows(made, batch(12))
    mean = inspection.MEAN
    (part,) = inspection.attention(generator, batch(7), layers=[layer], heads=[mean])
    rows = [part.dense(query, mean)["long"] for query in range(7)]
    assert layer == 1 and sides.keys() == {"long"}
    np.testing.assert_allclose(sides["long"], rows, atol=1e-6)
    with pytest.raises(ValueError, match="needs eager execution"):
        inspection.attention(made, batch(7))
    made(batch(7), training=False)
    with pytest.raises(ValueError, match="'summarizer' calls its encoder in a graph"):
        inspection.attention(made, batch(7))


def test_each_document_has_one_summary_which_is_never_drawn_by_chance():
    entries = {"num_return_sequences": 2, "do_sample": True, "num_beams": 3, "max_length": None}
    made = task.generation_settings({}, 5, led.config(), GenerationConfig(entries))
    assert (made.num_return_sequences, made.do_sample, made.num_beams) == (1, False, 3)
    assert made.max_length == 6  # A null is no bound: --target_length and the start token.
    entries = {"max_length": 4, "max_new_tokens": None}
    assert task.generation_settings({}, 5, led.config(), GenerationConfig(entries)).max_length == 4


def test_documents_are_batched_by_their_tokens():
    assert config().records().length_of() is None
    length_of = config(batch_by_length=True).records().length_of()
    assert [int(length_of({"attention_mask": row})) for row in batch(12)["attention_mask"]] == [
        7,
        5,
    ]


def test_the_first_token_of_an_led_is_global():
    assert config().model_config().global_positions == (0,)
    other = led.config(global_positions=(0, 3))
    assert config(other).model_config() == other


def test_the_smoothed_loss_is_that_of_soft_labels():
    logits = np.random.default_rng(0).normal(size=[2, 4, 11])
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for share in (0.0, 0.1):
        found = seq2seq_inputs.loss(logits.astype(np.float32), LABELS, share)
        by_token = [
            -(1 - share) * row[label] - share * row.mean()
            for row, label in zip(log_probs.reshape(-1, 11), LABELS.ravel(), strict=True)
            if label >= 0
        ]
        assert float(found) == pytest.approx(np.mean(by_token), rel=1e-5)


def test_what_does_not_fit_the_model_is_refused(tmp_path):
    vocab = write_vocab(tmp_path)
    with pytest.raises(ValueError, match="`min_length` must be at most `max_length`.* 9, 7"):
        task.SummarizationTask(config(min_new_tokens=8)).run_files()  # Of --target_length.
    most = led.config().max_decoder_position_embeddings
    task.SummarizationTask(config(max_new_tokens=most)).run_files()
    with pytest.raises(ValueError, match=f"at most {most + 1}, as the decoder has {most} pos"):
        task.SummarizationTask(config(max_new_tokens=most + 1)).run_files()
    with pytest.raises(ValueError, match="has ids up to .*, the model's `vocab_size` is 30"):
        config(vocab_file=vocab).tokenizer()
    with pytest.raises(ValueError, match="The model's `eos_token_id` is 5, that of the vocabulary"):
        config(led.config(vocab_size=2000, eos_token_id=5), vocab_file=vocab).tokenizer()
    assert config(led.config(vocab_size=2000), vocab_file=vocab).tokenizer().eos_id == 2
    with pytest.raises(ValueError, match="`target_length` .* `max_position_embeddings`, 12. .* 13"):
        config(
            etcmodel.BigBirdPegasusConfig(vocab_size=9, max_position_embeddings=12),
            target_length=13,
        )
    etc = modeling.EtcConfig(vocab_size=9)
    with pytest.raises(ValueError, match="Texts are generated by models .* Received: 'etc'"):
        model.Summarizer(etc, None)


def test_a_run_is_saved_as_a_folder_with_its_vocabulary_and_settings(eagerly, tmp_path):
    made = config(
        pegasus_x.config(**ONE_LAYER, vocab_size=600),
        spm_model_file=str(PIECES),
        piece_id_offset=7,
        num_beams=2,
    )
    of_run = task.SummarizationTask(made)
    of_run.generation_config = GenerationConfig({"length_penalty": 2.0, "do_sample": True})
    model = of_run.make_model()
    model.build()
    saved, processor = of_run.pretrained_parts(model)
    etcmodel.save_pretrained(saved, tmp_path / "mine", processor)
    found = etcmodel.from_pretrained(tmp_path / "mine")
    words = of_run.tokenizer.encode("The river is long.", None)[0]
    features = found.processor("The river is long.")
    assert list(features["input_ids"][0]) == words
    entries = found.generation_config.entries
    assert (entries["num_beams"], entries["length_penalty"], entries["do_sample"]) == (2, 2, False)
    assert entries["max_new_tokens"] == made.target_length
    wanted = model(features, training=False)["sequences"].numpy()
    sequences = found.generate(features)["sequences"].numpy()
    np.testing.assert_array_equal(sequences, wanted[:, : sequences.shape[1]])


def test_that_of_an_led_has_the_global_token_and_its_vocabulary(tmp_path):
    made = config(led.config(vocab_size=2000), vocab_file=write_vocab(tmp_path))
    of_run = task.SummarizationTask(made)
    model = of_run.make_model()
    model.build()
    saved, processor = of_run.pretrained_parts(model)
    etcmodel.save_pretrained(saved, tmp_path / "mine", processor)
    found = etcmodel.from_pretrained(tmp_path / "mine")
    assert found.config.global_positions == (0,)
    (ids,) = found.processor("rain fell .")["input_ids"]
    assert list(ids) == of_run.tokenizer.encode("rain fell .", None)[0]


def test_what_goes_on_with_the_best_checkpoint_of_a_run_keeps_its_settings(tmp_path):
    best = tmp_path / "run" / "best"
    best.mkdir(parents=True)
    (tmp_path / "run" / "run_config.json").write_text("{}")
    settings = GenerationConfig({"num_beams": 4}).to_json_string()
    (tmp_path / "run" / "generation_config.json").write_text(settings)
    of_run = task.SummarizationTask(config())
    of_run.read_folder(str(best))
    assert of_run.generation_config.entries == {"num_beams": 4}


def test_a_run_tells_how_it_becomes_a_folder(tmp_path):
    options = {"task": {"summary_fields": ["summary"], "etc_config": {"model_type": "led"}}}
    (tmp_path / "run_config.json").write_text(json.dumps(options))
    with pytest.raises(ValueError, match="`etcmodel save_pretrained summarization --output_dir=/"):
        etcmodel.from_pretrained(tmp_path)


def test_a_model_that_is_not_trained_here_is_exported_with_its_settings(tmp_path):
    encoder_config = dataclasses.replace(SMALL["led"], vocab_size=2000)
    made = config(encoder_config, vocab_file=write_vocab(tmp_path))
    of_run = task.SummarizationTask(made)
    of_run.generation_config = GenerationConfig({"num_beams": 3, "max_length": 7})
    model = of_run.make_model()
    model.build()
    saved, processor = of_run.pretrained_parts(model)
    etcmodel.save_pretrained(saved, tmp_path / "mine", processor)
    given = {"long_seq_length": 12, "target_length": 6, "output_dir": tmp_path / "as_it_is"}
    given |= {"run_mode": "export", "init_checkpoint": tmp_path / "mine"}
    programs.fine_tune("summarization", **given)
    (path,) = (tmp_path / "as_it_is" / "export").glob("*/assets/generation_config.json")
    told = json.loads(path.read_text())
    assert (told["num_beams"], told["max_length"]) == (3, 7)
