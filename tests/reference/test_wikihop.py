"""Every WikiHop case of the reference values."""

import functools
import tempfile

import pytest

from etcmodel.finetuning import records
from etcmodel.tasks.wikihop import config as wikihop_config
from etcmodel.tasks.wikihop import examples, metrics, task
from etcmodel.tasks.wikihop import features as wikihop_features
from etcmodel.text import sentence_splitting
from tests.records import write
from tests.reference import cases
from tests.reference.core_tasks import tokenizer_of
from tests.tasks.wikihop import padding

TOPIC = "wikihop"


def tokenizer_named(name):
    """A tokenizer of a unit: its files are those of the conversions."""
    kind, _, case = name.partition("_")
    files = next(
        c["init"]["tokenizer"]
        for c in cases.load_cases(TOPIC)
        if c["kind"] == "convert" and f"_{kind}_" in c["name"]
    )
    return tokenizer_of(TOPIC, **{**files, "do_lower_case": case != "cased"})


def make_config(tokenizer, **fields):
    config = wikihop_config.WikiHopInputConfig(**fields, release_compatible=True)
    config.check_tokenizer(tokenizer)
    return config


def check_convert(case):
    init = case["init"]
    tokenizer = tokenizer_of(TOPIC, **init["tokenizer"])
    config = make_config(
        tokenizer,
        long_seq_length=init["long_seq_len"],
        global_seq_length=init["global_seq_len"],
        max_num_sentences=init["max_num_sentences"],
        sentence_splitter=case["sentence_splitter"],
    )
    expected = cases.load_json(TOPIC, case["file"])
    raw_file = cases.resolve(TOPIC, case["call"]["convert_single_example"]["example"])
    read = list(examples.read_examples(raw_file))
    assert len(read) == len(expected) == case["count"]
    for example, entry in zip(read, expected, strict=True):
        assert example.example_id == entry["id"]
        assert ("error" in entry) == (example.example_id in case["errors"])
        if "error" in entry:
            with pytest.raises(ValueError, match=f"^example '{example.example_id}': "):
                wikihop_features.make_features(example, config, tokenizer)
        else:
            features = wikihop_features.make_features(example, config, tokenizer).features
            assert features == entry["features"], example.example_id


def padding_example(long_seq_len, global_seq_len):
    config = wikihop_config.WikiHopInputConfig(
        long_seq_length=long_seq_len, global_seq_length=global_seq_len
    )
    return padding.padding_features(config)


def check_truncate(entry):
    arguments = entry["args"]
    tokenizer = tokenizer_named(arguments["tokenizer"])
    split = sentence_splitting.sentence_splitter(entry["sentence_splitter"])
    raws = cases.load_json(TOPIC, "raw/examples.json")
    (supports,) = (raw["supports"] for raw in raws if raw["id"] == arguments["docs"])
    sentences = [split(document) for document in supports]
    kept = wikihop_features.truncate_documents(
        [[tokenizer.tokenize(sentence) for sentence in document] for document in sentences],
        max_num_sentences=arguments["max_num_sentences"],
        max_num_tokens=arguments["max_num_tokens"],
    )
    assert kept == entry["sentences_kept_per_doc"]
    assert [texts[:n] for texts, n in zip(sentences, kept, strict=True)] == entry["result"]


def check_mentions(entry):
    arguments = entry["args"]
    tokenizer = tokenizer_named(arguments["tokenizer"])
    if arguments["tokenizer"] == "wordpiece_cased":  # Refused, also where the release got away.
        with pytest.raises(ValueError, match="`do_lower_case` must be true"):
            make_config(tokenizer)
    if "error" in entry:
        return
    text, candidate = arguments["input_text"], arguments["candidate"].lower()
    find = wikihop_features.mention_finder([candidate], tokenizer, release_compatible=True)
    tokens = tokenizer.tokenize(text)
    assert tokens == entry["tokens"]
    offset = arguments["offset"]
    spans = [[offset + first, offset + last] for _, first, last in find(text, tokens)]
    assert spans == entry["spans"]


def from_json(single_example):
    example = examples.parse_example(single_example)
    index = example.answer_index(release_compatible=True)
    return {
        "example_id": example.example_id,
        "query": example.query,
        "docs": list(example.documents),
        "candidate_answers": list(example.normalized_candidates),
        "ground_truth_answer": example.answer.lower(),
        "ground_truth_answer_index": index,
    }


def check_records_of_length(num_global_tokens, global_seq_len):
    """There are as many logits as global tokens; the program compares these before it predicts."""
    made_with = wikihop_config.WikiHopInputConfig(
        long_seq_length=4, global_seq_length=num_global_tokens
    )
    features = {"example_id": ["i"], **padding.padding_features(made_with)}
    given = task.RecordConfig(long_seq_length=4, global_seq_length=global_seq_len, vocab_size=9)
    with tempfile.TemporaryDirectory() as folder:
        path = write(f"{folder}/records", features)
        records.check_records(path, given, need_labels=False)


def get_predicted_answer(candidate_answers, logits, global_seq_len):
    if len(logits) != global_seq_len:
        check_records_of_length(len(logits), global_seq_len)
    example = examples.WikiHopExample("i", "", (), tuple(candidate_answers))
    output = {"example_id": "i", "logits": logits}
    return metrics.predict([output], [example], release_compatible=True)["i"]


def check_call(function, entry):
    if "error" in entry:
        with pytest.raises(ValueError):
            function(**entry["args"])
    else:
        assert function(**entry["args"]) == entry["result"]


UNITS = {
    "padding_example": functools.partial(check_call, padding_example),
    "truncate_doc_sentences": check_truncate,
    "find_candidate_mentions": check_mentions,
    "from_json": functools.partial(check_call, from_json),
    "get_predicted_answer": functools.partial(check_call, get_predicted_answer),
}


def check_unit(case):
    assert case["name"] in UNITS, f"no way to run {case['name']}"
    entries = cases.load_json(TOPIC, case["file"])
    assert len(entries) == case["count"]
    for entry in entries:
        UNITS[case["name"]](entry)


CHECKS = {"convert": check_convert, "unit": check_unit}


@pytest.mark.reference(TOPIC)
@pytest.mark.parametrize("case", cases.load_cases(TOPIC), ids=cases.case_id)
def test_case(case):
    assert case["kind"] in CHECKS, f"no way to run the kind {case['kind']!r}"
    CHECKS[case["kind"]](case)


@pytest.mark.parametrize("splitter", ["multilingual", "punkt", "simple"])
def test_the_splitters_agree_with_the_table(splitter):
    split = sentence_splitting.sentence_splitter(splitter)
    # No text of the table has an end of a sentence of other scripts.
    name = "simple" if splitter == "multilingual" else splitter
    table = cases.load_json(TOPIC, "sentences.json")[name]
    assert table
    for text, sentences in table:
        assert split(text) == sentences
