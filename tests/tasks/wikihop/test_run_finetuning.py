"""The programs of the task, on generated data and on a true example."""

import json
import pathlib

import pytest

from etcmodel.preprocessing import program
from etcmodel.tasks.wikihop import examples, metrics, predict, preprocess
from etcmodel.tools import make_demo_data
from tests import page
from tests.tasks import programs, small_encoders

pytestmark = pytest.mark.slow

SHARED = pathlib.Path(__file__).parents[4] / "shared"
REAL_EXAMPLE = SHARED / "real" / "wikihop_1.json"
LENGTHS = {"long_seq_len": 160, "global_seq_len": 56}
OWN = {
    "etc": {
        "local_radius": 8,
        "initializer_range": 0.02,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    },
    "etc_modernbert": {"local_attention": 24},
}
# An ETC's config is changed by options, which a ModernBERT's has other names for.
FLAGS = {
    "etc": {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "local_radius": 12},
    "etc_modernbert": {},
}
TRAINING = {
    "etc": {"num_train_epochs": 4, "learning_rate": 3e-3, "initialization": "mimetic"},
    "etc_modernbert": {"num_train_epochs": 6, "learning_rate": 6e-3},  # It has no such beginning.
}

# A program that knows nothing of this package: from records to the positions of the answers.
TENSORFLOW_ALONE = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
records = [record.numpy() for record in tf.data.TFRecordDataset(sys.argv[2])]
outputs = model.signatures["serving_default"](examples=tf.constant(records))
assert not any(name.startswith(("etcmodel", "tf_keras", "official")) for name in sys.modules)
print(json.dumps(outputs["answer_ids"].numpy().tolist()))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with raw data, vocabulary, config and records, by name."""
    folder = tmp_path_factory.mktemp("wikihop")
    paths = make_demo_data.make_demo_data(
        dataset="wikihop", output_dir=folder, num_train=1000, num_dev=200, seed=1
    )
    options = preprocess.PreprocessOptions(
        input_pattern=paths["train"],
        dev_input_pattern=paths["dev"],
        output_dir=str(folder / "records"),
        vocab_file=paths["vocab"],
        tokenizer_type="BERT",
        num_shards=2,
        strict=True,
        long_seq_length=LENGTHS["long_seq_len"],
        global_seq_length=LENGTHS["global_seq_len"],
    )
    list(program.run(options, preprocess.load_parts))
    size = len(pathlib.Path(paths["vocab"]).read_text("utf-8").splitlines())
    for kind, own in OWN.items():
        length = LENGTHS["long_seq_len"]
        entries = small_encoders.entries(kind, size, length, num_hidden_layers=2, **own)
        (folder / f"{kind}.json").write_text(json.dumps(entries))
    return {"folder": folder, **paths}


def write_gold(made):
    """The examples with a malformed one between them, which preprocessing skips as well."""
    raws = json.loads(pathlib.Path(made["dev"]).read_text())
    raws.insert(1, {**raws[0], "id": "bad", "answer": 3})
    (made["folder"] / "gold.json").write_text(json.dumps(raws))
    return made["folder"] / "gold.json"


def model_flags(made, kind, output_dir):
    return {
        "source_model_config_file": made["folder"] / f"{kind}.json",
        "vocab_file": made["vocab"],
        "output_dir": output_dir,
        **FLAGS[kind],
        **LENGTHS,
    }


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("kind", sorted(OWN))
def test_learns_evaluates_exports_and_predicts(kind, made, tmp_path, capsys, caplog):
    folder, run = made["folder"], tmp_path / "model"
    flags = model_flags(made, kind, run)
    training = programs.start(
        "wikihop",
        "run_finetuning",
        run_mode="train",
        input_tf_records_path=folder / "records" / "train" / "tf_examples*",
        train_batch_size=32,
        **TRAINING[kind],
        label_smoothing=0.05,
        **flags,
    )
    programs.finish(training)
    programs.fine_tune(
        "wikihop",
        run_mode="evaluate",
        dev_tf_records_path=folder / "records" / "dev" / "tf_examples*",
        input_dev_json_filepath=write_gold(made),
        eval_batch_size=50,
        **flags,
    )
    accuracy = json.loads(capsys.readouterr().out.splitlines()[-1])["accuracy"]
    gold = list(examples.read_examples(made["dev"]))
    guessing = sum(1 / len(example.candidates) for example in gold) / len(gold)  # About 0.18.
    first = metrics.metrics(gold, {e.example_id: e.candidates[0] for e in gold})["accuracy"]
    assert accuracy > 2.5 * max(guessing, first)
    predictions = json.loads((run / "predictions.json").read_text())
    assert metrics.metrics(gold, predictions) == {"accuracy": pytest.approx(accuracy)}

    programs.fine_tune("wikihop", run_mode="export", **flags)
    export = run / "export"
    raws = json.loads(pathlib.Path(made["dev"]).read_text())
    questions = [{name: raw[name] for name in raw if name != "answer"} for raw in raws]
    questions[0]["answer"] = "of no matter here"
    no_use = [{"id": "bare"}, {**questions[1], "id": "no token", "candidates": [" "]}]
    (folder / "questions.json").write_text(json.dumps([*questions, *no_use]))
    (version,) = export.iterdir()
    (records,) = (folder / "records" / "dev").glob("*.tfrecord")
    serving = programs.start_python("-c", TENSORFLOW_ALONE, version, records)
    programs.fine_tune(
        "wikihop",
        run_mode="predict",
        export_dir=export,
        predict_input_json_filepath=folder / "questions.json",
        predict_output_file_path=folder / "answers.json",
    )
    assert json.loads((folder / "answers.json").read_text()) == predictions
    skipped = [message for message in caplog.messages if "skipped" in message]
    assert "gold.json: element 1: example 'bad': field `answer` must be a string" in skipped[0]
    assert skipped[1].endswith("gold.json: 1 of 201 examples skipped")
    assert "questions.json: element 200: example 'bare': field" in skipped[2]
    assert "questions.json: element 201: example 'no token': " in skipped[3]
    assert skipped[4].endswith("questions.json: 2 of 202 examples skipped")
    served = json.loads(programs.finish(serving)[0].splitlines()[-1])
    candidates = [raw["candidates"][number] for raw, number in zip(raws, served, strict=True)]
    assert candidates == [predictions[raw["id"]] for raw in raws]
    found = page.run_python("wikihop.md", "runs/wikihop/export", folder / "page", export)
    assert found["answer"] in ("avaria", "belmark")
    if REAL_EXAMPLE.exists():
        check_real_example(predict.WikiHopPredictor(str(export)))


def check_real_example(predictor):
    """A true example, spelled in characters and cut to this model's short inputs, is answered."""
    (raw,) = json.loads(REAL_EXAMPLE.read_text("utf-8"))
    assert predictor.predict_one(raw) in raw["candidates"]
