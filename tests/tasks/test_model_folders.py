"""A model's folder is enough, for the programs of each data set: no sizes, no vocabulary."""

import json
import pathlib

import numpy as np
import pytest

from etcmodel.checkpoints import sources
from etcmodel.tools import make_demo_data
from tests.checkpoints import berts
from tests.tasks import programs

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


def two_sets(folder, paths, **flags):
    """The calls of a `preprocess` that makes one set of records."""
    return [
        {"input_pattern": paths[name], "output_prefix": folder / name, **flags, **is_training}
        for name, is_training in (("train", {}), ("dev", {"is_training": False}))
    ]


def calls(task, folder, paths):
    """The flags of each call of a task's `preprocess`."""
    if task == "wikihop":
        dev = {"dev_input_pattern": paths["dev"], "output_dir": folder}
        return [{"input_pattern": paths["train"], **dev, **LENGTHS}]
    if task == "openkp":
        place = {"output_dir": folder, **LENGTHS}
        given = {"input_pattern": paths["dev"], "is_training": False}
        return [{"input_pattern": paths["train"], **place}, {**given, **place}]
    own = {
        "nq": {"question_len": 16, "stride": 48},
        "triviaqa": {"evidence_dir": folder / "evidence", "stride": 32},
    }
    return two_sets(folder, paths, **LENGTHS, **own.get(task, {}))


RECORDS = {
    "openkp": ("openkp_train.tfrecord*", "openkp_dev.tfrecord*"),
    "wikihop": ("train/tf_examples*", "dev/tf_examples*"),
}


def token_table(run):
    source = sources.open_source(run)
    (name,) = (x for x in source.shapes if x.endswith("token_emb_lookup/embedding_table"))
    return source.read(name)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["hotpotqa", "nq", "openkp", "triviaqa", "wikihop"])
def test_from_raw_files_to_answers_by_a_bert(task, tmp_path):
    paths = make_demo_data.make_demo_data(
        dataset=task, output_dir=str(tmp_path), num_train=16, num_dev=4, seed=0
    )
    bert = bert_folder(tmp_path / "my_bert", paths["vocab"])
    for flags in calls(task, tmp_path, paths):
        programs.run(task, "preprocess", init_checkpoint=bert, **flags, **ONE_FILE)
    train, dev = RECORDS.get(task, ("train-*.tfrecord", "dev-*.tfrecord"))
    given = {"run_mode": "train", "output_dir": tmp_path / "run", **TRAINING}
    given |= {"init_checkpoint": bert, "train_data": tmp_path / train}
    programs.run(task, "run_finetuning", **given)
    kept = json.loads((tmp_path / "run" / "run_config.json").read_text())["task"]["etc_config"]
    assert kept["hidden_size"] == berts.HIDDEN and kept["hidden_act"] == "gelu_exact"
    assert kept["max_absolute_position_embeddings"] == LENGTHS["long_seq_length"]
    assert kept["local_radius"] == berts.POSITIONS // 2
    weights = berts.hugging_face_weights(vocab_size=kept["vocab_size"])
    expected = weights["bert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(token_table(tmp_path / "run"), expected)

    # All that comes after knows it from the run.
    evaluated = {"eval_data": tmp_path / dev, "eval_gold": paths["dev"]}
    run = {"output_dir": tmp_path / "run"}
    evidence = {"evidence_dir": tmp_path / "evidence"} if task == "triviaqa" else {}
    stdout, _ = programs.run(task, "run_finetuning", run_mode="evaluate", **run, **evaluated)
    assert json.loads(stdout.splitlines()[-1])
    programs.run(task, "run_finetuning", run_mode="export", **run)
    answers = tmp_path / "answers.json"
    predicted = {"input_file": paths["dev"], "predictions_file": answers, **run, **evidence}
    programs.run(task, "run_finetuning", run_mode="predict", **predicted)
    assert answers.stat().st_size
