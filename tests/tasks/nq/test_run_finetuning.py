"""The programs of the task, on generated data and on a true example."""

import contextlib
import dataclasses
import io
import json
import pathlib
import shutil
import types

import pytest

from etcmodel.models.bigbird import BigBirdConfig
from etcmodel.preprocessing import program
from etcmodel.tasks.nq import examples, predict, preprocess
from etcmodel.tasks.nq import metrics as nq_metrics
from etcmodel.tools import make_demo_data
from tests.tasks import programs, small_encoders

pytestmark = pytest.mark.slow

SHARED = pathlib.Path(__file__).parents[4] / "shared"
REAL_EXAMPLE = SHARED / "real" / "nq_simplified_1.jsonl"
NUM_TRAIN, NUM_DEV = 480, 80
LENGTHS = {"seq_len": 128, "global_seq_len": 32, "question_len": 16, "stride": 64}
ETC_CONFIG = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "local_radius": 16,
    "relative_pos_max_distance": 12,
    "relative_vocab_size": 32,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
SPARSE_TRAINING = {"num_train_epochs": 8, "learning_rate": 3e-3}
BY_LENGTH = '"pattern_by_length": true'
# What a server that has nothing but TensorFlow does.
SERVE = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
records = list(tf.data.TFRecordDataset(sys.argv[2]).take(3))
outputs = model.signatures["serving_default"](examples=tf.stack(records))
assert not any(name.startswith("etcmodel") for name in sys.modules)
print(json.dumps({name: outputs[name].numpy().tolist() for name in sys.argv[3:]}))
"""


@pytest.fixture(scope="module")
def preprocessed(tmp_path_factory):
    """Generated data, its records and a model's configuration."""
    folder = tmp_path_factory.mktemp("generated")
    paths = make_demo_data.make_demo_data(
        dataset="nq", output_dir=str(folder), num_train=NUM_TRAIN, num_dev=NUM_DEV, seed=3
    )
    for split in ("train", "dev"):
        options = preprocess.PreprocessOptions(
            input_pattern=paths[split],
            output_prefix=str(folder / split),
            vocab_file=paths["vocab"],
            is_training=split == "train",
            num_shards=2,
            long_seq_length=LENGTHS["seq_len"],
            global_seq_length=LENGTHS["global_seq_len"],
            question_len=LENGTHS["question_len"],
            stride=LENGTHS["stride"],
        )
        list(program.run(options, preprocess.load_parts))
    examples.write_gold_cache(paths["dev"], str(folder / "gold.jsonl.gz"))
    vocab_size = len(pathlib.Path(paths["vocab"]).read_text(encoding="utf-8").splitlines())
    config = folder / "etc_config.json"
    config.write_text(json.dumps({**ETC_CONFIG, "vocab_size": vocab_size}))
    return {"folder": folder, **paths}


@pytest.fixture(scope="module")
def trained(preprocessed):
    """The same with a trained, evaluated and exported model, and the printed metrics."""
    folder = preprocessed["folder"]
    model = {
        "etc_config_file": folder / "etc_config.json",
        "vocab_file": preprocessed["vocab"],
        "max_seq_length": LENGTHS["seq_len"],
        "max_global_seq_length": LENGTHS["global_seq_len"],
        "question_len": LENGTHS["question_len"],
        "mask_long_output": True,
        "initialization": "mimetic",
        "output_dir": folder / "model",
    }
    training = programs.start(
        "nq",
        "run_finetuning",
        run_mode="train",
        train_precomputed_file=folder / "train-*.tfrecord",
        train_batch_size=16,
        learning_rate=4e-3,
        num_train_epochs=3,
        **model,
    )
    programs.finish(training)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        programs.fine_tune(
            "nq",
            run_mode="evaluate",
            predict_precomputed_file=folder / "dev-*.tfrecord",
            gold_cache_path=folder / "gold.jsonl.gz",
            curve_plot_file=folder / "curves.png",
            **model,
        )
    programs.fine_tune("nq", run_mode="export", **model)
    return {**preprocessed, "metrics": json.loads(printed.getvalue().splitlines()[-1])}


def baseline_metrics(dev):
    """The best that one gets without reading: some fixed candidate, always yes or always no."""
    annotations = examples.read_gold(dev)
    pages = list(examples.read_examples(dev))
    scores = {"long": [], "short": []}
    for index in range(4):
        predictions = []
        for page in pages:
            candidate = page.candidates[min(index, len(page.candidates) - 1)]
            predictions.append(
                {
                    "example_id": page.example_id,
                    "long_answer": {"start_token": candidate.start, "end_token": candidate.end},
                    "long_answer_score": 1.0,
                    "short_answers": [],
                    "short_answers_score": 1.0,
                    "yes_no_answer": ("yes", "no")[index % 2],
                }
            )
        metrics = nq_metrics.metrics(annotations, {"predictions": predictions})
        for kind, values in scores.items():
            values.append(metrics[f"{kind}-best-threshold-f1"])
    return {kind: max(values) for kind, values in scores.items()}


def test_records_of_a_choice_of_windows_are_not_evaluated_on(trained, tmp_path, capsys):
    """Some were left out by the answers; of all windows, records are as good as those of dev."""
    folder = trained["folder"]
    for path in folder.glob("train-*.tfrecord"):
        shutil.copy(path, tmp_path)
    settings = json.loads((folder / "train.config.json").read_text())
    assert settings["is_training"] and settings["include_unknown_rate"] == 1
    chosen = {**settings, "include_unknown_rate": 0.02}
    (tmp_path / "train.config.json").write_text(json.dumps(chosen))
    flags = {"output_dir": folder / "model", "eval_gold": trained["train"]}
    with pytest.raises(SystemExit):
        programs.fine_tune(
            "nq", run_mode="evaluate", eval_data=tmp_path / "train-*.tfrecord", **flags
        )
    message = "train.config.json: the records are for training: by the annotations, a share of 0.98"
    assert message in capsys.readouterr().err


def test_a_small_model_learns_long_and_short_answers(trained):
    baseline = baseline_metrics(trained["dev"])  # About 0.2 and 0.15.
    metrics = trained["metrics"]
    assert metrics["long-best-threshold-f1"] > 2 * baseline["long"]
    assert metrics["short-best-threshold-f1"] > 2 * baseline["short"]
    assert metrics["long-answer-n"] == NUM_DEV
    assert (trained["folder"] / "curves.png").read_bytes().startswith(b"\x89PNG")


def train_on_one_sequence(kind, preprocessed, folder, fields=types.MappingProxyType({}), **flags):
    """Trains an encoder with its own fields in the config, in `folder / "run"`."""
    records = preprocessed["folder"]
    size = json.loads((records / "etc_config.json").read_text())["vocab_size"]
    sizes = {"num_hidden_layers": 2, **fields}
    entries = small_encoders.entries(kind, size, LENGTHS["seq_len"], **sizes)
    (folder / "config.json").write_text(json.dumps(entries))
    programs.fine_tune(
        "nq",
        run_mode="train",
        model_config_file=folder / "config.json",
        vocab_file=preprocessed["vocab"],
        train_data=records / "train-*.tfrecord",
        output_dir=folder / "run",
        mask_long_output=True,
        skip_padding=True,
        train_batch_size=16,
        **{"learning_rate": 3e-3, **flags},
    )


def evaluate(preprocessed, run, predictions_file, **flags):
    """Evaluates a run; returns the predictions by example."""
    programs.fine_tune(
        "nq",
        run_mode="evaluate",
        output_dir=run,
        eval_data=preprocessed["folder"] / "dev-*.tfrecord",
        eval_gold=preprocessed["dev"],
        predictions_file=predictions_file,
        **flags,
    )
    return by_id(json.loads(predictions_file.read_text()))


def assert_learned(metrics, preprocessed):
    baseline = baseline_metrics(preprocessed["dev"])
    for name in ("long", "short"):
        assert metrics[f"{name}-best-threshold-f1"] > baseline[name] + 0.2


@pytest.mark.exhaustive
def test_a_sparse_bigbird_learns_and_answers_alike_however_windows_are_padded(
    preprocessed, tmp_path, capsys
):
    """Of the pattern: 3 blocks of 8 tokens around each, one at random, the first and the last."""
    sparse = {"attention_type": "block_sparse", "block_size": 8, "num_random_blocks": 1}
    fields = {**sparse, "pattern_by_length": True}
    assert BigBirdConfig(**sparse).longest_full < LENGTHS["seq_len"] / 2
    train_on_one_sequence("big_bird", preprocessed, tmp_path, fields, **SPARSE_TRAINING)
    run = tmp_path / "run"
    together = evaluate(preprocessed, run, tmp_path / "together.json", eval_batch_size=16)
    assert_learned(json.loads(capsys.readouterr().out.splitlines()[-1]), preprocessed)
    alone = evaluate(preprocessed, run, tmp_path / "alone.json", eval_batch_size=1)
    # The pattern of the padded length, of which the advice of the documentation is to be rid.
    settings = (run / "run_config.json").read_text()
    assert settings.count(BY_LENGTH) == 1
    (run / "run_config.json").write_text(settings.replace(BY_LENGTH, BY_LENGTH[:-4] + "false"))
    of_padding = evaluate(preprocessed, run, tmp_path / "other.json", eval_batch_size=16)
    assert together.keys() == alone.keys() == of_padding.keys()
    scores = ("long_answer_score", "short_answers_score")
    for example_id, answer in together.items():
        assert alone[example_id]["long_answer"] == answer["long_answer"]
        assert alone[example_id]["short_answers"] == answer["short_answers"]
        for name in scores:
            assert alone[example_id][name] == pytest.approx(answer[name], abs=1e-4)
    differing = [
        x for x in together if abs(of_padding[x][scores[0]] - together[x][scores[0]]) > 0.1
    ]
    assert len(differing) > NUM_DEV / 10


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "num_epochs"), [("longformer", 8), ("modernbert", 8), ("gmat", 30)]
)
def test_encoders_of_one_sequence_learn_too_and_are_exported(
    kind, num_epochs, preprocessed, tmp_path, capsys
):
    train_on_one_sequence(kind, preprocessed, tmp_path, num_train_epochs=num_epochs)
    evaluate(preprocessed, tmp_path / "run", tmp_path / "run" / "predictions.json")
    assert_learned(json.loads(capsys.readouterr().out.splitlines()[-1]), preprocessed)
    programs.fine_tune("nq", run_mode="export", output_dir=tmp_path / "run")
    answers = tmp_path / "answers.json"
    programs.fine_tune(
        "nq",
        run_mode="predict",
        export_dir=tmp_path / "run" / "export",
        input_file=preprocessed["dev"],
        predictions_file=answers,
    )
    expected = by_id(json.loads((tmp_path / "run" / "predictions.json").read_text()))
    found = by_id(json.loads(answers.read_text()))
    assert found.keys() == expected.keys()
    for example_id, answer in found.items():
        assert answer["long_answer"] == expected[example_id]["long_answer"]


def test_the_exported_model_answers_raw_questions_like_the_trained_one(trained, capsys, caplog):
    folder = trained["folder"]
    questions = folder / "questions.jsonl"
    with open(trained["dev"], encoding="utf-8") as file, questions.open("w") as unlabeled:
        for line in file:
            raw = json.loads(line)
            del raw["annotations"]
            unlabeled.write(json.dumps(raw) + "\n")
        # What preprocess leaves out is left out.
        no_candidates = {"example_id": 5, "long_answer_candidates": []}
        unlabeled.write(json.dumps({**raw, **no_candidates}) + "\nnothing\n")
    wanted = ("answer_type_logits", "sa_start_pred")
    (export,) = (folder / "model" / "export").iterdir()
    record_file = folder / "dev-00000-of-00002.tfrecord"
    serving = programs.start_python("-c", SERVE, export, record_file, *wanted)
    programs.fine_tune(
        "nq",
        run_mode="predict",
        export_dir=folder / "model" / "export",
        input_file=questions,
        predictions_file=folder / "answers.json",
    )
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == f"{NUM_DEV} predictions: {folder / 'answers.json'}"
    answers = by_id(json.loads((folder / "answers.json").read_text()))
    expected = by_id(json.loads((folder / "model" / "predictions.json").read_text()))
    assert set(answers) == set(expected)
    for example_id, answer in answers.items():
        scores = ("long_answer_score", "short_answers_score")
        for name in scores:
            assert answer[name] == pytest.approx(expected[example_id][name], abs=1e-3)
    messages = [record.getMessage() for record in caplog.records]
    assert f"{questions}: 2 of {NUM_DEV + 2} examples skipped" in messages
    served = json.loads(programs.finish(serving)[0].splitlines()[-1])
    assert [len(served[name]) for name in wanted] == [3, 3]
    assert len(served["answer_type_logits"][0]) == 5

    predictor = predict.NqPredictor(str(folder / "model" / "export"), max_short_answer_len=1)
    one = next(examples.read_examples(str(questions)))
    (prediction,) = predictor.predict([one])["predictions"]
    lengths = [s["end_token"] - s["start_token"] for s in prediction["short_answers"]]
    assert prediction["example_id"] == one.example_id and set(lengths) <= {1}
    other = dataclasses.replace(one, question="who else")  # Its windows would join those of `one`.
    with pytest.raises(ValueError, match=f"two examples with the id {one.example_id!r}"):
        predictor.predict([one, other])


def by_id(predictions):
    return {prediction["example_id"]: prediction for prediction in predictions["predictions"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"run_mode": "train"}, "--run_mode=train also needs --output_dir"),
        (
            {"run_mode": "predict", "export_dir": "/none", "input_file": "/none"},
            "--input_file: no such file",
        ),
        (
            {"run_mode": "evaluate", "output_dir": "x", "etc_config_file": "y"},
            "--run_mode=evaluate also needs --eval_data, --eval_gold",
        ),
    ],
)
def test_wrong_flags_are_named_in_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit):
        programs.fine_tune("nq", **arguments)
    assert capsys.readouterr().err.startswith(f"error: {message}")


@pytest.mark.skipif(not REAL_EXAMPLE.exists(), reason="the true example is not beside the checkout")
def test_a_true_page_goes_through_preprocessing_and_prediction(trained, tmp_path):
    options = preprocess.PreprocessOptions(
        input_pattern=str(REAL_EXAMPLE),
        output_prefix=str(tmp_path / "real"),
        vocab_file=str(SHARED / "reference" / "vocab" / "bert_uncased_vocab.txt"),
        num_shards=1,
        strict=True,
    )
    ((_, statistics),) = program.run(options, preprocess.load_parts)
    assert statistics["examples_written"] == 1 and statistics["mean_page_tokens"] > 2500
    assert statistics["candidates_without_global_token"] == 0
    predictor = predict.NqPredictor(str(trained["folder"] / "model" / "export"))
    (example,) = examples.read_examples(str(REAL_EXAMPLE))
    (prediction,) = predictor.predict([example], batch_size=16)["predictions"]
    assert prediction["example_id"] == 5328212470870865242
    span = prediction["long_answer"]
    assert 0 <= span["start_token"] < span["end_token"] <= len(example.words)
