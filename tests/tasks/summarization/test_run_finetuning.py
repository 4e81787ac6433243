"""The programs of the task, from raw documents to served summaries; the page's test has LED."""

import json
import types

import pytest
import sentencepiece
import tensorflow as tf

from etcmodel import checkpoints, serving, training
from etcmodel.checkpoints import hugging_face
from etcmodel.models.seq2seq.generation_config import GenerationConfig
from etcmodel.preprocessing import program
from etcmodel.tasks.summarization import metrics, predict, preprocess, task
from etcmodel.tools.demos import summarization as demo
from etcmodel.training import run
from tests.models.bigbird_pegasus import models as bigbird_pegasus
from tests.models.longt5 import models as longt5
from tests.models.pegasus_x import models as pegasus_x
from tests.tasks import programs

pytestmark = pytest.mark.slow

SYSTEMS = {"bigbird_pegasus": bigbird_pegasus, "longt5": longt5, "pegasus_x": pegasus_x}
OFFSETS = {"pegasus_x": 103}
_ONE_EACH = {"encoder_layers": 1, "decoder_layers": 1}
SIZES = {"bigbird_pegasus": _ONE_EACH, "longt5": {"num_layers": 1}, "pegasus_x": _ONE_EACH}
NUM_DEV = 7
GENERATION = {"num_beams": 2, "max_length": 9, "length_penalty": 0.5, "no_repeat_ngram_size": 2}
LENGTHS = {"long_seq_length": 32, "target_length": 10}


class StoppingTask(task.SummarizationTask):
    """Is stopped after three predictions, as by Ctrl-C."""

    left = 3

    def line(self, output):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return super().line(output)


def train_pieces(folder):
    """A SentencePiece model of the demo's words; returns the number of pieces."""
    made = demo.make_examples(split="train", num_examples=200, seed=0, distance=8)
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=(text for example in made for text in example["article_text"]),
        model_prefix=str(folder / "pieces"),
        model_type="word",
        vocab_size=80,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return 80


def make_records(folder, offset):
    for split, count in (("train", 24), ("dev", NUM_DEV)):
        made = demo.make_examples(split=split, num_examples=count, seed=0, distance=8)
        text = "".join(f"{json.dumps(raw)}\n" for raw in made)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
        options = preprocess.PreprocessOptions(
            input_pattern=str(folder / f"{split}.jsonl"),
            output_prefix=str(folder / split),
            num_shards=1,
            strict=True,
            spm_model_file=str(folder / "pieces.model"),
            piece_id_offset=offset,
            **LENGTHS,
        )
        list(program.run(options, preprocess.load_parts))


OTHERS = [pytest.param(x, marks=pytest.mark.exhaustive) for x in ("bigbird_pegasus", "pegasus_x")]


@pytest.fixture(scope="module", params=["longt5", *OTHERS])
def done(request, tmp_path_factory):
    """A folder in which a model was trained from another one's folder, measured and exported."""
    system, folder = request.param, tmp_path_factory.mktemp(request.param)
    offset = OFFSETS.get(system, 0)
    first = SYSTEMS[system].model(vocab_size=train_pieces(folder) + offset, **SIZES[system])
    make_records(folder, offset)
    first.generation_config = GenerationConfig(GENERATION)
    checkpoints.save_pretrained(first, str(folder / "first"))
    programs.fine_tune(
        "summarization",
        run_mode="train",
        model_config_file=folder / "first" / "config.json",
        init_checkpoint=folder / "first",
        train_data=folder / "train-*.tfrecord",
        train_batch_size=8,
        num_train_epochs=2,
        save_checkpoints_steps=6,
        eval_batch_size=4,
        label_smoothing=0.1,
        spm_model_file=folder / "pieces.model",
        eval_data=folder / "dev-*.tfrecord",
        output_dir=folder / "run",
    )
    programs.fine_tune("summarization", run_mode="export", output_dir=folder / "run")
    return types.SimpleNamespace(system=system, folder=folder, first=first)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow_cases(1)
def test_the_metrics_are_those_of_the_predictions_in_the_file(done):
    found = lines(done.folder / "run" / "predictions.json")
    assert [x["id"] for x in found] == [f"demo-dev-{x:06d}" for x in range(NUM_DEV)]
    gold = [raw["abstract_text"][0][4:-5] for raw in lines(done.folder / "dev.jsonl")]
    assert [x["reference"] for x in found] == gold
    measured = lines(done.folder / "run" / "eval_metrics.jsonl")[-1]
    wanted = metrics.rouge((x["summary"], x["reference"]) for x in found)
    assert {name: measured[name] for name in wanted} == pytest.approx(wanted)


def test_generation_is_as_the_first_checkpoints_folder_says(done):
    entries = json.loads((done.folder / "run" / "generation_config.json").read_text())
    assert entries.items() >= GENERATION.items()  # And the special tokens.
    (export,) = (done.folder / "run" / "export").iterdir()
    exported = json.loads((export / "assets" / "generation_config.json").read_text())
    assert {name: exported[name] for name in GENERATION} == GENERATION
    assert all(len(x["summary"].split()) <= 8 for x in lines(done.folder / "run/predictions.json"))


def test_the_weights_are_those_of_the_first_checkpoint_before_training(done):
    options = {"output_dir": str(done.folder / "other"), "random_seed": 7}
    made = task.SummarizationTask(
        task.SummarizationConfig(encoder_config=done.first.config, **LENGTHS)
    )
    model = run.build_model(made, training.TrainingConfig(**options))
    made.initialize(model, str(done.folder / "first"))
    found = hugging_face.places(model.generator)
    for name, weight in hugging_face.places(done.first).items():
        tf.debugging.assert_equal(found[name].variable, weight.variable)
    assert made.generation_config.entries.items() >= GENERATION.items()


def read_dev(done):
    return lines(done.folder / "dev.jsonl")


def test_served_summaries_are_those_of_the_evaluation(done, caplog):
    raws = [{"id": x["article_id"], "text": " ".join(x["article_text"])} for x in read_dev(done)]
    text = "".join(f"{json.dumps(raw)}\n" for raw in [*raws, {"text": 3}])
    (done.folder / "raw.jsonl").write_text(text, encoding="utf-8")
    programs.fine_tune(
        "summarization",
        run_mode="predict",
        export_dir=done.folder / "run" / "export",
        input_file=done.folder / "raw.jsonl",
        predictions_file=done.folder / "served.jsonl",
        predict_batch_size=3,
    )
    assert f"line {NUM_DEV + 1}: example 'raw.jsonl:{NUM_DEV + 1}': field `text`" in caplog.text
    wanted = lines(done.folder / "run" / "predictions.json")
    for one in wanted:
        del one["reference"]
    assert lines(done.folder / "served.jsonl") == wanted


@pytest.mark.parametrize("done", ["longt5"], indirect=True)
def test_a_stopped_evaluation_goes_on(done, tmp_path):
    config = task.SummarizationConfig(
        encoder_config=done.first.config,
        spm_model_file=str(done.folder / "pieces.model"),
        eval_data=str(done.folder / "dev-*.tfrecord"),
        predictions_file=str(tmp_path / "out.jsonl"),
        **LENGTHS,
    )
    flags = training.TrainingConfig(output_dir=str(done.folder / "run"), eval_batch_size=2)
    stopping, other = StoppingTask(config), task.SummarizationTask(config)
    for made in (stopping, other):
        made.check_run(flags.output_dir)
    with pytest.raises(KeyboardInterrupt):
        stopping.evaluate_checkpoint(flags)
    metrics = other.evaluate_checkpoint(flags)
    measured = lines(done.folder / "run" / "eval_metrics.jsonl")[-1]
    assert metrics == pytest.approx({name: measured[name] for name in metrics})
    assert lines(tmp_path / "out.jsonl") == lines(done.folder / "run" / "predictions.json")


@pytest.mark.parametrize("done", ["longt5"], indirect=True)
def test_options_of_generation_replace_those_of_the_export(done, tmp_path):
    folder = str(done.folder / "run" / "export")
    predictor = predict.SummarizationPredictor(folder, num_beams=1, max_new_tokens=3)
    raw = {"text": " ".join(["rain fell on the road ."] * 9)}
    (found,) = predictor.predict([raw])
    assert found["tokens_left_out"] == 54 + 1 - LENGTHS["long_seq_length"]
    assert len(found["summary"].split()) <= 3
    assert predictor.summarize(raw["text"]) == found["summary"]
    with pytest.raises(ValueError, match="`no_repeat_ngram_size` is 2 in the export"):
        predict.SummarizationPredictor(folder, no_repeat_ngram_size=3)
    with pytest.raises(ValueError, match="has no signature 'dense_features'"):
        serving.SavedModelRunner(folder)
    assert_a_stopped_prediction_goes_on(predictor, read_dev(done), done.folder, tmp_path)


def assert_a_stopped_prediction_goes_on(predictor, raws, folder, tmp_path):
    paths, ready = (str(folder / "dev.jsonl"), str(tmp_path / "out.jsonl")), predictor.task
    predictor.task = StoppingTask(predictor.config)
    with pytest.raises(KeyboardInterrupt):
        predictor.predict_file(*paths, batch_size=2)
    assert len(lines(tmp_path / "out.jsonl.partial")) == 1 + 3
    predictor.task = ready
    assert predictor.predict_file(*paths, batch_size=2) == NUM_DEV
    assert lines(tmp_path / "out.jsonl") == predictor.predict(raws, 2)
