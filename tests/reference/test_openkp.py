"""Every OpenKP case of the reference values."""

import functools
import json

import pytest
import tensorflow as tf

from etcmodel import options
from etcmodel.preprocessing import program
from etcmodel.tasks.openkp import config as task_config
from etcmodel.tasks.openkp import (
    examples,
    features,
    input_validate_and_dedup,
    metrics,
    model,
    preprocess,
    vdom,
)
from etcmodel.text import tokenization
from tests.reference import cases
from tests.reference.openkp_tensors import (
    TOPIC,
    check_model,
    check_pipeline,
    check_unit,
    check_unit_errors,
)

RAW_FILE = "raw_examples.jsonl"


@functools.lru_cache
def load_word_tokenizer(vocab_file, spm_model_file, do_lower_case):
    return features.word_tokenizer(
        tokenization.FullTokenizer(
            vocabulary(vocab_file) or None,
            do_lower_case,
            spm_model_file=vocabulary(spm_model_file) or None,
        )
    )


def raw_lines(name=RAW_FILE):
    return list(examples.read_lines(cases.resolve(TOPIC, name)))


def close_to(expected):
    return pytest.approx(expected, abs=1e-6, rel=0)


def convert(case_init):
    """The converter of a case: function of a raw line to (example, converted)."""
    init = dict(case_init)
    tokenize_word = load_word_tokenizer(
        init.pop("bert_vocab_path", None),
        init.pop("spm_model_path", None),
        init.pop("do_lower_case"),
    )
    fields = options.from_kept(task_config.OpenKpInputConfig, init)
    config = task_config.OpenKpInputConfig(**fields, release_compatible=True)

    def convert_line(raw):
        example = examples.parse_line(raw)
        return example, features.make_features(example, config, tokenize_word)

    return convert_line


def check_convert(case):
    convert_line = convert(case["init"])
    lines = {json.loads(raw["line"])["url"]: raw for raw in raw_lines()}
    entries = cases.load_json(TOPIC, case["file"])
    assert len(entries) == case["documents"]
    for entry in entries:
        example, features = features_of(convert_line, lines[entry["url"]])
        assert (features is None) == (entry["status"] == "failure"), entry["url"]
        if "features" in entry:
            assert features == entry["features"], entry["url"]
        if "text_example" in entry:  # Not where making it stops the release's program.
            assert metrics.TextExample.of(example).to_json() == entry["text_example"]


def features_of(convert_line, raw):
    """(example, features) of a raw line, (None, None) where it is refused."""
    try:
        example, converted = convert_line(raw)
    except ValueError:
        return None, None
    return example, converted.features


def check_program(case, folder):
    """Runs the program's job: pages in, records and statistics out."""
    expected = cases.load_json(TOPIC, case["file"])
    flags = case["init"]["flags"]
    pages = [page for page in raw_pages() if page["url"] not in expected["left_out_urls"]]
    options = preprocess.PreprocessOptions(
        input_pattern=str(folder / expected["input_file"]),
        output_dir=str(folder / "records"),
        vocab_file=vocabulary(flags.get("bert_vocab_path")),
        spm_model_file=vocabulary(flags.get("spm_model_path")),
        do_lower_case=flags.get("do_lower_case", True),
        num_shards=flags["output_num_shards"],
        long_seq_length=flags["long_max_length"],
        global_seq_length=flags["global_max_length"],
        url_max_code_points=flags["url_max_code_points"],
        fixed_block_len=flags.get("fixed_block_len"),
        kp_max_length=flags.get("kp_max_length", 5),
        release_compatible=True,
    )
    text = "".join(f"{json.dumps(page)}\n" for page in pages)
    (folder / expected["input_file"]).write_text(text, encoding="utf-8")
    ((_, statistics),) = program.run(options, preprocess.load_parts)

    shards = sorted(folder.glob("records/*-of-*"))
    assert len(shards) == flags["output_num_shards"]
    written = list(map(url_of, tf.data.TFRecordDataset(list(map(str, shards)))))
    assert sorted(written) == expected["success_urls"]
    assert sorted({page["url"] for page in pages} - set(written)) == expected["parse_failure_urls"]
    (counts,) = expected["statistics"].values()
    assert statistics["examples_written"] == counts["parse_success_count"]
    num_failures = statistics["examples_read"] - statistics["examples_written"]
    assert num_failures == counts["parse_fail_count"]


def raw_pages():
    return [json.loads(raw["line"]) for raw in raw_lines()]


def vocabulary(name):
    return str(cases.resolve(TOPIC, name)) if name else ""


def url_of(record):
    feature = tf.train.Example.FromString(record.numpy()).features.feature["url_code_points"]
    return "".join(chr(point) for point in feature.int64_list.value if point >= 0)


def check_dedup(case):
    content = cases.load_json(TOPIC, case["file"])
    lines = [
        {"place": f"line {number}", "line": json.dumps(page)}
        for number, page in enumerate(content["input"], 1)
    ]
    deduplicator = input_validate_and_dedup.Deduplicator(content["is_eval"], strict=True)
    if "raises" in content:
        # The release's assertions have no texts, and each refuses for several reasons.
        with pytest.raises(ValueError, match="line [0-9]+: "):
            [deduplicator.see(raw) for raw in lines]
        return
    for raw in lines:
        deduplicator.see(raw)
    assert [json.loads(line) for line in deduplicator.kept(lines)] == content["output"]


def check_whole_words(case):
    entries = cases.load_json(TOPIC, case["file"])
    assert len(entries) == case["checks"]
    for entry in entries:
        found = input_validate_and_dedup.is_whole_words(entry["text"], entry["keyphrase_list"])
        assert found == (entry["is_valid"], entry["keyphrase"]), entry


def check_font_ids(case):
    content = cases.load_json(TOPIC, case["file"])
    assert [vdom.font_size_to_font_id(size) for size in content["font_size"]] == content["font_id"]
    assert content["vocab_size"] == task_config.NUM_FONT_IDS


def text_example(page):
    return metrics.TextExample.of(examples.parse_example(page))


def check_text_examples(case):
    entries = cases.load_json(TOPIC, case["file"])
    assert len(entries) == case["examples"]
    for entry in entries:
        example = text_example(entry["json"])
        if "raises" in entry:
            # More than three phrases: here the limit is in the conversion and the validation.
            assert len(example.key_phrases) == len(entry["json"]["KeyPhrases"])
            continue
        assert example.words == entry["words"]
        gold = None if example.key_phrases is None else sorted(example.key_phrases)
        assert gold == entry["key_phrases"]
        assert example.to_json() == entry["to_json_string"]
        if "round_trip_equal" in entry:
            assert (text_example(example.to_json()) == example) == entry["round_trip_equal"]


def check_key_phrases(case, positions_of):
    content = cases.load_json(TOPIC, case["file"])
    examples_of_case = [text_example(page) for page in content["texts"]]
    assert len(content["cases"]) == case["cases"]
    for entry in content["cases"]:
        positions = positions_of(entry)
        for example in examples_of_case:
            for limit, expected in entry["key_phrases"][example.url].items():
                found = metrics.key_phrases(
                    positions, example.words, int(limit), release_compatible=True
                )
                assert found == expected


def check_decode(case):
    def positions_of(entry):
        positions = best_positions(entry["logits"], entry["max_predictions"])
        assert [list(position) for position in positions] == entry["positions_sorted"]
        return positions

    check_key_phrases(case, positions_of)


def best_positions(logits, max_positions):
    """The best n-grams as (first word, number of words, logit); the release masks none."""
    logits = tf.constant([logits], tf.float32)
    best = model.best_ngrams(logits, tf.ones_like(logits, tf.bool), max_positions)
    names = ("top_start_idx", "top_phrase_len", "top_logits")
    return list(zip(*(best[name][0].numpy().tolist() for name in names), strict=True))


def check_positions(case):
    check_key_phrases(case, lambda entry: entry["positions"])


def check_scores(case):
    content = cases.load_json(TOPIC, case["file"])
    gold = {page["url"]: text_example(page).key_phrases for page in content["texts"]}
    assert len(content["cases"]) == case["cases"]
    for entry in content["cases"]:
        for url, expected in entry["scores"].items():
            found = metrics.scores(gold[url], entry["candidates"], entry["max_depth"])._asdict()
            assert set(found) == set(expected)
            for name, values in expected.items():
                assert found[name] == close_to(values), (entry["candidates"], url, name)


def check_score_sets(case):
    content = cases.load_json(TOPIC, case["file"])
    assert len(content["cases"]) == case["cases"]
    for entry in content["cases"]:
        gold = [text_example(page) for page in entry["references"]]
        predictions = {
            example.url: metrics.key_phrases(positions, example.words, 5, release_compatible=True)
            for example, positions in zip(gold, entry["predictions"], strict=True)
        }
        found = metrics.metrics(gold, predictions)
        assert [found[name] for name in content["score_columns"]] == close_to(entry["scores"])


def check_predict(case):
    content = cases.load_json(TOPIC, case["file"])
    gold = {page["url"]: text_example(page) for page in content["texts"]}
    assert len(content["predictions"]) == case["predictions"]
    predictions = {}
    for entry in content["predictions"]:
        record = entry["record"]
        positions = best_positions(entry["ngram_logits"], case["init"]["max_position_predictions"])
        columns = zip(*positions, strict=True)
        for name, column in zip(("start_idx", "phrase_len", "logit"), columns, strict=True):
            assert list(column) == record[f"top_pos_{name}"]
        example = gold.get(entry["url"])
        if example is None:
            assert not entry["jsonl"]
            continue
        predicted = metrics.key_phrases(
            positions, example.words, case["init"]["max_kp_predictions"], release_compatible=True
        )
        predictions[example.url] = predicted
        assert predicted == record["kp_predictions"]
        assert json.loads(metrics.submission_line(example.url, predicted)) in entry["jsonl"]
        scores = metrics.metrics([example], {example.url: predicted})
        for short, name in (("p", "precision"), ("r", "recall"), ("f1", "f1")):
            for depth in metrics.DEPTHS:
                assert [scores[f"{name}@{depth}"]] == close_to(record[f"{short}_at_{depth}"])
    averages = metrics.metrics(gold.values(), predictions)
    for depth, expected in content["averages"].items():
        for name, value in expected.items():
            assert averages[f"{name}@{depth}"] == close_to(value)


CHECKS = {
    "unit": check_unit,
    "unit_errors": check_unit_errors,
    "pipeline": check_pipeline,
    "model": check_model,
    "convert": check_convert,
    "program": check_program,
    "dedup": check_dedup,
    "dedup_whole_words": check_whole_words,
    "font_ids": check_font_ids,
    "text_examples": check_text_examples,
    "decode": check_decode,
    "positions": check_positions,
    "scores": check_scores,
    "score_sets": check_score_sets,
    "predict": check_predict,
}


@pytest.mark.reference(TOPIC)
@pytest.mark.parametrize("case", cases.load_cases(TOPIC), ids=cases.case_id)
def test_case(case, tmp_path):
    assert case["kind"] in CHECKS, f"no way to run the kind {case['kind']!r}"
    check = CHECKS[case["kind"]]
    check(case, tmp_path) if check is check_program else check(case)
