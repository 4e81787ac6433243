"""The programs of the task, on generated data and on a true example."""

import collections
import contextlib
import io
import json
import pathlib

import pytest

from etcmodel import preprocessing
from etcmodel.preprocessing import program
from etcmodel.tasks.openkp import examples, metrics, predict, preprocess
from etcmodel.tools import make_demo_data
from tests import page as docs_page
from tests.tasks import programs

pytestmark = pytest.mark.slow

REAL_FILE = pathlib.Path(__file__).parents[4] / "shared" / "real" / "openkp_1.jsonl"
LENGTHS = {"long_max_length": 104, "global_max_length": 16}
CONFIG = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "local_radius": 8,
    "relative_pos_max_distance": 4,
    "relative_vocab_size": 12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
# Nothing but TensorFlow: from a record to the words of the best phrase.
TENSORFLOW_ONLY = """
import json, sys
import tensorflow as tf

records, pages, export = sys.argv[1:]
assert "etcmodel" not in sys.modules
serve = tf.saved_model.load(export).signatures["serving_default"]
batch = list(tf.data.TFRecordDataset(records).take(3).as_numpy_iterator())
outputs = serve(examples=tf.constant(batch))
with open(pages) as file:
    texts = [json.loads(line)["text"].lower().split(" ") for line, _ in zip(file, batch)]
for words, starts, lengths in zip(texts, outputs["top_start_idx"], outputs["top_phrase_len"]):
    print(" ".join(words[starts[0] : starts[0] + lengths[0]]))
"""


def most_frequent_phrases(page):
    """The baseline: the pairs of words that a page repeats most often, the earliest first."""
    words = page.text.lower().split()
    counts = collections.Counter(zip(words, words[1:], strict=False))
    return [" ".join(pair) for pair, _ in counts.most_common(5)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with raw data, config, records, a trained model and its evaluation."""
    folder = tmp_path_factory.mktemp("openkp")
    paths = make_demo_data.make_demo_data(
        dataset="openkp", output_dir=folder, num_train=800, num_dev=60, seed=3
    )
    vocab = pathlib.Path(paths["vocab"])
    config = {**CONFIG, "vocab_size": len(vocab.read_text(encoding="utf-8").splitlines())}
    (folder / "etc_config.json").write_text(json.dumps(config))
    dev = with_refused_pages(paths["dev"], folder / "openkp_dev_raw.jsonl")
    for split, path in (("train", paths["train"]), ("dev", dev)):
        preprocess_here(folder, path, split)
    flags = {
        "etc_config_file": folder / "etc_config.json",
        "bert_vocab_path": vocab,
        "output_dir": folder / "model",
        **LENGTHS,
    }
    training = programs.start(
        "openkp",
        "run_finetuning",
        run_mode="train",
        input_tfrecord=folder / "records" / "openkp_train.tfrecord*",
        batch_size=8,
        num_train_epochs=1,
        learning_rate=4e-3,
        label_occurrences="max",
        **flags,
    )
    _, log = programs.finish(training)
    assert "step 100/100" in log
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        programs.fine_tune(
            "openkp",
            run_mode="evaluate",
            eval_input_tfrecord=folder / "records" / "openkp_dev_raw.tfrecord*",
            eval_text_example_path=dev,
            predictions_file=folder / "evaluated.jsonl",
            **flags,
        )
    metrics = json.loads(printed.getvalue().splitlines()[-1])
    programs.fine_tune("openkp", run_mode="export", **flags)
    return {"folder": folder, "flags": flags, "dev": paths["dev"], "metrics": metrics}


def refused_pages(page):
    """Lines that preprocessing skips, made of a good page."""
    elements = json.loads(page["VDOM"])
    elements[1]["text"] += " more"
    changes = [{"text": " "}, {"VDOM": json.dumps(elements)}]
    changed = [{**page, "url": f"refused/{i}", **change} for i, change in enumerate(changes)]
    return ["{nonsense\n", *(f"{json.dumps(page)}\n" for page in changed)]


def with_refused_pages(path, target):
    """Copies a file; its first lines are refused."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    lines = refused_pages(json.loads(lines[0])) + lines
    target.write_text("".join(lines), encoding="utf-8")
    return str(target)


def preprocess_here(folder, path, split):
    options = preprocess.PreprocessOptions(
        input_pattern=path,
        output_dir=str(folder / "records"),
        vocab_file=str(folder / "vocab.txt"),
        num_shards=1,
        is_training=split == "train",
        strict=split == "train",
        long_seq_length=LENGTHS["long_max_length"],
        global_seq_length=LENGTHS["global_max_length"],
    )
    preprocessing.run(program.make_job(options, *preprocess.load_parts()))


def read_predictions(path):
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {line["url"]: [phrase for (phrase,) in line["KeyPhrases"]] for line in lines}


def test_pages_that_preprocessing_skips_are_not_scored(made):
    """Other than pages that have no record for another reason, which score 0."""
    gold = list(map(metrics.TextExample.of, examples.read_examples(made["dev"])))
    predicted = read_predictions(made["folder"] / "evaluated.jsonl")
    assert list(predicted) == [page.url for page in gold]
    assert metrics.metrics(gold, predicted) == made["metrics"]


def test_learns_to_find_key_phrases_far_better_than_by_counting(made):
    gold = list(map(metrics.TextExample.of, examples.read_examples(made["dev"])))
    counted = {page.url: most_frequent_phrases(page) for page in gold}
    baseline = metrics.metrics(gold, counted)["f1@3"]
    assert baseline < 0.4
    assert made["metrics"]["f1@3"] > baseline + 0.25


def test_an_export_predicts_raw_pages_as_the_evaluation_did(made, caplog):
    folder = made["folder"]
    unlabeled = folder / "unlabeled.jsonl"
    with open(made["dev"], encoding="utf-8") as file, open(unlabeled, "w") as out:
        for number, page in enumerate(map(json.loads, file)):
            del page["KeyPhrases"]
            out.write(f"{json.dumps(page)}\n")
            if not number:
                out.writelines(refused_pages(page))
                no_vdom = {"url": "refused/no-vdom", "text": page["text"]}
                out.write(f"{json.dumps(no_vdom)}\n")
        if REAL_FILE.exists():
            out.write(REAL_FILE.read_text(encoding="utf-8").strip() + "\n")
    programs.fine_tune(
        "openkp",
        run_mode="predict",
        export_dir=folder / "model" / "export",
        predict_input_file=unlabeled,
        predictions_file=folder / "predictions.jsonl",
    )
    predicted = read_predictions(folder / "predictions.jsonl")
    evaluated = read_predictions(folder / "evaluated.jsonl")
    assert {url: predicted[url] for url in evaluated} == evaluated
    assert not [url for url in predicted if url.startswith("refused")]
    skipped = [m.removeprefix(f"skipped {unlabeled}: ") for m in caplog.messages if "skipped" in m]
    assert skipped[0].startswith("line 2: malformed JSON")
    assert skipped[1].startswith("line 3: page 'refused/0': the page is empty")
    assert skipped[2].startswith("line 4: page 'refused/1': VDOM element 1: `text` must be the")
    assert skipped[3].startswith("line 5: page 'refused/no-vdom': field `VDOM` is missing")
    num_pages = len(evaluated) + 4 + REAL_FILE.exists()
    assert skipped[4:] == [f"{unlabeled}: 4 of {num_pages} pages skipped"]
    if REAL_FILE.exists():
        (real,) = examples.read_examples(REAL_FILE)
        text = real.text.lower()
        assert len(predicted[real.url]) == 5
        assert all(phrase in text for phrase in predicted[real.url])

    predictor = predict.OpenKpPredictor(str(folder / "model" / "export"), max_kp_predictions=2)
    with open(unlabeled, encoding="utf-8") as file:
        page = json.loads(file.readline())
    assert predictor.predict([page]) == {page["url"]: evaluated[page["url"]][:2]}
    place, export = folder / "page", folder / "model" / "export"
    found = docs_page.run_python("openkp.md", "runs/openkp/export", place, export, page=page)
    assert found["phrases_by_url"] == {page["url"]: evaluated[page["url"]][:3]}
    with pytest.raises(ValueError, match="page 'u': field `VDOM` is missing"):
        predictor.predict([{"url": "u", "text": "a rose"}])


@pytest.mark.exhaustive
def test_an_export_needs_nothing_but_tensorflow(made):
    folder = made["folder"]
    (records,) = (folder / "records").glob("openkp_dev_raw.tfrecord-*")
    (export,) = (folder / "model" / "export").iterdir()
    serving = programs.start_python("-c", TENSORFLOW_ONLY, records, made["dev"], export)
    printed, _ = programs.finish(serving)
    evaluated = read_predictions(folder / "evaluated.jsonl")
    best = [phrases[0] for phrases in evaluated.values()]
    assert printed.splitlines() == best[:3]
