"""A model that was trained elsewhere is evaluated and exported as it is, without a training."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

import etcmodel
from etcmodel import checkpoints, models, options
from etcmodel.checkpoints import sources
from etcmodel.finetuning import model_folder, trained_run
from etcmodel.models import encoders
from etcmodel.preprocessing import program as preprocessing
from etcmodel.tasks.classification import preprocess as classification
from etcmodel.tasks.classification.config import ClassificationConfig
from etcmodel.tasks.squad import config as squad
from etcmodel.tasks.triviaqa import config as triviaqa
from tests import page
from tests import test_first_edition as first_edition
from tests.checkpoints import berts
from tests.eager import eagerly, in_graphs  # noqa: F401
from tests.models.bigbird import small as bigbird_small
from tests.models.longformer import small
from tests.models.random_weights import built, randomize
from tests.reference import cases
from tests.tasks import programs, record_sets
from tests.tasks.classification import raw_texts

HOTPOTQA = {**first_edition.HOTPOTQA_MODEL, **first_edition.HOTPOTQA_EVALUATION}
THEIRS = "theirs/model.ckpt-1234"


pytestmark = pytest.mark.usefixtures("eagerly")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Records, raw files and a run of each task of the release, as the current directory."""
    shutil.copytree(first_edition.FIXTURES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_run_of_release(folder, run, leave_out=()):
    """The folder that the authors' program leaves: weights by name, with the state of training."""
    path, _ = checkpoints.convert(run, "converted", "released")
    source = sources.open_source(path)
    values = {name: source.read(name) for name in source.shapes if name not in leave_out}
    slots = {f"{name}/adam_m": np.zeros_like(value) for name, value in values.items()}
    (folder / "theirs").mkdir()
    berts.write_released("theirs", {**values, **slots, "global_step": np.int64(1234)}, THEIRS[7:])
    text = 'model_checkpoint_path: "model.ckpt-1234"\nall_model_checkpoint_paths: "gone"\n'
    (folder / "theirs" / "checkpoint").write_text(text)


def evaluated(task, capsys, output_dir, **flags):
    """The scores that an evaluation prints, and the predictions that it writes."""
    programs.fine_tune(task, **{**flags, "run_mode": "evaluate", "output_dir": output_dir})
    told = capsys.readouterr().out.splitlines()[-1]
    return json.loads(told), pathlib.Path(output_dir, "predictions.json").read_text()


def test_a_run_of_the_release_scores_as_the_run_with_its_weights(folder, capsys):
    expected = evaluated("hotpotqa", capsys, **HOTPOTQA)
    write_run_of_release(folder, "hotpotqa/run")
    new = {**HOTPOTQA, "output_dir": "new"}
    assert evaluated("hotpotqa", capsys, **new, init_checkpoint=THEIRS) == expected
    assert [path.name for path in (folder / "new").iterdir()] == ["predictions.json"]


@pytest.mark.parametrize("output_format", ["tf2", "safetensors"])
def test_so_does_a_conversion_by_its_path_and_by_its_folder(folder, capsys, output_format):
    expected = evaluated("hotpotqa", capsys, **HOTPOTQA)
    config = encoders.read_config(HOTPOTQA["etc_config_file"])
    path, _ = checkpoints.convert("hotpotqa/run", "converted", output_format, config=config)
    for given in (path, "converted"):
        new = {**HOTPOTQA, "output_dir": "new", "init_checkpoint": given}
        assert evaluated("hotpotqa", capsys, **new) == expected


def refusal(task, capsys, **flags):
    with pytest.raises(SystemExit):
        programs.fine_tune(task, **flags)
    return capsys.readouterr().err


def test_weights_that_are_not_there_are_named_and_never_random(folder, capsys):
    missing = "answer_type_output_weights"
    write_run_of_release(folder, "hotpotqa/run", leave_out=(missing,))
    flags = {**HOTPOTQA, "output_dir": "new", "init_checkpoint": THEIRS}
    told = f"error: '{THEIRS}' lacks weights of the model: {missing}. They would be random"
    for mode in ("evaluate", "export"):
        assert told in refusal("hotpotqa", capsys, **{**flags, "run_mode": mode})
    assert not (folder / "new").exists()


def test_what_contradicts_itself_is_refused_before_weights_are_read(folder, capsys):
    given = {**HOTPOTQA, "init_checkpoint": "gone"}
    (folder / "theirs").mkdir()
    (folder / "theirs" / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1234"\n')
    told = refusal("hotpotqa", capsys, **{**given, "output_dir": "theirs"})
    assert "--output_dir=theirs has checkpoints, too. Name the one to use as --export_ckpts" in told
    shorter = {"max_long_seq_length": 160, "output_dir": "new"}
    told = refusal("hotpotqa", capsys, **{**given, **shorter})
    assert "--long_seq_length=160: the data of hotpotqa/records/dev.config.json was made" in told
    del given["etc_config_file"]
    told = refusal("hotpotqa", capsys, **{**given, "init_checkpoint": THEIRS, "output_dir": "new"})
    assert "There is no directory 'theirs/model.ckpt-1234'" in told


@pytest.mark.slow
def test_other_flags_of_the_release_name_it_too(folder, capsys):
    expected = evaluated("hotpotqa", capsys, **HOTPOTQA)
    write_run_of_release(folder, "hotpotqa/run")
    given = {**HOTPOTQA, "output_dir": "new"}
    assert evaluated("hotpotqa", capsys, **given, export_ckpts=THEIRS) == expected
    assert evaluated("hotpotqa", capsys, **{**given, "output_dir": "theirs"}) == expected
    modes = {"run_mode": "predict_records", "predictions_file": "told.json"}
    programs.fine_tune("hotpotqa", **{**given, **modes, "init_checkpoint": THEIRS})
    assert (folder / "told.json").read_text() == expected[1]


@pytest.mark.slow
@pytest.mark.usefixtures("in_graphs")
def test_an_export_of_a_run_of_the_release_answers_as_its_evaluation(folder, capsys):
    write_run_of_release(folder, "hotpotqa/run")
    flags = {**HOTPOTQA, "output_dir": "new", "init_checkpoint": THEIRS}
    _, expected = evaluated("hotpotqa", capsys, **flags)
    programs.fine_tune("hotpotqa", **{**flags, "run_mode": "export"})
    assert [path.name for path in (folder / "new" / "export").iterdir()] == ["1234"]
    raw = HOTPOTQA["predict_gold_json_file"]
    told = {"output_dir": "new", "input_file": raw, "predictions_file": "new/told.json"}
    programs.fine_tune("hotpotqa", run_mode="predict", **told)
    assert record_sets.read_json("new/told.json") == json.loads(expected)


@pytest.mark.slow
def test_the_commands_of_the_page(folder, capsys):
    _, expected = evaluated("hotpotqa", capsys, **HOTPOTQA)
    write_run_of_release(folder, "hotpotqa/run")
    (folder / "theirs").rename(folder / "hotpotqa" / "their_run")
    page.run_commands("checkpoints.md", folder / "hotpotqa", having="their_run")
    assert record_sets.read_json("hotpotqa/answers.json") == json.loads(expected)


@pytest.mark.slow
@pytest.mark.parametrize("task", first_edition.OTHER_TASKS)
def test_so_does_one_of_each_other_task(task, folder, capsys):
    model, training, evaluation, _ = first_edition.OTHER_TASKS[task]
    run = {**model, **training, "output_dir": "run", "num_train_epochs": 1}
    programs.fine_tune(task, run_mode="train", **run)
    capsys.readouterr()
    expected = evaluated(task, capsys, "run", **model, **evaluation)
    write_run_of_release(folder, "run")
    flags = {**model, **evaluation, "init_checkpoint": THEIRS}
    assert evaluated(task, capsys, "new", **flags) == expected


# Folders with a head, such as those of Hugging Face.


BYTES = cases.topic_folder("longformer") / "tokenizer"
LABELS = ["good", "bad"]  # Not in the order in which preprocessing sorts them.
TEXTS = ["it is very good .", "it is bad .", "good good very bad"]
SECOND = "very very good"


def write_classifier(folder, head, **settings):
    """A trained model with its vocabulary, and records of rows with its labels."""
    randomize(head)
    vocab = raw_texts.write_vocab(folder)
    of_etc = head.config.model_type == "etc"
    make = etcmodel.EtcProcessor if of_etc else etcmodel.LongformerProcessor
    processor = make(vocab, **settings) if of_etc or settings else None
    etcmodel.save_pretrained(head, folder / "classifier", processor)
    shutil.copy(vocab, folder / "classifier" / "vocab.txt")
    rows = [f"{text},{LABELS[n % 2]}\n" for n, text in enumerate(TEXTS)]
    (folder / "rows.csv").write_text("".join(["text,label\n", *rows]))


def preprocess(folder, vocab="vocab.txt", **flags):
    """Records of the rows: the flags that evaluate the model on them."""
    vocab, lengths = str(folder / vocab), {"long_seq_length": 12, "global_seq_length": 4}
    paths = {"input_pattern": str(folder / "rows.csv"), "output_prefix": str(folder / "rows")}
    given = classification.PreprocessOptions(
        **paths, **lengths, **flags, vocab_file=vocab, num_shards=1, direct_num_workers=1
    )
    list(preprocessing.run(given, classification.load_parts))
    model = {"init_checkpoint": folder / "classifier", "output_dir": folder / "new"}
    return {**model, "eval_data": folder / "rows-*.tfrecord"}


def longformer():
    config = small.config(vocab_size=len(raw_texts.VOCAB), attention_window=4)
    return models.LongformerForSequenceClassification(config, labels=LABELS)


def big_bird():
    config = bigbird_small.config(vocab_size=len(raw_texts.VOCAB))
    return models.BigBirdForSequenceClassification(config, labels=LABELS)


def etc():
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = etcmodel.EtcConfig(len(raw_texts.VOCAB), **sizes, intermediate_size=8)
    # Not the program's pooling.
    return etcmodel.EtcForSequenceClassification(config, labels=LABELS, pooling="mean")


@pytest.fixture
def classifier(tmp_path, request):
    write_classifier(tmp_path, getattr(request, "param", longformer)())
    return tmp_path


NOT_USED = "has settings that this program does not use: "


def probabilities(folder):
    """Those that the program wrote, and those of the model's `predict`: [texts, labels] each."""
    lines = record_sets.read_lines(folder / "new" / "predictions.json")
    model = etcmodel.from_pretrained(folder / "classifier")
    expected = tf.nn.softmax(model.predict(TEXTS, verbose=0)).numpy()
    return [[line["probabilities"][label] for label in LABELS] for line in lines], expected


@pytest.mark.parametrize(
    ("make", "settings", "told"),
    [
        (etc, {"segment_id": 1, "pad_to_multiple_of": 4}, "segment_id=1"),
        (etc, {"separators": False, "whole_token": False}, "whole_token=False, separators=False"),
        (longformer, {"global_tokens": "none", "max_length": 12}, "global_tokens='none'"),
    ],
)
def test_what_its_processor_is_set_to_and_the_program_is_not_is_told(
    tmp_path, caplog, make, settings, told
):
    write_classifier(tmp_path, make(), **settings)
    flags = preprocess(tmp_path, labels=tuple(LABELS))
    programs.fine_tune("classification", run_mode="evaluate", **flags)
    assert f"{tmp_path}/classifier {NOT_USED}{told}. Inputs" in caplog.text
    found, expected = probabilities(tmp_path)
    assert not np.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "settings", "told"),
    [
        (models.EtcForQuestionAnswering, {}, "question_globals='block'"),
        (models.EtcForQuestionAnswering, {"question_globals": "tokens"}, None),
        (
            models.LongformerForQuestionAnswering,
            {"global_tokens": "first"},
            "global_tokens='first', question_separators=2",
        ),
        (models.LongformerForQuestionAnswering, {"max_length": 12}, "question_separators=2"),
        (models.BigBirdForQuestionAnswering, {}, None),
    ],
)
def test_so_is_that_of_a_model_of_questions(tmp_path, caplog, make, settings, told):
    of_etc = make is models.EtcForQuestionAnswering
    of_big_bird = make is models.BigBirdForQuestionAnswering
    head = make((etc if of_etc else big_bird if of_big_bird else longformer)().config)
    write_classifier(tmp_path, head, **settings)
    lengths = {"long_seq_length": 12, "global_seq_length": 4, "doc_stride": 2}
    config = squad.SquadConfig(encoder_config=head.config, **lengths, max_query_length=4)
    model_folder.warn_of_other_inputs(str(tmp_path / "classifier"), config)
    if told is None:
        assert NOT_USED not in caplog.text
    else:
        assert f"{NOT_USED}{told}. Inputs" in caplog.text


@pytest.mark.parametrize(
    "config_class", [ClassificationConfig, squad.SquadConfig, triviaqa.TriviaQaConfig]
)
def test_records_of_earlier_versions_have_one_separator(config_class):
    values = flags.FlagValues()
    options.ProgramFlags({"task": config_class}, values).define()
    values(["program"])
    of_today = {"question_separators": 2}
    found = trained_run.options_of_records(config_class, values, {"new.config.json": of_today})
    assert found["question_separators"] == 2
    sets = {"new.config.json": of_today, "old.config.json": {}}
    line = "old.config.json: .* --question_separators=1, those of new.config.json with .*=2."
    with pytest.raises(ValueError, match=line):
        trained_run.options_of_records(config_class, values, sets)


TWO_TEXTS = [
    (longformer, {"question_separators": 2}, "question_separators=2"),
    (big_bird, {"segment_id": 0}, "segment_id=0"),
]


@pytest.mark.parametrize(("make", "flags", "told"), TWO_TEXTS)
def test_two_texts_stand_as_its_processor_has_them_by_flags(tmp_path, caplog, make, flags, told):
    write_classifier(tmp_path, make())
    rows = [f"{text},{SECOND},{LABELS[n % 2]}\n" for n, text in enumerate(TEXTS)]
    (tmp_path / "rows.csv").write_text("".join(["text,second,label\n", *rows]))
    given = {"second_text_field": "second", "labels": tuple(LABELS)}
    pairs = [{"question": text, "documents": [SECOND]} for text in TEXTS]
    model = etcmodel.from_pretrained(tmp_path / "classifier")
    expected = tf.nn.softmax(model(model.processor(pairs))).numpy()
    for by_flag in ({}, flags):
        caplog.clear()
        made = preprocess(tmp_path, **given, **by_flag)
        programs.fine_tune("classification", run_mode="evaluate", **made)
        found, _ = probabilities(tmp_path)
        is_equal = np.allclose(found, expected, atol=1e-5)
        is_told = f"{NOT_USED}{told}. Inputs" in caplog.text
        assert (is_equal, is_told) == ((True, False) if by_flag else (False, True))


def test_white_space_is_read_as_its_processor_does_by_a_flag(tmp_path, caplog):
    of_bytes = etcmodel.LongformerProcessor.from_pretrained(BYTES, global_tokens="model")
    config = small.config(vocab_size=len(of_bytes.vocabulary), attention_window=4)
    head = built(models.LongformerForSequenceClassification(config, labels=LABELS))
    etcmodel.save_pretrained(head, tmp_path / "classifier", of_bytes)
    head.processor = of_bytes
    texts = ["A king.\n", "A  queen.\nIt", " Red"]
    rows = [f'"{text}",{LABELS[n % 2]}\n' for n, text in enumerate(texts)]
    (tmp_path / "rows.csv").write_text("".join(["text,label\n", *rows]))
    expected = tf.nn.softmax(head.predict(texts, verbose=0)).numpy()
    for by_flag in ({}, {"sentence_splitter": "whole"}):
        caplog.clear()
        given = {"labels": tuple(LABELS), **by_flag}
        made = preprocess(tmp_path, "classifier/vocab.json", **given)
        programs.fine_tune("classification", run_mode="evaluate", **made)
        found, _ = probabilities(tmp_path)
        is_told = f"{NOT_USED}sentence_splitter='whole'. Inputs" in caplog.text
        is_equal = np.allclose(found, expected, atol=1e-5)
        assert (is_equal, is_told) == ((True, False) if by_flag else (False, True))


@pytest.mark.parametrize("classifier", [longformer, etc], indirect=True)
def test_a_folder_with_a_head_needs_no_training_and_no_flags(classifier, capsys, caplog):
    flags = preprocess(classifier, labels=tuple(LABELS))
    programs.fine_tune("classification", run_mode="evaluate", **flags)
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    found, expected = probabilities(classifier)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert NOT_USED not in caplog.text
    right = np.argmax(expected, axis=1) == np.arange(len(TEXTS)) % 2
    assert scores["accuracy"] == pytest.approx(np.mean(right))


def test_other_labels_than_those_of_the_head_are_refused(classifier, capsys):
    flags = preprocess(classifier)
    told = refusal("classification", capsys, run_mode="evaluate", **flags)
    assert "or in another order. Preprocess them again, with --labels=good,bad, or" in told
    flags = {**flags, "run_mode": "export", "labels": "bad,good"}
    del flags["eval_data"]
    told = refusal("classification", capsys, **flags)
    assert "--labels=bad,good: the model in " in told and "with --labels=good,bad" in told
