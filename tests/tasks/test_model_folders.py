"""A model's folder is enough, for the programs of each data set: no sizes, no vocabulary."""

import json
import pathlib
import subprocess

import numpy as np
import pytest
from absl import flags

from etcmodel import training
from etcmodel.checkpoints import sources
from etcmodel.finetuning import program as finetuning_program
from etcmodel.tasks.classification.predict import ClassificationPredictor
from etcmodel.tasks.classification.task import ClassificationTask
from etcmodel.tools import make_demo_data
from tests import page
from tests.checkpoints import berts
from tests.tasks import programs, record_sets
from tests.tasks.classification import raw_texts
from tests.warm import python as warm

LENGTHS = {"long_seq_length": 96, "global_seq_length": 64}
ONE_FILE = {"num_shards": 1, "direct_num_workers": 1}
# Of a step that changes nothing.
TRAINING = {"train_batch_size": 2, "num_train_epochs": 0.5, "learning_rate": 0.0}


def bert_folder(folder, vocab_file):
    """A BERT that has no more than Hugging Face writes, with the vocabulary of the data."""
    words = pathlib.Path(vocab_file).read_text(encoding="utf-8").split("\n")
    berts.write_folder(folder, [word for word in words if word])
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    return folder


# Options of records beside their lengths.
OWN = {"nq": {"question_len": 16, "stride": 48}, "triviaqa": {"stride": 32}}


def token_table(run):
    source = sources.open_source(run)
    (name,) = (x for x in source.shapes if x.endswith("token_emb_lookup/embedding_table"))
    return source.read(name)


@pytest.mark.slow_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("task", ["hotpotqa", "nq", "openkp", "triviaqa", "wikihop"])
def test_from_raw_files_to_answers_by_a_bert(task, tmp_path):
    paths = make_demo_data.make_demo_data(
        dataset=task, output_dir=str(tmp_path), num_train=16, num_dev=4, seed=0
    )
    bert = bert_folder(tmp_path / "my_bert", paths["vocab"])
    given = {"init_checkpoint": bert, **LENGTHS, **OWN.get(task, {}), **ONE_FILE}
    for options in record_sets.options(task, tmp_path, paths):
        programs.run(task, "preprocess", **options, **given)
    train, dev = record_sets.patterns(task, tmp_path)
    given = {"run_mode": "train", "output_dir": tmp_path / "run", **TRAINING}
    given |= {"init_checkpoint": bert, "train_data": train}
    programs.run(task, "run_finetuning", **given)
    kept = json.loads((tmp_path / "run" / "run_config.json").read_text())["task"]["etc_config"]
    assert kept["hidden_size"] == berts.HIDDEN and kept["hidden_act"] == "gelu_exact"
    assert kept["max_absolute_position_embeddings"] == LENGTHS["long_seq_length"]
    assert kept["local_radius"] == berts.POSITIONS // 2
    weights = berts.hugging_face_weights(vocab_size=kept["vocab_size"])
    expected = weights["bert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(token_table(tmp_path / "run"), expected)

    # All that comes after knows it from the run.
    evaluated = {"eval_data": dev, "eval_gold": paths["dev"]}
    run = {"output_dir": tmp_path / "run"}
    evidence = {"evidence_dir": tmp_path / "evidence"} if task == "triviaqa" else {}
    stdout, _ = programs.run(task, "run_finetuning", run_mode="evaluate", **run, **evaluated)
    assert json.loads(stdout.splitlines()[-1])
    programs.run(task, "run_finetuning", run_mode="export", **run)
    answers = tmp_path / "answers.json"
    predicted = {"input_file": paths["dev"], "predictions_file": answers, **run, **evidence}
    programs.run(task, "run_finetuning", run_mode="predict", **predicted)
    assert answers.stat().st_size


def write_reviews(path, count, text="review"):
    rows = (f"it is very {word} .,{word}\n" for word in ("good", "bad") * (count // 2))
    path.write_text(f"{text},label\n" + "".join(rows))


def bert_and_records(folder):
    """A BERT, and flags to train a classifier that begins with it."""
    bert = bert_folder(folder / "my_bert", raw_texts.write_vocab(folder))
    write_reviews(folder / "reviews.csv", 8)
    raw = {"input_pattern": folder / "reviews.csv", "text_field": "review", "strict": True}
    raw |= {"output_prefix": folder / "train", "long_seq_length": 12, "global_seq_length": 4}
    programs.run("classification", "preprocess", init_checkpoint=bert, **raw, **ONE_FILE)
    records = folder / "train-*.tfrecord"
    return bert, {"train_data": records, "init_checkpoint": bert, "output_dir": folder / "run"}


def test_a_classifier_begins_with_a_berts_weights_and_vocabulary(tmp_path):
    bert, given = bert_and_records(tmp_path)
    parts = (ClassificationTask, ClassificationPredictor, flags.FlagValues())
    program = finetuning_program.Program(*parts)
    program.define_flags({})
    program.flag_values(["run_finetuning", *programs.flag_list(given)])
    program.check_flags()
    task = program.make_task()
    config = task.config.encoder_config
    assert (config.local_radius, config.max_absolute_position_embeddings) == (3, 12)
    assert task.config.labels == ("bad", "good")
    assert task.tokenizer.source_file == str(bert / "vocab.txt")
    model = task.build_model()
    task.initialize(model, str(bert))
    table = model.encoder.get_token_embedding_table().numpy()
    expected = berts.hugging_face_weights()["bert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(table, expected)


def test_a_head_with_the_labels_in_another_order_begins_no_run(tmp_path, capsys):
    _, given = bert_and_records(tmp_path)
    earlier = {"task": {"labels": ["good", "bad"]}}
    training.run_directory.claim_directory(str(tmp_path / "earlier"), earlier)
    with pytest.raises(SystemExit):
        programs.fine_tune("classification", **given | {"init_checkpoint": tmp_path / "earlier"})
    told = "in another order than those of the records, bad,good. Make these again, with --labels="
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_the_commands_of_the_page(tmp_path):
    bert_folder(tmp_path / "my_bert", raw_texts.write_vocab(tmp_path))
    write_reviews(tmp_path / "reviews.csv", 16, text="text")
    page.run_commands("checkpoints.md", tmp_path, having="my_bert")
    kept = training.read_run_config(str(tmp_path / "run"))["task"]
    assert kept["labels"] == ["bad", "good"] and kept["max_long_seq_length"] == 1024
    assert kept["etc_config"]["max_absolute_position_embeddings"] == 1024


@pytest.mark.exhaustive
def test_a_run_is_told_of_its_bert_once(tmp_path, capsys):
    bert, given = bert_and_records(tmp_path)
    programs.fine_tune("classification", **given, **TRAINING)
    (bert / "model.safetensors").unlink()
    (bert / "config.json").unlink()
    programs.fine_tune("classification", **given, **TRAINING)  # Goes on, and is at its end.
    evaluated = {"eval_data": given["train_data"], "output_dir": tmp_path / "run"}
    programs.fine_tune("classification", run_mode="evaluate", **evaluated)
    assert 0 <= json.loads(capsys.readouterr().out.splitlines()[-1])["accuracy"] <= 1
    programs.fine_tune("classification", run_mode="export", output_dir=tmp_path / "run")
    predictor = ClassificationPredictor(str(tmp_path / "run" / "export"))
    assert set(predictor.predict_one({"review": "good"})["probabilities"]) == {"bad", "good"}

    # The folder of a run, too, is one of a model.
    given |= {"init_checkpoint": tmp_path / "run", "output_dir": tmp_path / "next"}
    programs.fine_tune("classification", **given, **TRAINING)
    runs = [training.read_run_config(str(tmp_path / name)) for name in ("run", "next")]
    assert runs[0]["task"] == runs[1]["task"]
    assert runs[1]["notes"]["vocab_file"] == str(bert / "vocab.txt")
    np.testing.assert_array_equal(token_table(tmp_path / "run"), token_table(tmp_path / "next"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"init_checkpoint": "gone"}, "error: There is no directory 'gone'."),
        ({"init_checkpoint": "bert", "vocab_file": "other.txt"}, "error: --vocab_file=other.txt: "),
        ({}, "--model_config_file. The folder of a model, as --init_checkpoint, has its config.\n"),
    ],
)
def test_what_does_not_go_together_is_told_before_training(
    given, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    bert_folder(tmp_path / "bert", raw_texts.write_vocab(tmp_path))
    (tmp_path / "other.txt").write_text("[PAD]\n[UNK]\n")
    with pytest.raises(SystemExit):
        programs.fine_tune("classification", output_dir="run", train_data="none-*", **given)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"init_checkpoint": "gone"}, "--init_checkpoint: no such folder: 'gone'. Give that of "),
        ({"vocab_file": "other.txt"}, "--vocab_file=other.txt: the model in 'bert' has another "),
        (
            {"do_lower_case": False},
            "--do_lower_case=false: the vocabulary of the model in 'bert' was made with --do_",
        ),
    ],
)
def test_preprocessing_refuses_what_contradicts_the_folder(given, message, tmp_path):
    bert_folder(tmp_path / "bert", raw_texts.write_vocab(tmp_path))
    (tmp_path / "other.txt").write_text("[PAD]\n[UNK]\n")
    options = {"init_checkpoint": "bert", "input_pattern": "x", "output_prefix": "y", **given}
    program = [warm.python(), "-m", "etcmodel.tasks.hotpotqa.preprocess"]
    command = [*program, *programs.flag_list(options)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith(f"error: {message}"), done.stderr
    assert done.stderr.count("\n") == 1
