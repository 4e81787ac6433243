"""Pre-training on windows of text: the page's commands, and those of the other systems."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

import etcmodel
from etcmodel import checkpoints
from etcmodel.models import encoders, sequence_classifiers
from etcmodel.models.gmat.modeling import GmatForMaskedLM
from etcmodel.models.longformer import LongformerForMaskedLM
from tests.models.bigbird import small as bigbird
from tests.models.modernbert import small as modernbert
from tests.pretrain import text_runs
from tests.reference import cases

pytestmark = pytest.mark.slow

COMMANDS = text_runs.commands()
TRAIN = {
    name: next(a for _, a in COMMANDS if f"--output_dir=runs/{name}" in a)
    for name in ("longformer", "gmat")
}


def save_of(name):
    return ["--run_mode=save_pretrained", f"--output_dir=runs/{name}"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder in which all commands of the page were run."""
    folder = tmp_path_factory.mktemp("text")
    text_runs.write_texts(folder)
    text_runs.lift(folder)
    for program, arguments in COMMANDS:
        text_runs.run(folder, program, arguments)
    return folder


@pytest.fixture(scope="module")
def of_positions(made):
    """The folder of a Longformer of which the positions alone were trained."""
    changes = {"output_dir": "runs/positions", "trainable": "positions", "num_train_epochs": 0.5}
    changes["eval_data"] = ""
    text_runs.run(made, "run_pretraining", TRAIN["longformer"], **changes)
    text_runs.run(made, "run_pretraining", save_of("positions"), copy_local_to_global=False)
    return made / "runs" / "positions" / "pretrained"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def weights_of(folder):
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("name", ["longformer", "gmat"])
@pytest.mark.exhaustive
def test_the_page_s_commands_learn(made, name):
    evaluations = lines_of(made / "runs" / name / "eval_metrics.jsonl")
    assert set(evaluations[-1]) == {"step", "loss", "mlm_loss", "mlm_accuracy"}
    assert evaluations[-1]["mlm_loss"] == evaluations[-1]["loss"]
    assert evaluations[-1]["loss"] < evaluations[0]["loss"] - 0.1
    kept = json.loads((made / "runs" / name / "run_config.json").read_text())["training"]
    assert kept["optimizer"] == {"longformer": "adamw", "gmat": "bert_adam"}[name]
    assert kept["poly_power"] == {"longformer": 3.0, "gmat": 1.0}[name]
    steps = [line["step"] for line in evaluations]
    assert steps == [*range(4, steps[-1], 4), steps[-1]]


def write_bigbird(folder):
    processor = etcmodel.BigBirdProcessor(cases.resolve("", "vocab/gpt2_sentencepiece.model"))
    config = bigbird.config(vocab_size=len(processor.vocabulary), sep_token_id=66)
    etcmodel.BigBirdForMaskedLM(config).save_pretrained(folder, processor)


def write_modernbert(folder):
    file = cases.topic_folder("modernbert") / "tokenizer" / "tokenizer.json"
    processor = etcmodel.ModernBertProcessor(str(file))
    config = modernbert.config(vocab_size=1439, pad_token_id=1429)
    etcmodel.ModernBertForMaskedLM(config).save_pretrained(folder, processor)


OTHERS = {
    "bigbird": (write_bigbird, {"optimizer": "bert_adam", "poly_power": 1.0}),
    "modernbert": (write_modernbert, {"optimizer": "adamw", "adam_beta_2": 0.98}),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.exhaustive
def test_other_systems_go_on_from_a_folder_and_learn(tmp_path, name):
    write, expected = OTHERS[name]
    text_runs.write_texts(tmp_path)
    write(tmp_path / "first")
    first, last = text_runs.go_on(tmp_path)
    kept = json.loads((tmp_path / "run" / "run_config.json").read_text())["training"]
    assert kept.items() >= expected.items()
    assert type(last) is type(first)


def test_a_saved_longformer_is_the_best_checkpoint_with_copied_projections(made):
    model = etcmodel.from_pretrained(made / "runs" / "longformer" / "pretrained")
    assert isinstance(model, LongformerForMaskedLM)
    assert model.processor.tokenizer.vocab["<mask>"] == 1999
    weights = weights_of(made / "runs" / "longformer" / "pretrained")
    for name, value in weights.items():
        if "_global." in name:
            np.testing.assert_array_equal(value, weights[name.replace("_global.", ".")])
    before = weights_of(made / "longformer")
    changed = {name for name, value in weights.items() if not np.array_equal(value, before[name])}
    assert changed == set(weights)
    best = tf.train.latest_checkpoint(str(made / "runs" / "longformer" / "best"))
    reader = tf.train.load_checkpoint(best)
    values = [reader.get_tensor(x) for x in reader.get_variable_to_shape_map() if "ATTR" in x]
    for name in ("lm_head.bias", "longformer.embeddings.position_embeddings.weight"):
        assert any(np.array_equal(weights[name], value) for value in values), name


def test_a_saved_gmat_is_the_best_checkpoint(made):
    model = etcmodel.from_pretrained(made / "runs" / "gmat" / "pretrained")
    assert isinstance(model, GmatForMaskedLM)
    assert (made / "runs/gmat/pretrained/vocab.txt").read_text() == (
        made / "gmat/vocab.txt"
    ).read_text()
    before = etcmodel.from_pretrained(made / "gmat", as_class=GmatForMaskedLM)
    for ours, theirs in zip(model.weights, before.weights, strict=True):
        assert not np.array_equal(ours, theirs), ours.name


@pytest.mark.parametrize("name", ["longformer", "gmat"])
def test_evaluation_takes_model_and_options_from_the_run(made, name, capsys):
    evaluations = lines_of(made / "runs" / name / "eval_metrics.jsonl")
    best = min(line["loss"] for line in evaluations)
    (data,) = [x for x in TRAIN[name] if x.startswith("--eval_data")]
    arguments = ["--run_mode=evaluate", f"--output_dir=runs/{name}", data]
    text_runs.run(made, "run_pretraining", arguments)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["loss"] == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("name", ["longformer", "gmat"])
def test_fine_tuning_begins_with_the_folder_and_with_the_run(made, name):
    pretrained = made / "runs" / name / "pretrained"
    config = encoders.read_config(pretrained / "config.json")
    expected = etcmodel.from_pretrained(pretrained).encoder.weights
    for start in (pretrained, made / "runs" / name / "best"):
        model = sequence_classifiers.make_sequence_classifier(
            config, num_labels=2, problem_type="single_label_classification", pooling="first"
        )
        checkpoints.initialize(model, str(start))
        for ours, theirs in zip(model.encoder.weights, expected, strict=True):
            if "_global/" not in ours.name:
                np.testing.assert_array_equal(ours, theirs, err_msg=ours.name)


@pytest.mark.exhaustive
def test_with_trainable_positions_all_else_is_as_it_was(made, of_positions):
    found, before = weights_of(of_positions), weights_of(made / "longformer")
    table = "longformer.embeddings.position_embeddings.weight"
    assert found.keys() == before.keys()
    for name, value in before.items():
        assert np.array_equal(found[name], value) == (name != table), name
    options = json.loads((made / "runs/positions/run_config.json").read_text())
    assert options["task"]["trainable"] == "positions"


@pytest.mark.exhaustive
def test_a_stage_of_compression_begins_with_the_layers_of_the_stage_before(made, tmp_path):
    model = etcmodel.from_pretrained(made / "runs/gmat/pretrained", num_compression_layers=1)
    plain = etcmodel.from_pretrained(made / "runs/gmat/pretrained")
    layers = plain.encoder.layers.attention_layers
    stacks = (model.encoder.compressor, model.encoder.decompressor)
    for expected, stack in zip(layers, stacks, strict=True):
        (found,) = stack.attention_layers
        for ours, theirs in zip(found.weights, expected.weights, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(
        model.language_model.weights, plain.language_model.weights, strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    etcmodel.save_pretrained(model, made / "compressed")
    changes = {"model_config_file": "compressed/config.json", "num_train_epochs": 0.5}
    changes |= {"init_checkpoint": "compressed", "output_dir": tmp_path / "run", "eval_data": ""}
    text_runs.run(made, "run_pretraining", TRAIN["gmat"], **changes)
    first = lines_of(tmp_path / "run" / "train_metrics.jsonl")[0]
    assert 0 < first["loss"] < 6
    # The checkpoint of the run, too, by names of its own.
    again = etcmodel.from_pretrained(made / "compressed")
    checkpoints.initialize(again, str(made / "runs" / "gmat" / "best"))
    for ours, theirs in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=ours.name)


def test_a_run_goes_on_bit_for_bit(made, tmp_path):
    """From the checkpoint at step 4, as after a kill."""
    run = made / "runs" / "gmat"
    resumed = tmp_path / "gmat"
    resumed.mkdir()
    shutil.copy(run / "run_config.json", resumed)
    last = lines_of(run / "eval_metrics.jsonl")[-1]["step"]
    for path in run.glob(f"ckpt-{last - last % 4 - 4 * (last % 4 == 0)}.*"):
        shutil.copy(path, resumed)
        name = path.name.split(".")[0]
    (resumed / "checkpoint").write_text(
        f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    )
    text_runs.run(made, "run_pretraining", TRAIN["gmat"], output_dir=resumed)
    through, found = (
        tf.train.load_checkpoint(str(folder / f"ckpt-{last}")) for folder in (run, resumed)
    )
    names = set(through.get_variable_to_shape_map())
    assert names == set(found.get_variable_to_shape_map())
    for name in sorted(names):
        if "ATTRIBUTES" in name and "save_counter" not in name:
            np.testing.assert_array_equal(
                through.get_tensor(name), found.get_tensor(name), err_msg=name
            )


@pytest.mark.exhaustive
def test_a_run_of_an_earlier_version_goes_on_with_whole_words(made, tmp_path, capsys):
    run = shutil.copytree(made / "runs" / "gmat", tmp_path / "gmat")
    config = json.loads((run / "run_config.json").read_text())
    assert config["task"].pop("whole_words") is False
    (run / "run_config.json").write_text(json.dumps(config))
    changes = {"output_dir": run, "change": "num_train_epochs=3"}
    text_runs.run(made, "run_pretraining", TRAIN["gmat"], **changes)
    assert "whole_words: true" in (run / "options.yaml").read_text()
    with pytest.raises(SystemExit):
        text_runs.run(made, "run_pretraining", TRAIN["gmat"], whole_words=False, **changes)
    assert "whole_words: True there, False now" in capsys.readouterr().err


def test_a_run_goes_on_with_changed_options(made, tmp_path):
    run = shutil.copytree(made / "runs" / "gmat", tmp_path / "gmat")
    last = lines_of(run / "train_metrics.jsonl")[-1]["step"]
    changes = {"output_dir": run, "change": "learning_rate=0.001,num_train_epochs=3"}
    text_runs.run(made, "run_pretraining", TRAIN["gmat"], **changes)
    rate, epochs = json.loads((run / "history.json").read_text())["changes"]
    assert (rate["step"], rate["option"], rate["new"]) == (last, "learning_rate", 0.001)
    assert (epochs["option"], epochs["old"], epochs["new"]) == ("num_train_epochs", 2.0, 3.0)
    added = [x for x in lines_of(run / "train_metrics.jsonl") if x["step"] > last]
    end = added[-1]["step"]
    assert end == epochs["num_train_steps"] > last
    # The way that is left to a rate of 0, which is reached at the end.
    assert all(0 < x["learning_rate"] <= 0.001 * (1 - last / end) * 1.0001 for x in added)
    assert lines_of(run / "eval_metrics.jsonl")[-1]["step"] == end


def test_every_checkpoint_is_evaluated_by_another_process(made, tmp_path, capsys):
    run = tmp_path / "gmat"
    shutil.copytree(made / "runs" / "gmat", run)
    expected = (run / "eval_metrics.jsonl").read_text()
    (run / "eval_metrics.jsonl").unlink()
    shutil.rmtree(run / "best")
    (data,) = [x for x in TRAIN["gmat"] if x.startswith("--eval_data")]
    arguments = ["--run_mode=continuous_eval", f"--output_dir={run}", data]
    text_runs.run(made, "run_pretraining", arguments)
    found = lines_of(run / "eval_metrics.jsonl")
    wanted = [json.loads(line) for line in expected.splitlines()][-len(found) :]
    assert [line["step"] for line in found] == [line["step"] for line in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)


REFUSED = {
    "cpc": (
        {"cpc_weight": 0.2},
        "--cpc_weight=0.2: contrastive predictive coding is of the global tokens of ETC; a model "
        "of type 'gmat' has none. Leave it out.",
    ),
    "windows": ({"windows": "sentences"}, "was made with --windows=text. Leave the flag out"),
    "vocabulary": (
        {"vocab_file": "longformer/vocab.json"},
        "the model in 'gmat' has another vocabulary, gmat/vocab.txt. Leave the flag out.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_told_in_a_line(made, capsys, name):
    changes, message = REFUSED[name]
    with pytest.raises(SystemExit) as ended:
        text_runs.run(made, "run_pretraining", TRAIN["gmat"], output_dir="failing", **changes)
    told = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 1 and told[-1].startswith("error: ") and message in told[-1]
    assert not (made / "failing").exists()
