"""How each task's programs are run on small generated data, and what they must reach there."""

import collections
import contextlib
import io
import json
import pathlib
import re
import shutil
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from etcmodel import checkpoints, serving, training
from etcmodel.checkpoints import hugging_face
from etcmodel.models.seq2seq.generation_config import GenerationConfig
from etcmodel.tasks.classification import config as classification
from etcmodel.tasks.coreference import examples as coreference_examples
from etcmodel.tasks.coreference import metrics as coreference
from etcmodel.tasks.hotpotqa import examples as hotpotqa_examples
from etcmodel.tasks.hotpotqa import metrics as hotpotqa
from etcmodel.tasks.majority_tagging import examples as majority_examples
from etcmodel.tasks.majority_tagging import metrics as majority
from etcmodel.tasks.nq import examples as nq_examples
from etcmodel.tasks.nq import metrics as nq
from etcmodel.tasks.numerical_reasoning import examples as numerical_examples
from etcmodel.tasks.numerical_reasoning import metrics as numerical
from etcmodel.tasks.openkp import examples as openkp_examples
from etcmodel.tasks.openkp import metrics as openkp
from etcmodel.tasks.squad import examples as squad_examples
from etcmodel.tasks.squad import metrics as squad
from etcmodel.tasks.summarization import metrics as summarization
from etcmodel.tasks.token_classification import metrics as token_classification
from etcmodel.tasks.triviaqa import examples as triviaqa_examples
from etcmodel.tasks.triviaqa import metrics as triviaqa
from etcmodel.tasks.wikihop import examples as wikihop_examples
from etcmodel.tasks.wikihop import metrics as wikihop
from etcmodel.tools import adversarial_distractors, make_demo_data
from etcmodel.tools.demos import summarization as reports
from etcmodel.training import run as training_run
from tests import page
from tests.models.bigbird_pegasus import models as bigbird_pegasus
from tests.models.longt5 import models as longt5
from tests.models.pegasus_x import models as pegasus_x
from tests.tasks import programs, small_encoders
from tests.tasks.classification import raw_texts
from tests.tasks.coreference import small as voyages
from tests.tasks.record_sets import read_json, read_lines, write_raws
from tests.tasks.token_classification import small as names

_REAL = pathlib.Path(__file__).parents[3] / "shared" / "real"
# True examples beside the checkout, where they are.
REAL = {
    "nq": _REAL / "nq_simplified_1.jsonl",
    "openkp": _REAL / "openkp_1.jsonl",
    "wikihop": _REAL / "wikihop_1.json",
}


class Run(NamedTuple):
    """What was run: folder, paths of the raw files, metrics that were printed.

    Attributes:
        folder: `pathlib.Path` with the records, the run in `run`, its export in `run/export`.
        paths: dict of str. The raw files "train" and "dev", and "vocab".
        metrics: dict of the evaluation.
        evaluated: dict. `Row.answers` of its predictions.
        log: list of str. What was logged meanwhile.
    """

    folder: pathlib.Path
    paths: dict
    metrics: dict
    evaluated: dict
    log: list

    @property
    def export(self):
        return self.folder / "run" / "export"

    def gold(self, module):
        return list(module.read_examples(self.paths["dev"]))


def same(evaluated, predicted):
    """Of the same answers; numbers may differ in their last digits."""
    assert predicted.keys() == evaluated.keys()
    for key, one in evaluated.items():
        for name, value in one.items():
            other = predicted[key][name]
            is_number = isinstance(value, float | dict)
            assert other == (pytest.approx(value, abs=1e-3) if is_number else value), (key, name)


def same_in_order(evaluated, predicted):
    """`same`, told line by line in the order of the raw file."""
    assert list(predicted) == list(evaluated)
    same(evaluated, predicted)


class Row(NamedTuple):
    """A task's programs.

    Attributes:
        make: function of a folder: dict of the paths "train", "dev" and "vocab".
        models: dict of names to functions of (the size of the vocabulary, a folder): flags for the
            model. All but the first, or all in `is_slow`, are in the exhaustive suite.
        records: dict. Options of both sets of records.
        answers: function of a file of predictions: dict of ids to dicts, which an export must tell,
            too.
        learned: function of a `Run`: asserts that it did better than without reading.
        measured: function of a `Run`: the metrics, told anew by its predictions.
        one: function of (the export's predictor, raw examples, a `Run`): asserts of single ones.
        of_dev: dict. Options of the records to evaluate on.
        training: dict. Flags of training.
        of_model: dict of names of `models` to such flags.
        told: str. The file of the evaluation's predictions.
        evaluation: function of (folder, paths): further flags of evaluation.
        evidence: str. The folder beside the raw files that is read as they are.
        has_gold: bool. Whether an evaluation reads the raw file.
        hidden: tuple of str. Fields that are not known when a model is asked.
        bad: tuple of (function of a raw example: one of no use; what is told of it).
        bad_gold: function of a raw example: one that an evaluation leaves out as preprocess does.
        served: (names of outputs, function of (they, the first raw examples, a `Run`)).
        alike: function of `answers` of the evaluation and of the export's predictions.
    """

    make: Callable
    models: Mapping
    records: Mapping
    answers: Callable
    learned: Callable
    measured: Callable
    one: Callable
    served: tuple
    of_dev: Mapping = {}
    training: Mapping = {}
    of_model: Mapping = {}
    told: str = "run/predictions.json"
    evaluation: Callable = lambda folder, paths: {}
    evidence: str = ""
    has_gold: bool = True
    hidden: tuple = ()
    bad: tuple = ()
    bad_gold: Callable = None
    alike: Callable = same


def demo(dataset, num_train, num_dev, seed=0, **settings):
    """Generated data; see `make_demo_data`."""
    counts = {"num_train": num_train, "num_dev": num_dev, "seed": seed}
    return lambda folder: make_demo_data.make_demo_data(
        dataset=dataset, output_dir=str(folder), **counts, **settings
    )


def written(folder, entries):
    (folder / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    return {"model_config_file": folder / "config.json"}


def small(kind, length=96, **fields):
    """Of an encoder of `small_encoders`, what `Row.models` has."""

    def flags(size, folder):
        return written(folder, small_encoders.entries(kind, size, length, **fields))

    return flags


def plain(**entries):
    return lambda size, folder: written(folder, {"vocab_size": size, **entries})


def of_task(task, **flags):
    """What a program printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        programs.fine_tune(task, **flags)
    return printed.getvalue()


def finite(outputs, raws, run):
    for values in outputs.values():
        assert len(values) == len(raws) and np.isfinite(values).all()


def replaced(**fields):
    return lambda raw: {**raw, **fields}


# Labels and tags.

TINY = {"hidden_size": 16, "intermediate_size": 16}
LONGT5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
LONGT5 |= {"local_radius": 4, "dropout_rate": 0.0, "initializer_factor": 0.5}
LABELS = {
    classification.SINGLE_LABEL: lambda found: "yes" if "good" in found else "no",
    classification.MULTI_LABEL: list,
    classification.REGRESSION: lambda found: float(len(found)),
}


def texts(problem_type):
    """Texts of eight words, in which "good" and "bad" may occur."""

    def raws(count, seed):
        random = np.random.default_rng(seed)
        for number in range(count):
            words = random.choice(["it", "is", "very", "."], 8).tolist()
            for word in [word for word in ("good", "bad") if random.random() < 0.5]:
                words[random.integers(8)] = word
            found = [word for word in ("good", "bad") if word in words]
            label = LABELS[problem_type](found)
            yield {"id": f"t{number}", "text": " ".join(words), "label": label}

    def make(folder):
        sets = {"train": raws(256, 1), "dev": raws(60, 2)}
        paths = {name: str(write_raws(folder / f"{name}.jsonl", x)) for name, x in sets.items()}
        return {**paths, "vocab": raw_texts.write_vocab(folder)}

    return make


def told_by_id(path):
    return {told.pop("id"): told for told in read_lines(path)}


def labels_measured(run):
    rows = [(raw["label"], run.evaluated[raw["id"]]) for raw in read_lines(run.paths["dev"])]
    if "accuracy" in run.metrics:
        return {"accuracy": np.mean([gold == told["label"] for gold, told in rows])}
    if "mse" in run.metrics:
        return {"mse": np.mean([(gold - told["value"]) ** 2 for gold, told in rows])}
    sums = [
        (sum(x in told["labels"] for x in gold), len(gold) + len(told["labels"]))
        for gold, told in rows
    ]
    right, both = map(sum, zip(*sums, strict=True))
    return {"micro_f1": 2 * right / both}


def labels_learned(run):
    least = {"accuracy": 0.95, "macro_f1": 0.95, "micro_f1": 0.95, "pearson": 0.8, "spearman": 0.7}
    assert all(run.metrics[name] >= number for name, number in least.items() if name in run.metrics)
    most = {"expected_calibration_error": 0.2, "mse": 0.15}
    assert all(run.metrics[name] < number for name, number in most.items() if name in run.metrics)


def one_text(predictor, raws, run):
    one = predictor.predict_one({"text": "it is very good"})
    if "label" in one:
        assert one["label"] == "yes" and sum(one["probabilities"].values()) == pytest.approx(1)
    assert predictor.predict_one(raws[0]) == predictor.predict([raws[0]])[0]
    if "labels" in one:
        rows = (f'"{raw["id"]}"|"{raw["text"]}"\n' for raw in raws)
        table, told = run.folder / "table.txt", run.folder / "of_table.jsonl"
        table.write_text("id|text\n" + "".join(rows), encoding="utf-8")
        flags = {"input_file": table, "predictions_file": told, "delimiter": "|"}
        of_task("classification", run_mode="predict", export_dir=run.export, **flags)
        same(run.evaluated, told_by_id(told))


def served_labels(outputs, raws, run):
    found = np.argmax(outputs["logits"], -1)
    assert [("no", "yes")[x] for x in found] == [run.evaluated[raw["id"]]["label"] for raw in raws]


_CLASSIFICATION = Row(
    make=texts(classification.SINGLE_LABEL),
    models={
        "etc": small("etc", **TINY, local_radius=4, relative_pos_max_distance=4),
        "bag": plain(model_type="bag"),  # A system from outside the library.
        "big_bird": small("big_bird", **TINY, attention_type="block_sparse", block_size=2),
        "etc_modernbert": small("etc_modernbert", **TINY, local_attention=8),
        "gmat": small("gmat", **TINY, chunk_size=12),
        "longformer": small("longformer", **TINY, attention_window=8),
        "longt5": plain(model_type="longt5", **LONGT5),
    },
    records={"long_seq_length": 24, "global_seq_length": 6},
    answers=told_by_id,
    learned=labels_learned,
    measured=labels_measured,
    one=one_text,
    served=(("logits",), served_labels),
    alike=same_in_order,
    training={
        "train_batch_size": 16,
        "learning_rate": 1e-2,
        "save_checkpoints_steps": 50,
        "num_train_epochs": 10,
        "class_weights": "balanced",
    },
    has_gold=False,
    hidden=("label",),
    bad=((lambda raw: {"text": 3}, "example 'questions.jsonl:61': field `text` must be"),),
)


def of_problem(problem_type, **training):
    return _CLASSIFICATION._replace(
        make=texts(problem_type),
        models={"etc": _CLASSIFICATION.models["etc"]},
        records={**_CLASSIFICATION.records, "problem_type": problem_type},
        of_dev={"labels_file": None} if problem_type == classification.REGRESSION else {},
        training={**_CLASSIFICATION.training, "class_weights": "", "pooling": "mean", **training},
        served=(("logits",), finite),
    )


def sentences(folder):
    paths = {"vocab": names.write_vocab(folder)}
    for name, count, seed in (("train", 200, 1), ("dev", 20, 2)):
        paths[name] = str(folder / f"{name}.conll")
        text = names.conll(names.documents(count, seed))
        pathlib.Path(paths[name]).write_text(text, encoding="utf-8")
    return paths


def tags_of(path):
    """Tagged words, of an evaluation's columns by their place, or of an export's documents."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        rows = [
            list(zip(words, tags, strict=True))
            for one in json.loads(text).values()
            for words, tags in zip(one["words"], one["tags"], strict=True)
        ]
    else:
        blocks = [block for block in text.split("\n\n") if block]
        rows = [[tuple(line.split()[::2]) for line in x.splitlines()] for x in blocks]
    return {number: {"tags": row} for number, row in enumerate(sorted(rows))}


def tags_measured(run):
    lines = (run.folder / "told.txt").read_text(encoding="utf-8").splitlines()
    cells = [line.split() for line in lines if line]
    return {"accuracy": np.mean([gold == tag for _, gold, tag in cells])}


def tags_learned(run):
    # Which words go on with a name, only those before tell; as if none did, it would be 0.4.
    assert run.metrics["f1"] > 0.8 and run.metrics["words_left_out"] == 0


def one_sentence(predictor, raws, run):
    words = ["ann", "boba", "lives", "in", "rio", "."]
    one = predictor.predict_one(words)
    assert one["words"] == words and len(one["probabilities"]) == len(words)
    kinds = {"kind", "text", "sentence", "start", "end"}
    assert one["entities"] and all(x.keys() == kinds for x in one["entities"])
    found = [(x["kind"], x["start"], x["end"]) for x in one["entities"]]
    assert found == token_classification.entities(one["tags"])


def voyages_of(folder):
    paths, _ = voyages.make(folder, 240, 20)
    return {**paths, **{name: str(folder / f"{name}.conll") for name in ("train", "dev")}}


def clusters_of(path):
    """By document, of an evaluation's columns, or of an export's JSON."""
    if path.suffix == ".json":
        return {key: {"clusters": told["clusters"]} for key, told in read_json(path).items()}
    read = coreference_examples.example_reader()(str(path))
    return {x.example_id: {"clusters": [list(map(list, y)) for y in x.clusters]} for x in read}


def voyage_gold(run):
    raws = read_lines(run.folder / "coreference_dev.jsonl")
    return {f"{raw['doc_key']}_0": raw for raw in raws}  # Part 0 of the file of columns.


def clusters_learned(run):
    answers = (voyages.one_cluster, voyages.equal_words)
    raws = list(voyage_gold(run).values())
    trivial = max(coreference.scores((x["clusters"], f(x)) for x in raws)["f1"] for f in answers)
    assert run.metrics["f1"] > trivial + 0.2 and run.metrics["words_left_out"] == 0


def clusters_alike(evaluated, predicted):
    """The windows of the export are the training's: one, which has the whole document."""
    assert evaluated.keys() == predicted.keys()
    pairs = ((told["clusters"], predicted[key]["clusters"]) for key, told in evaluated.items())
    assert coreference.scores(pairs)["f1"] > 0.9


def clusters_measured(run):
    gold = voyage_gold(run)
    pairs = ((gold[key]["clusters"], told["clusters"]) for key, told in run.evaluated.items())
    return {"f1": coreference.scores(pairs)["f1"]}


def one_voyage(predictor, raws, run):
    key, raw = next(iter(voyage_gold(run).items()))
    predictor.predict_file(run.paths["dev"], str(run.folder / "again.json"))
    told = clusters_of(run.folder / "again.json")[key]["clusters"]
    assert predictor.predict_one(raw["sentences"])["clusters"] == told


# Answers.


def found_in(module, metrics, name="answer", key="example_id"):
    """Metrics of `Run.evaluated`."""

    def measured(run):
        found = {x: told[name] for x, told in run.evaluated.items()}
        return metrics(run.gold(module), found)

    return measured


def flat(path):
    return {key: {"answer": value} for key, value in read_json(path).items()}


def hotpotqa_answers(path):
    told = read_json(path)
    return {key: {"answer": x, "sp": told["sp"][key]} for key, x in told["answer"].items()}


def hotpotqa_measured(run):
    told = {name: {key: x[name] for key, x in run.evaluated.items()} for name in ("answer", "sp")}
    return hotpotqa.metrics(run.gold(hotpotqa_examples), told)


def hotpotqa_counts(run):
    """It is trained for no longer than to learn nothing; what is counted adds up."""
    counts = {name: x for name, x in run.metrics.items() if name.startswith("counts/")}
    assert set(run.metrics) >= {"em", "f1", "sp_f1", "joint_f1"} and sum(counts.values()) == 6
    num_right = sum(counts.get(f"counts/{kind}", 0) for kind in ("A_A", "Y_Y", "N_N"))
    assert run.metrics["em"] == pytest.approx(num_right / 6)
    losses = read_lines(run.folder / "run" / "train_metrics.jsonl")[0]
    assert losses["loss"] > 0 and "answer_begin_loss" in losses


def one_hotpotqa(predictor, raws, run):
    first = run.evaluated[raws[0]["_id"]]
    assert predictor.predict_one(raws[0]) == (first["answer"], first["sp"])
    found = page.run_python("hotpotqa.md", "runs/hotpotqa/export", run.folder / "page", run.export)
    assert found["answer"] in ("yes", "no") or found["answer"] in "River Ember It is 88 km long."
    assert found["supporting_facts"] in ([], [["River Ember", 0]])
    # A decoding option may be chosen anew.
    facts = type(predictor)(str(run.export), supporting_fact_threshold=0.0).predict(raws)["sp"]
    for raw in raws:
        all_of_them = {(title, x) for title, told in raw["context"] for x in range(len(told))}
        assert {(title, x) for title, x in facts[raw["_id"]]} >= all_of_them


def nq_answers(path):
    return {str(told.pop("example_id")): told for told in read_json(path)["predictions"]}


def nq_alike(evaluated, predicted):
    assert predicted.keys() == evaluated.keys()
    for key, told in evaluated.items():
        for name in ("long_answer_score", "short_answers_score"):
            assert predicted[key][name] == pytest.approx(told[name], abs=1e-3)
        assert predicted[key]["long_answer"] == told["long_answer"]


def nq_measured(run, predictions=None):
    if predictions is None:
        predictions = [{"example_id": int(key), **told} for key, told in run.evaluated.items()]
    gold = nq_examples.read_gold(run.paths["dev"])
    return nq.metrics(gold, {"predictions": predictions})


def nq_trivial(run):
    """The best that one gets without reading: some fixed candidate, always yes or always no."""
    scores = {"long": [], "short": []}
    for index in range(4):
        predictions = []
        for example in run.gold(nq_examples):
            candidate = example.candidates[min(index, len(example.candidates) - 1)]
            span = {"start_token": candidate.start, "end_token": candidate.end}
            told = {"example_id": example.example_id, "long_answer": span, "short_answers": []}
            told |= {"long_answer_score": 1.0, "short_answers_score": 1.0}
            predictions.append({**told, "yes_no_answer": ("yes", "no")[index % 2]})
        found = nq_measured(run, predictions)
        for kind, values in scores.items():
            values.append(found[f"{kind}-best-threshold-f1"])
    return {kind: max(values) for kind, values in scores.items()}


def nq_learned(run):
    trivial = nq_trivial(run)  # About 0.2 and 0.15.
    for kind in ("long", "short"):
        assert run.metrics[f"{kind}-best-threshold-f1"] > trivial[kind] + 0.2
    assert run.metrics["long-answer-n"] == len(run.evaluated)
    assert (run.folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def nq_evaluation(folder, paths):
    """By a cache of the annotations, and with a picture."""
    nq_examples.write_gold_cache(paths["dev"], str(folder / "gold.jsonl.gz"))
    return {"eval_gold": folder / "gold.jsonl.gz", "curve_plot_file": folder / "curves.png"}


def one_nq(predictor, raws, run):
    short = type(predictor)(str(run.export), max_short_answer_len=1)
    one = next(iter(run.gold(nq_examples)))
    (told,) = short.predict([one])["predictions"]
    lengths = [x["end_token"] - x["start_token"] for x in told["short_answers"]]
    assert told["example_id"] == one.example_id and set(lengths) <= {1}
    other = {**raws[0], "question_text": "who else"}  # Its windows would join those of the first.
    with pytest.raises(ValueError, match=f"two examples with the id {one.example_id!r}"):
        predictor.predict([raws[0], other])
    if REAL["nq"].exists():
        (example,) = nq_examples.read_examples(str(REAL["nq"]))
        (told,) = predictor.predict([example], batch_size=16)["predictions"]
        span = told["long_answer"]
        assert 0 <= span["start_token"] < span["end_token"] <= len(example.words)
    refuses_a_choice_of_windows(run)


def refuses_a_choice_of_windows(run):
    """Some were left out by the answers; of all windows, records are as good as those of dev."""
    settings = read_json(run.folder / "train.config.json")
    assert settings["is_training"] and settings["include_unknown_rate"] == 1
    (run.folder / "chosen").mkdir()
    for path in run.folder.glob("train-*.tfrecord"):
        shutil.copy(path, run.folder / "chosen")
    text = json.dumps({**settings, "include_unknown_rate": 0.02})
    (run.folder / "chosen" / "train.config.json").write_text(text)
    data = {
        "eval_data": run.folder / "chosen" / "train-*.tfrecord",
        "eval_gold": run.paths["train"],
    }
    with contextlib.redirect_stderr(io.StringIO()) as told, pytest.raises(SystemExit):
        programs.fine_tune("nq", run_mode="evaluate", output_dir=run.folder / "run", **data)
    message = "train.config.json: the records are for training: by the annotations, a share of 0.98"
    assert message in told.getvalue()


def served_windows(outputs, raws, run):
    finite(outputs, raws, run)
    assert len(outputs["answer_type_logits"][0]) == 5


def phrases_of(path):
    return {x["url"]: {"phrases": [y for (y,) in x["KeyPhrases"]]} for x in read_lines(path)}


def most_frequent_phrases(example):
    """The pairs of words that a page repeats most often, the earliest first."""
    words = example.text.lower().split()
    counts = collections.Counter(zip(words, words[1:], strict=False))
    return [" ".join(pair) for pair, _ in counts.most_common(5)]


def phrases_measured(run, phrases=None):
    gold = run.gold(openkp_examples)
    found = phrases or {key: told["phrases"] for key, told in run.evaluated.items()}
    return openkp.metrics(list(map(openkp.TextExample.of, gold)), found)


def phrases_learned(run):
    counted = {x.url: most_frequent_phrases(x) for x in run.gold(openkp_examples)}
    trivial = phrases_measured(run, counted)["f1@3"]
    assert trivial < 0.4 and run.metrics["f1@3"] > trivial + 0.25


def one_page(predictor, raws, run):
    wanted = run.evaluated[raws[0]["url"]]["phrases"]
    two = type(predictor)(str(run.export), max_kp_predictions=2)
    assert two.predict(raws[:1]) == {raws[0]["url"]: wanted[:2]}
    place = run.folder / "page"
    found = page.run_python("openkp.md", "runs/openkp/export", place, run.export, page=raws[0])
    assert found["phrases_by_url"] == {raws[0]["url"]: wanted[:3]}
    with pytest.raises(ValueError, match="page 'u': field `VDOM` is missing"):
        predictor.predict([{"url": "u", "text": "a rose"}])
    if REAL["openkp"].exists():
        (example,) = openkp_examples.read_examples(REAL["openkp"])
        (found,) = predictor.predict([example]).values()
        assert len(found) == 5 and all(phrase in example.text.lower() for phrase in found)


def served_phrases(outputs, raws, run):
    for row, raw in enumerate(raws):
        words = raw["text"].lower().split(" ")
        start, length = outputs["top_start_idx"][row][0], outputs["top_phrase_len"][row][0]
        assert " ".join(words[start : start + length]) == run.evaluated[raw["url"]]["phrases"][0]


def with_more_text(raw):
    elements = json.loads(raw["VDOM"])
    elements[1]["text"] += " more"
    return {**raw, "url": "refused/text", "VDOM": json.dumps(elements)}


def squad_gold(run):
    return {x.example_id: x for x in run.gold(squad_examples)}


def squad_measured(run):
    """Told by the best answers, whatever the odds against any, and these odds."""
    odds, nbest = (
        read_json(run.folder / "run" / f"{x}.json") for x in ("null_odds", "nbest_predictions")
    )
    best = {key: next(x["text"] for x in told if x["text"]) for key, told in nbest.items()}
    for key, told in nbest.items():
        assert run.evaluated[key]["answer"] == ("" if odds[key] > 0 else best[key])
        context = squad_gold(run)[key].context
        assert all(context[x["start"] : x["end"]] == x["text"] for x in told if x["text"])
    return squad.metrics(run.gold(squad_examples), best, odds)


def squad_learned(run):
    # No answer to any question is right for 0.3 of them, and no other one for as many.
    none = squad.metrics(run.gold(squad_examples), dict.fromkeys(squad_gold(run), ""))
    assert run.metrics["best_f1"] >= run.metrics["f1"] >= none["f1"] + 0.2


def one_squad(predictor, raws, run):
    one = squad_gold(run)["demo_dev_0"]
    told = predictor.predict_one(one.question, one.context)
    assert told["answer"] == run.evaluated["demo_dev_0"]["answer"]
    sure = type(predictor)(str(run.export), null_score_diff_threshold=1e9)
    sure.predict_file(run.paths["dev"], str(run.folder / "sure.json"))
    told = read_json(run.folder / "run" / "nbest_predictions.json")
    best = {key: next(x["text"] for x in told[key] if x["text"]) for key in told}
    assert read_json(run.folder / "sure.json") == best
    assert (run.folder / "sure_null_odds.json").exists()
    adversaries_are_made(run)


def as_paragraphs(path):
    """HotpotQA's questions of SQuAD's: the paragraph that answers, and that of another."""
    pairs = [(x["title"], x["paragraphs"][0]) for x in read_json(path)["data"]]
    raws = []
    for (title, paragraph), (other, rest) in zip(pairs, pairs[1:], strict=False):
        (question,) = paragraph["qas"]
        if not question["answers"] or title == other:
            continue
        (answer,) = question["answers"]
        sentences = re.split(r"(?<=\.)(?= )", paragraph["context"])
        ends = [sum(map(len, sentences[: x + 1])) for x in range(len(sentences))]
        fact = next(x for x, end in enumerate(ends) if answer["answer_start"] < end)
        context = [[title, sentences], [other, [rest["context"]]]]
        raws.append(
            {
                "_id": question["id"],
                "question": question["question"],
                "answer": answer["text"],
                "type": "bridge",
                "supporting_facts": [[title, fact]],
                "context": context[:: -1 if len(raws) % 2 else 1],
            }
        )
    return raws


def adversaries_are_made(run):
    """By the run as the reader that is to be misled."""
    few = write_raws(run.folder / "few.json", as_paragraphs(run.paths["dev"])[:5])
    harder = run.folder / "adversarial.json"
    adversarial_distractors.main(
        adversarial_distractors.AdversarialOptions(
            input_file=str(few),
            output_file=str(harder),
            num_distractors=1,
            num_retrieved=3,
            reader_export_dir=str(run.export),
        )
    )
    made = list(squad_examples.read_examples(str(harder)))
    assert [x.example_id for x in made] == [raw["_id"] for raw in read_json(few)]
    assert all(x.answers for x in made)


def triviaqa_learned(run):
    assert run.metrics["em"] >= 0.8 and run.metrics["f1"] >= run.metrics["em"]
    assert len(run.evaluated) == 40


def one_triviaqa(predictor, raws, run):
    texts = ["Nobody came from Tarn Mead.", "Ada Kelso came from Ilmaria as a child. It rained."]
    told = predictor.predict_one("Which country was Ada Kelso from?", texts)
    assert (told["answer"], told["document"]) == ("Ilmaria", "SearchResults[1]")
    with pytest.raises(ValueError, match="example 'one': .*no document that can be used"):
        predictor.predict_one("Which country?", [])
    evaluated = {"run_mode": "evaluate", "output_dir": run.folder / "run"}
    evaluated |= {"eval_data": run.folder / "dev-*.tfrecord", "eval_gold": run.paths["dev"]}
    evaluated |= {"predictions_file": run.folder / "other.json"}
    found = json.loads(of_task("triviaqa", answer_score="sum", **evaluated).splitlines()[-1])
    assert found["em"] >= 0.8
    found = json.loads(of_task("triviaqa", by_document=True, **evaluated).splitlines()[-1])
    told = read_json(run.folder / "other.json")
    assert found["em"] <= 0.5 and len(told) == 80  # One of two documents has it.
    options = {"evidence_dir": str(run.folder / "evidence"), "by_document": True}
    each = type(predictor)(str(run.export), **options)
    each.predict_file(run.paths["dev"], str(run.folder / "each.json"))
    assert read_json(run.folder / "each.json") == told


def wikihop_learned(run):
    gold = run.gold(wikihop_examples)
    guessing = sum(1 / len(example.candidates) for example in gold) / len(gold)  # About 0.18.
    first = wikihop.metrics(gold, {x.example_id: x.candidates[0] for x in gold})["accuracy"]
    assert run.metrics["accuracy"] > 2.5 * max(guessing, first)


def one_wikihop(predictor, raws, run):
    assert predictor.predict_one(raws[0]) == run.evaluated[raws[0]["id"]]["answer"]
    found = page.run_python("wikihop.md", "runs/wikihop/export", run.folder / "page", run.export)
    assert found["answer"] in ("avaria", "belmark")
    if REAL["wikihop"].exists():
        # Spelled in characters, and cut to this model's short inputs.
        (raw,) = read_json(REAL["wikihop"])
        assert predictor.predict_one(raw) in raw["candidates"]


def served_candidates(outputs, raws, run):
    rows = zip(raws, outputs["answer_ids"], strict=True)
    told = [raw["candidates"][number] for raw, number in rows]
    assert told == [run.evaluated[raw["id"]]["answer"] for raw in raws]


# Texts and numbers that are generated; tags of numbers.


def one_of_many(predictor, raws, run):
    """What is told of one example is what is told of it among others."""
    key = raws[0]["id"]
    assert predictor.predict(raws[:1]) == {key: run.evaluated[key]["answer"]}
    with pytest.raises(ValueError, match=f"two examples with the id '{key}'"):
        predictor.predict([raws[0], raws[0]])


def majority_learned(run):
    """Beside the constant answer, which is what is learned without a memory."""
    assert run.metrics["tag_accuracy"] >= run.metrics["constant_tag_accuracy"] - 0.1


def numerical_learned(run):
    kinds = {f"exact_match_{example.kind}" for example in run.gold(numerical_examples)}
    assert {x for x in run.metrics if x.startswith("exact_match_")} == kinds


GENERATION = {"num_beams": 2, "max_length": 9, "length_penalty": 0.5, "no_repeat_ngram_size": 2}


def documents(folder):
    """Reports, and a SentencePiece model of their words as the vocabulary."""
    paths = {"vocab": str(folder / "pieces.model")}
    for split, count in (("train", 24), ("dev", 7)):
        made = reports.make_examples(split=split, num_examples=count, seed=0, distance=8)
        paths[split] = str(write_raws(folder / f"{split}.jsonl", made))
    made = reports.make_examples(split="train", num_examples=200, seed=0, distance=8)
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
    return paths


def of_decoder(module, offset=0, **sizes):
    """The folder of a model with settings of generation, from which a run begins."""

    def flags(size, folder):
        first = module.model(vocab_size=80 + offset, **sizes)
        first.generation_config = GenerationConfig(GENERATION)
        checkpoints.save_pretrained(first, str(folder / "first"))
        config = folder / "first" / "config.json"
        return {"model_config_file": config, "init_checkpoint": folder / "first"}

    return flags


def summaries_of(path):
    kept = ("summary", "tokens_left_out")
    return {told["id"]: {name: told[name] for name in kept} for told in read_lines(path)}


def gold_summaries(run):
    return {x["article_id"]: x["abstract_text"][0][4:-5] for x in read_lines(run.paths["dev"])}


def summaries_measured(run):
    gold = gold_summaries(run)
    return summarization.rouge((told["summary"], gold[x]) for x, told in run.evaluated.items())


def as_first_checkpoint_says(run):
    """Nothing is learned of so few; generation is as the folder says from which the run began."""
    entries = read_json(run.folder / "run" / "generation_config.json")
    assert entries.items() >= GENERATION.items()  # And the special tokens.
    (export,) = run.export.iterdir()
    exported = read_json(export / "assets" / "generation_config.json")
    assert {name: exported[name] for name in GENERATION} == GENERATION
    assert all(len(told["summary"].split()) <= 8 for told in run.evaluated.values())
    told = {x["id"]: x["reference"] for x in read_lines(run.folder / "run" / "predictions.json")}
    assert told == gold_summaries(run)


def one_document(predictor, raws, run):
    short = type(predictor)(str(run.export), num_beams=1, max_new_tokens=3)
    raw = {"text": " ".join(["rain fell on the road ."] * 9)}
    (found,) = short.predict([raw])
    assert found["tokens_left_out"] == 54 + 1 - 32
    assert len(found["summary"].split()) <= 3
    assert short.summarize(raw["text"]) == found["summary"]
    with pytest.raises(ValueError, match="`no_repeat_ngram_size` is 2 in the export"):
        type(predictor)(str(run.export), no_repeat_ngram_size=3)
    with pytest.raises(ValueError, match="has no signature 'dense_features'"):
        serving.SavedModelRunner(str(run.export))
    begins_with_the_first_checkpoint(predictor.task_class, run)


def begins_with_the_first_checkpoint(task_class, run):
    first = checkpoints.load_pretrained(str(run.folder / "first"))
    options = {"long_seq_length": 32, "target_length": 10}
    made = task_class(task_class.config_class(encoder_config=first.config, **options))
    config = training.TrainingConfig(output_dir=str(run.folder / "other"), random_seed=7)
    model = training_run.build_model(made, config)
    made.initialize(model, str(run.folder / "first"))
    found = hugging_face.places(model.generator)
    for name, weight in hugging_face.places(first).items():
        tf.debugging.assert_equal(found[name].variable, weight.variable)
    assert made.generation_config.entries.items() >= GENERATION.items()


def lengths(long, globals_):
    return {"long_seq_length": long, "global_seq_length": globals_}


ROWS = {
    "classification": _CLASSIFICATION,
    "classification, several labels": of_problem(classification.MULTI_LABEL),
    "classification, regression": of_problem(
        classification.REGRESSION, num_train_epochs=40, early_stopping_patience=5
    ),
    "token_classification": Row(
        make=sentences,
        models={
            "longformer": small("longformer", **TINY, attention_window=8),
            "etc": small("etc", **TINY, local_radius=4, relative_pos_max_distance=4),
            "big_bird": small("big_bird", **TINY),
            "gmat": small("gmat", **TINY, chunk_size=12),
            "modernbert": small("modernbert", **TINY, local_attention=8, num_hidden_layers=2),
        },
        records={**lengths(24, 6), "stride": 4},
        answers=tags_of,
        learned=tags_learned,
        measured=tags_measured,
        one=one_sentence,
        served=(("logits",), finite),
        training={
            "train_batch_size": 8,
            "learning_rate": 1e-2,
            "num_train_epochs": 10,
            "skip_padding": True,
        },
        told="told.txt",
        has_gold=False,
    ),
    "coreference": Row(
        make=voyages_of,
        models={
            kind: small(kind, **TINY, **own)
            for kind, own in {
                "longformer": {"attention_window": 8},
                "etc": {"local_radius": 4, "relative_pos_max_distance": 4},
                "big_bird": {},
                "modernbert": {"local_attention": 8, "num_hidden_layers": 2},
                "gmat": {"chunk_size": 12},
            }.items()
        },
        records=lengths(96, 12),
        of_dev={"stride": 48},
        answers=clusters_of,
        learned=clusters_learned,
        measured=clusters_measured,
        one=one_voyage,
        served=(("scores",), finite),
        training={
            "train_batch_size": 8,
            "learning_rate": 1e-2,
            "head_rate_factor": 1,
            "num_train_epochs": 7,
            "skip_padding": True,
            "max_span_width": 5,
            "top_span_ratio": 1,
            "coref_depth": 1,
            "max_top_antecedents": 20,
            "ffnn_size": 32,
            "feature_size": 4,
            "head_dropout": 0.0,
        },
        told="told.conll",
        has_gold=False,
        alike=clusters_alike,
    ),
    "hotpotqa": Row(
        make=demo("hotpotqa", 12, 6, seed=3),
        models={"etc": small("etc", hidden_size=8, intermediate_size=16, local_radius=8)},
        records=lengths(320, 96),
        answers=hotpotqa_answers,
        learned=hotpotqa_counts,
        measured=hotpotqa_measured,
        one=one_hotpotqa,
        served=(("supporting_facts_probs",), finite),
        training={"train_batch_size": 4, "num_train_epochs": 1, "gradient_accumulation_steps": 2},
        hidden=("answer", "supporting_facts", "type", "level"),
        bad=(
            (lambda raw: {"_id": "bare"}, "example 'bare': field `question` is missing"),
            (
                replaced(_id="long", question="who " * 320),
                "example 'long': the CLS token and the question need",
            ),
        ),
        bad_gold=replaced(_id="bad", supporting_facts=[["a title", "first"]]),
    ),
    "nq": Row(
        make=demo("nq", 480, 80, seed=3),
        models={
            "etc": small("etc", num_hidden_layers=2, local_radius=16),
            **{
                kind: small(kind, 128, num_hidden_layers=2)
                for kind in ("gmat", "longformer", "modernbert")
            },
        },
        records={**lengths(128, 32), "question_len": 16, "stride": 64},
        answers=nq_answers,
        learned=nq_learned,
        measured=nq_measured,
        one=one_nq,
        served=(("answer_type_logits", "sa_start_pred"), served_windows),
        training={"train_batch_size": 16, "mask_long_output": True},
        of_model={
            "etc": {"learning_rate": 4e-3, "num_train_epochs": 3, "initialization": "mimetic"},
            **{
                kind: {"learning_rate": 3e-3, "num_train_epochs": epochs, "skip_padding": True}
                for kind, epochs in {"gmat": 30, "longformer": 8, "modernbert": 8}.items()
            },
        },
        hidden=("annotations",),
        bad=(
            (replaced(example_id=5, long_answer_candidates=[]), "example 5: "),
            (lambda raw: "nothing", "malformed JSON"),
        ),
        evaluation=nq_evaluation,
        alike=nq_alike,
    ),
    "openkp": Row(
        make=demo("openkp", 800, 60, seed=3),
        models={"etc": small("etc", intermediate_size=32, local_radius=8)},
        records=lengths(104, 16),
        answers=phrases_of,
        learned=phrases_learned,
        measured=phrases_measured,
        one=one_page,
        served=(("top_start_idx", "top_phrase_len"), served_phrases),
        alike=same_in_order,
        training={
            "train_batch_size": 8,
            "num_train_epochs": 1,
            "learning_rate": 4e-3,
            "label_occurrences": "max",
        },
        hidden=("KeyPhrases",),
        bad=(
            (lambda raw: "{nonsense", "malformed JSON"),
            (replaced(url="refused/empty", text=" "), "page 'refused/empty': the page is empty"),
            (with_more_text, "page 'refused/text': VDOM element 1: `text` must be the"),
            (
                lambda raw: {"url": "refused/no-vdom", "text": raw["text"]},
                "page 'refused/no-vdom': field `VDOM` is missing",
            ),
        ),
        bad_gold=with_more_text,
    ),
    "squad": Row(
        make=demo("squad", 600, 40),
        models={
            "etc": small(
                "etc", num_hidden_layers=2, local_radius=16, use_pre_activation_order=True
            ),
            "big_bird": small("big_bird", num_hidden_layers=2),
            "gmat": small("gmat", num_hidden_layers=2),
            "longformer": small("longformer", num_hidden_layers=2, attention_window=32),
        },
        records={**lengths(64, 32), "doc_stride": 24},
        answers=flat,
        learned=squad_learned,
        measured=squad_measured,
        one=one_squad,
        served=(("start", "end"), finite),
        training={
            "train_batch_size": 16,
            "learning_rate": 3e-3,
            "num_train_epochs": 12,
            "skip_padding": True,
        },
        of_model={"etc": {"initialization": "mimetic", "num_train_epochs": 6}},
    ),
    "triviaqa": Row(
        make=demo("triviaqa", 600, 40),
        models={"longformer": small("longformer", num_hidden_layers=2, attention_window=32)},
        records={**lengths(64, 32), "stride": 20},
        answers=flat,
        learned=triviaqa_learned,
        measured=found_in(triviaqa_examples, triviaqa.metrics),
        one=one_triviaqa,
        served=(("start", "end"), finite),
        training={"train_batch_size": 16, "learning_rate": 4e-3, "num_train_epochs": 9},
        evidence="evidence",
        hidden=("Answer",),
        bad=(
            (
                replaced(QuestionId="q", EntityPages=[{"Filename": "none.txt"}]),
                "example 'q': wikipedia/none.txt: no such file in",
            ),
        ),
    ),
    "wikihop": Row(
        make=demo("wikihop", 1000, 200, seed=1),
        models={
            "etc": small(
                "etc",
                num_hidden_layers=2,
                local_radius=8,
                initializer_range=0.02,
                hidden_dropout_prob=0.1,
                attention_probs_dropout_prob=0.1,
            ),
            "etc_modernbert": small("etc_modernbert", num_hidden_layers=2, local_attention=24),
        },
        records={**lengths(160, 56), "tokenizer_type": "BERT"},
        answers=flat,
        learned=wikihop_learned,
        measured=found_in(wikihop_examples, wikihop.metrics),
        one=one_wikihop,
        served=(("answer_ids",), served_candidates),
        training={"train_batch_size": 32, "label_smoothing": 0.05},
        of_model={
            # An ETC's config is changed by options, which a ModernBERT's has other names for.
            "etc": {
                "num_train_epochs": 4,
                "learning_rate": 3e-3,
                "initialization": "mimetic",
                "hidden_dropout_prob": 0,
                "attention_probs_dropout_prob": 0,
                "local_radius": 12,
            },
            "etc_modernbert": {"num_train_epochs": 6, "learning_rate": 6e-3},
        },
        hidden=("answer",),
        bad=(
            (lambda raw: {"id": "bare"}, "example 'bare': field"),
            (replaced(id="no token", candidates=[" "]), "example 'no token': "),
        ),
        bad_gold=replaced(id="bad", answer=3),
    ),
    "majority_tagging": Row(
        make=demo("majority_tagging", 48, 8, length=12),
        models={"gmat": small("gmat", chunk_size=8)},
        records={"long_seq_length": 12},
        answers=flat,
        learned=majority_learned,
        measured=found_in(majority_examples, majority.metrics),
        one=one_of_many,
        served=(("logits",), finite),
        training={
            "train_batch_size": 16,
            "num_train_epochs": 4,
            "learning_rate": 1e-2,
            "num_memory_tokens": 2,
            "chunk_size": 4,
        },
        hidden=("tags",),
        bad=(
            (replaced(id="long", tokens=[1] * 13), "more than --long_seq_length=12"),
            (lambda raw: {"id": "bare"}, "example 'bare': field `tokens` is missing"),
        ),
    ),
    "numerical_reasoning": Row(
        make=demo("numerical_reasoning", 32, 8, sentences=2),
        models={"gmat": small("gmat", chunk_size=8)},
        records={"long_seq_length": 48, "max_answer_length": 8},
        answers=flat,
        learned=numerical_learned,
        measured=found_in(numerical_examples, numerical.metrics),
        one=one_of_many,
        served=(("sequences",), finite),
        training={
            "train_batch_size": 16,
            "num_train_epochs": 1,
            "learning_rate": 1e-3,
            "chunk_size": 16,
            "num_memory_tokens": 8,
            "untied_memory": True,
        },
        hidden=("answer",),
        bad=(
            (lambda raw: {"id": "a", "question": "?"}, "example 'a': field `passage` is missing"),
        ),
    ),
    "summarization": Row(
        make=documents,
        models={
            "longt5": of_decoder(longt5, num_layers=1),
            "bigbird_pegasus": of_decoder(bigbird_pegasus, encoder_layers=1, decoder_layers=1),
        },
        records={"long_seq_length": 32, "target_length": 10},
        answers=summaries_of,
        learned=as_first_checkpoint_says,
        measured=summaries_measured,
        one=one_document,
        served=(("sequences",), finite),
        training={
            "train_batch_size": 8,
            "num_train_epochs": 2,
            "eval_batch_size": 4,
            "label_smoothing": 0.1,
        },
        has_gold=False,
        hidden=("abstract_text",),
        bad=((lambda raw: {"text": 3}, "example 'questions.jsonl:8': field `text`"),),
    ),
}
ROWS["summarization, other ids"] = ROWS["summarization"]._replace(
    models={"pegasus_x": of_decoder(pegasus_x, 103, encoder_layers=1, decoder_layers=1)},
    records={**ROWS["summarization"].records, "piece_id_offset": 103},
)
