"""Two texts stand in a row as the model's own processor has them, in programs and in Python.

Until `pair_format` became an option, programs arranged them as a BERT's tokenizer for all models.
"""

import json

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

import etcmodel
from etcmodel import options
from etcmodel.finetuning import model_folder, trained_run
from etcmodel.models import heads, sequence_classifiers
from etcmodel.tasks.classification import config, examples, features
from etcmodel.text import pair_formats
from tests.tasks import programs, small_encoders
from tests.tasks.classification.raw_texts import VOCAB, input_config, tokenizer
from tests.tasks.classification.test_preprocess import lines, run

PAIR = {"question": "it is good", "documents": ["it is very bad"]}
FIRST, SECOND = (
    [VOCAB.index(x) for x in text.split()] for text in ("it is good", "it is very bad")
)
CLS, SEP = VOCAB.index("[CLS]"), VOCAB.index("[SEP]")
SYSTEMS = {
    "etc": (etcmodel.EtcProcessor, heads.EtcForSequenceClassification, {"segment_vocab_size": 2}),
    "etc_modernbert": (etcmodel.EtcProcessor, heads.EtcForSequenceClassification, {}),
    "longformer": (etcmodel.LongformerProcessor, etcmodel.LongformerForSequenceClassification, {}),
    "big_bird": (etcmodel.BigBirdProcessor, etcmodel.BigBirdForSequenceClassification, {}),
    "gmat": (etcmodel.GmatProcessor, etcmodel.GmatForSequenceClassification, {}),
    "modernbert": (etcmodel.ModernBertProcessor, etcmodel.ModernBertForSequenceClassification, {}),
}


def of_program(tmp_path, pair_format):
    """The features of the pair, as records have them."""
    settings = input_config(second_text_field="b", pair_format=pair_format, long_seq_length=16)
    processor = settings.make_processor(tokenizer(tmp_path))
    example = examples.TextExample("e", PAIR["question"], PAIR["documents"][0])
    made, _ = features.make_features(example, settings, processor)
    return {name: tf.constant([value]) for name, value in made.items() if name != "example_id"}


def small_config(kind, **entries):
    types = {"type_vocab_size": 2} if kind in ("longformer", "big_bird", "gmat") else {}
    entries = {"initializer_range": 1.0, **types, **entries}
    return small_encoders.config(kind, len(VOCAB), 16, **entries)


@pytest.mark.parametrize("kind", SYSTEMS)
def test_a_program_and_a_processor_give_a_model_the_same_pair(tmp_path, kind):
    processor_class, head_class, entries = SYSTEMS[kind]
    encoder_config = small_config(kind, **entries)
    given = {"num_labels": 3, "problem_type": config.SINGLE_LABEL, "pooling": "first"}
    of_task = sequence_classifiers.make_sequence_classifier(encoder_config, **given)
    pooling = {"pooling": "first"} if kind.startswith("etc") else {}
    head = head_class(of_task.encoder, num_labels=3, **pooling)
    expected = head(processor_class(tokenizer(tmp_path))([PAIR]))
    pair_format = model_folder.pair_format(None, encoder_config)
    of_task(read := of_program(tmp_path, pair_format))
    of_task.set_weights(head.get_weights())
    np.testing.assert_allclose(of_task(read), expected, atol=1e-5)
    if kind in ("longformer", "big_bird"):  # Then the former way was another one.
        former = of_task(of_program(tmp_path, "bert"))
        assert np.abs(former - expected).max() > 1e-3


@pytest.mark.parametrize(
    ("kind", "between", "types"),
    [("bert", [SEP], True), ("roberta", [SEP, SEP], False), ("big_bird", [SEP], False)],
)
def test_the_formats_are_those_of_the_tokenizers(tmp_path, kind, between, types):
    made = of_program(tmp_path, kind)
    row = [CLS, *FIRST, *between, *SECOND, SEP]
    np.testing.assert_array_equal(made["token_ids"][0, : len(row)], row)
    number = 1 + len(SECOND) if types else 0
    segments = np.arange(len(row)) >= len(row) - number
    np.testing.assert_array_equal(made["segment_ids"][0, : len(row)], segments)


def model_of(folder, kind):
    folder.mkdir()
    entries = small_encoders.entries(kind, len(VOCAB), 16)
    (folder / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(VOCAB), encoding="utf-8")
    return str(folder)


TWO_TEXTS = lines(*({"a": "it", "b": "is", "label": label} for label in ("good", "bad")))
FIELDS = {"text_field": "a", "second_text_field": "b"}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("longformer", {}, "roberta"),
        ("big_bird", {}, "big_bird"),
        ("modernbert", {}, "bert"),
        (None, {}, "bert"),
        ("longformer", {"pair_format": "bert"}, "bert"),
    ],
)
def test_records_are_made_as_the_model_reads_and_say_so(tmp_path, kind, given, expected):
    model = {"init_checkpoint": model_of(tmp_path / "model", kind)} if kind else {}
    records, settings, _ = run(tmp_path, TWO_TEXTS, **FIELDS, **model, **given)
    assert settings["pair_format"] == expected
    ids = list(records[0]["token_ids"].int64_list.value)
    assert ids.count(SEP) == (3 if expected == "roberta" else 2)


def test_a_folders_own_processor_says_how_its_model_was_trained(tmp_path):
    folder = model_of(tmp_path / "model", "big_bird")
    processor = etcmodel.BigBirdProcessor(tokenizer(tmp_path), has_types=True)
    processor.save_pretrained(folder)
    assert model_folder.pair_format(folder) == "bert"


def test_one_text_has_the_same_row_whatever_the_model(tmp_path):
    model = model_of(tmp_path / "model", "longformer")
    content = lines({"text": "it", "label": "good"}, {"text": "is", "label": "bad"})
    _, settings, _ = run(tmp_path, content, init_checkpoint=model)
    assert settings["pair_format"] == "bert"  # As in records that do not say it.
    with pytest.raises(ValueError, match="`pair_format` 'roberta' is for two texts"):
        run(tmp_path, content, pair_format="roberta")


def parsed(*arguments):
    values = flags.FlagValues()
    options.ProgramFlags({"task": config.ClassificationConfig}, values).define()
    values(["program", *arguments])
    return values


def test_what_does_not_say_it_was_made_as_then(tmp_path):
    values, of_task = parsed(), config.ClassificationConfig
    found = trained_run.options_of_records(of_task, values, {"train.config.json": {}})
    assert found["pair_format"] == "bert"
    begun = trained_run.TrainedRun("run", {"second_text_field": "b"}, {}, {})
    assert begun.values(of_task, values)["pair_format"] == "bert"
    with pytest.raises(ValueError, match="--pair_format=roberta: the run in run was made with"):
        begun.values(of_task, parsed("--pair_format=roberta"))
    kept = {"second_text_field": "b", "max_long_seq_length": 12, "max_global_seq_length": 4}
    kept = options.load_kept(of_task, kept, "export")
    export = of_task(encoder_config=small_config("longformer"), **kept)
    made = export.features().make_processor(tokenizer(tmp_path))
    assert made.config.question_separators == 1 and made.config.segment_id is None


def settled(pair_format, noted=None, given=()):
    fields = {"second_text_field": "b", "long_seq_length": 12, "pair_format": pair_format}
    made = config.ClassificationConfig(encoder_config=small_config("longformer"), **fields)
    given = {name: fields[name] for name in given}
    settings = {"train.config.json": {"pair_format": noted} if noted else {}}
    return made.settled(None, given, settings).pair_format


def test_a_new_run_refuses_records_that_its_model_reads_otherwise():
    line = "train.config.json: .* as --pair_format=bert, and the model's .*=roberta. Preprocess"
    with pytest.raises(ValueError, match=line):
        settled("bert", noted="bert")
    assert settled("bert", noted="bert", given=["pair_format"]) == "bert"  # As told.
    assert settled("roberta", noted="roberta") == "roberta"
    assert settled(None) == "roberta"  # Nothing but the model tells.


def test_the_program_refuses_them_before_it_trains(tmp_path, capsys):
    run(tmp_path, TWO_TEXTS, **FIELDS)
    entries = small_encoders.entries("longformer", len(VOCAB), 12)
    (tmp_path / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    given = {"model_config_file": tmp_path / "config.json", "output_dir": tmp_path / "run"}
    given["train_data"] = tmp_path / "records" / "train-*.tfrecord"
    with pytest.raises(SystemExit):
        programs.fine_tune("classification", run_mode="train", **given)
    assert "train.config.json: the records have two texts as" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_records_of_earlier_versions_are_trained_on_with_a_warning(caplog):
    assert settled("bert") == "bert"
    assert "the model's processor has them as roberta" in caplog.text


def test_byte_level_vocabularies_of_robertas_have_their_format(tmp_path):
    processor = etcmodel.LongformerProcessor(byte_level(tmp_path))
    assert pair_formats.of_vocabulary(processor.tokenizer) == "roberta"
    assert pair_formats.of_vocabulary(tokenizer(tmp_path)) == "bert"


def byte_level(folder):
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b"]
    numbers = {token: index for index, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    return str(folder / "vocab.json")
