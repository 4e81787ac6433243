"""Every Natural Questions case of the reference values."""

import gzip
import pathlib
import tempfile

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.preprocessing import program
from etcmodel.tasks.nq import config as nq_config
from etcmodel.tasks.nq import examples, features, metrics, preprocess
from tests.reference import cases, nq_model
from tests.reference.core_tasks import tokenizer_of

TOPIC = "nq"


def raw_examples():
    lines = examples.read_lines(cases.resolve(TOPIC, "raw_examples.jsonl"))
    parsed = [examples.parse_line(line) for line in lines]
    return {example.example_id: example for example in parsed}


def make_config(init, special_ids):
    settings = dict(init)
    names = ("tokenizer_type", "vocab_file", "spm_model_path", "do_lower_case")
    _, *files = (settings.pop(name) for name in names)
    vocab_file, spm_model_path, do_lower_case = files
    tokenizer = tokenizer_of(TOPIC, vocab_file, spm_model_path, do_lower_case)
    settings["long_seq_length"] = settings.pop("seq_len")
    settings["global_seq_length"] = settings.pop("global_seq_len")
    settings["is_training"] = settings.pop("is_train")
    settings["global_token_types"] = tuple(settings["global_token_types"])
    config = nq_config.NqInputConfig.for_tokenizer(tokenizer, **settings, release_compatible=True)
    ids = {
        "cls": config.cls_token_id,
        "global_cls": config.cls_token_id,
        "sep": config.sep_token_id,
        "sos": config.html_start_token_id,
        "eos": config.html_end_token_id,
        "global_question": config.question_global_token_id,
        "global_sentence": config.candidate_global_token_id,
        "pad": 0,
    }
    assert ids == special_ids
    return config, features.make_word_tokenizer(tokenizer)


def record_of(page):
    """A page as the release writes it before it is cut into windows: with five annotations."""
    answers = page.answers[:5] or (features.Answer(examples.NO_SPAN, examples.NO_SPAN, -1),)
    return {
        "unique_ids": [page.example_id],
        "question_ids": page.question_ids,
        "token_ids": page.token_ids,
        "token_pos": page.token_pos,
        "candidate_ids": page.candidate_ids,
        "la_start": [answer.long.start for answer in answers],
        "la_end": [answer.long.end for answer in answers],
        "sa_start": [answer.short.start for answer in answers],
        "sa_end": [answer.short.end for answer in answers],
        "answer_type": [answer.answer_type for answer in answers],
    }


def check_preprocess(case):
    config, word_ids = make_config(case["init"], case["special_ids"])
    raw = raw_examples()
    expected = cases.load_json(TOPIC, case["file"])
    assert len(expected) == case["examples"]
    for entry in expected:
        example = raw[entry["example_id"]]
        assert record_of(features.make_page(example, config, word_ids)) == entry["record"]
        converted = features.make_windows(example, config, word_ids)
        assert converted.windows == entry["windows"], example.example_id
    assert sum(len(entry["windows"]) for entry in expected) == case["windows"]


def check_program(case):
    """The program's windows, in its order, go to the shards in turn."""
    flags = dict(case["init"]["flags"])
    num_shards, vocab_file = flags.pop("num_shards"), flags.pop("vocab_file")
    expected = cases.load_json(TOPIC, case["file"])["unique_ids_by_shard"]
    with tempfile.TemporaryDirectory() as folder:
        for split in expected:
            path = pathlib.Path(folder, "in", split, f"nq-{split}-00.jsonl.gz")
            path.parent.mkdir(parents=True)
            raw = cases.resolve(TOPIC, "raw_examples.jsonl").read_bytes()
            path.write_bytes(gzip.compress(raw))
        options = preprocess.PreprocessOptions(
            input_dir=f"{folder}/in",
            output_dir=f"{folder}/out",
            vocab_file=str(cases.resolve(TOPIC, vocab_file)),
            num_shards=num_shards,
            long_seq_length=flags.pop("seq_len"),
            global_seq_length=flags.pop("global_seq_len"),
            release_compatible=True,
            **flags,
        )
        list(program.run(options, preprocess.load_parts))  # One set after the other.
        for split, shards in expected.items():
            written = [
                records_of(f"{folder}/out/nq-{split}-{index:05d}-of-{num_shards:05d}.tfrecord")
                for index in range(num_shards)
            ]
            names = [f"nq-{split}.tfrecords-{i:05d}-of-{num_shards:05d}" for i in range(num_shards)]
            ids = [[record["unique_ids"][0] for record in shard] for shard in written]
            assert dict(zip(names, ids, strict=True)) == shards
            check_same_windows(case["same_windows_as"][split], written)


def check_same_windows(name, written):
    """The records, read from the shards in turn, are the windows of another case."""
    (other,) = [case for case in cases.load_cases(TOPIC) if case["name"] == name]
    entries = cases.load_json(TOPIC, other["file"])
    windows = [window for entry in entries for window in entry["windows"]]
    in_order = [written[i % len(written)][i // len(written)] for i in range(len(windows))]
    assert in_order == windows


def records_of(path):
    """The records of a file as dicts of lists of int."""
    records = []
    for serialized in tf.data.TFRecordDataset(path).as_numpy_iterator():
        features = tf.train.Example.FromString(serialized).features.feature
        records.append({name: list(value.int64_list.value) for name, value in features.items()})
    return records


def window_outputs(windows):
    """The windows of an inference case as the model gives them."""
    return [{name: np.asarray(value) for name, value in window.items()} for window in windows]


def record_of_window(window):
    """What the release writes for a window: positions as words of the page beside the rest."""
    record = {"unique_ids": [window["unique_ids"]]}
    record["answer_type_logits"] = window["answer_type_logits"]
    for name in metrics.POSITIONS:
        record[name] = [window[name]]
        record[f"{name}_pred"] = window[f"{name}_pred"]
        record[f"{name}_logit"] = window[f"{name}_logit"]
        record[f"{name}_logit0"] = [window[f"{name}_logit0"]]
        for key in (name, f"{name}_pred"):
            record[f"{key}_mapped"] = metrics.words_of(record[key], window["token_pos"]).tolist()
    return record


def page_as_release(page, true_words):
    """A gathered page as the release keeps it."""
    joined = {"answer_type_logits": page.answer_type_logits[-1].tolist()}
    for name, ends in page.ends.items():
        pairs = zip(ends.scores.tolist(), ends.words.tolist(), strict=True)
        joined[name] = [list(pair) for pair in pairs]
        joined[f"{name}_true"] = true_words[name]
    return joined


def approximately(expected):
    """Floats within 1e-6, everything else exactly."""
    if isinstance(expected, float):
        return pytest.approx(expected, abs=1e-6, rel=1e-6)
    if isinstance(expected, dict):
        return {name: approximately(value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [approximately(value) for value in expected]
    return expected


def decoding_config(entry):
    names = ("max_short_answer_len", "span_selection_method", "consider_answer_type")
    return nq_config.DecodingConfig(
        **{name: entry[name] for name in names}, release_compatible=True
    )


def check_inference(case):
    expected = cases.load_json(TOPIC, case["file"])
    assert len(expected["windows"]) == case["windows"]
    for window, record in zip(expected["windows"], expected["records"], strict=True):
        assert record_of_window(window) == record
    outputs = window_outputs(expected["windows"])
    pages = metrics.gather_pages(outputs, release_compatible=True)
    assert len(pages) == case["pages"]
    for example_id, page in pages.items():
        records = [r for r in expected["records"] if r["unique_ids"] == [example_id]]
        true_words = {
            name: [record[f"{name}_mapped"] for record in records] for name in metrics.POSITIONS
        }
        joined = page_as_release(page, true_words)
        assert joined == approximately(expected["by_document"][str(example_id)])
    assert len(expected["results"]) == case["results"]
    for entry in expected["results"]:
        prediction = metrics.generate_predictions(outputs, decoding_config(entry))
        assert prediction == approximately(entry["official"]), decoding_config(entry)


def gold_of(entries):
    return {entry["example_id"]: examples.annotations_of(entry) for entry in entries}


def verdicts_of(content):
    """The gold annotations and, by kind of answer, the verdicts of a case's predictions."""
    gold, kinds = gold_of(content["gold"]), ("long", "short")
    flags = content["expected"].get("flags", {})
    thresholds = {f"{kind}_threshold": flags.get(f"{kind}_non_null_threshold", 2) for kind in kinds}
    verdicts = metrics.verdicts(gold, content["predictions"], **thresholds)
    return gold, dict(zip(kinds, verdicts, strict=True))


def check_metrics(case):
    content = cases.load_json(TOPIC, case["file"])
    expected = content["expected"]
    if expected.get("raises"):
        with pytest.raises(ValueError):
            verdicts_of(content)
        return
    gold, by_kind = verdicts_of(content)
    assert len(gold) == case["examples"]
    per_example = {
        str(example_id): {kind: list(verdicts[example_id]) for kind, verdicts in by_kind.items()}
        for example_id in gold
    }
    assert per_example == approximately(expected["per_example"])
    check_named_metrics(by_kind, gold, expected)
    for kind, verdicts in by_kind.items():
        rows = [list(row) for row in metrics.recall_at_precision(verdicts.values())]
        assert rows == approximately(expected["recall_at_precision_tables"][kind])
    for gold_type, values in expected["by_gold_type"].items():
        ids = [i for i in gold if expected["gold_type"][str(i)] == gold_type]
        check_named_metrics(by_kind, ids, values)


def check_named_metrics(by_kind, ids, expected):
    groups = [[verdicts[example_id] for example_id in ids] for verdicts in by_kind.values()]
    assert metrics.best_threshold_metrics(*groups) == approximately(expected["metrics"])
    assert metrics.metrics_ignoring_scores(*groups) == approximately(
        expected["metrics_ignoring_scores"]
    )


def check_evaluator(case):
    content = cases.load_json(TOPIC, case["file"])
    windows = cases.load_json(TOPIC, content["records_in"])["windows"]
    gold = gold_of(content["gold"])
    assert len(content["results"]) == case["results"]
    for entry in content["results"]:
        prediction = metrics.generate_predictions(window_outputs(windows), decoding_config(entry))
        long, short = (list(group.values()) for group in metrics.verdicts(gold, prediction))
        assert metrics.best_threshold_metrics(long, short) == approximately(entry["metrics"])


def check_model(case):
    nq_model.check_model_case(case, cases.arrays_of(TOPIC, case))


CHECKS = {
    "evaluator": check_evaluator,
    "inference": check_inference,
    "metrics": check_metrics,
    "model": check_model,
    "preprocess": check_preprocess,
    "program": check_program,
}


@pytest.mark.reference(TOPIC)
@pytest.mark.parametrize("case", cases.load_cases(TOPIC), ids=cases.case_id)
def test_case(case):
    assert case["kind"] in CHECKS, f"no way to run the kind {case['kind']!r}"
    CHECKS[case["kind"]](case)
