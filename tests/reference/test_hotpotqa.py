"""Every HotpotQA case of the reference values."""

import dataclasses

import pytest

from etcmodel.tasks.hotpotqa import config as hotpotqa_config
from etcmodel.tasks.hotpotqa import examples
from etcmodel.tasks.hotpotqa import features as hotpotqa_features
from etcmodel.tasks.hotpotqa import metrics as hotpotqa_metrics
from etcmodel.text import alignment
from tests.reference import cases
from tests.reference.core_tasks import tokenizer_of

TOPIC = "hotpotqa"
WORDPIECE_FILES = {"vocab_file": "vocab/bert_uncased_vocab.txt", "spm_model_file": None}
SENTENCEPIECE_FILES = {"vocab_file": None, "spm_model_file": "vocab/gpt2_sentencepiece.model"}


def tokenized_wordpiece(text):
    tokenizer = tokenizer_of(TOPIC, **WORDPIECE_FILES)
    return alignment.get_wordpiece_tokenized_text(text, tokenizer)


def tokenized_sentencepiece(text):
    tokenizer = tokenizer_of(TOPIC, **SENTENCEPIECE_FILES)
    return alignment.get_sentencepiece_tokenized_text(text, tokenizer)


def answer_spans_wordpiece(text, answer):
    tokenizer = tokenizer_of(TOPIC, **WORDPIECE_FILES)
    return alignment.find_answer_spans(tokenized_wordpiece(text), answer, tokenizer)


def answer_spans_sentencepiece(text, answer):
    tokenizer = tokenizer_of(TOPIC, **SENTENCEPIECE_FILES)
    return alignment.find_answer_spans(tokenized_sentencepiece(text), answer, tokenizer)


def supporting_facts(prediction, gold):
    score = hotpotqa_metrics.supporting_facts_score(prediction, gold)
    return [score.em, score.prec, score.recall]


def gold_examples(gold):
    return [
        examples.HotpotQAExample(
            example_id=entry["_id"],
            question="",
            paragraphs=(),
            answer=entry["answer"],
            supporting_facts=tuple(map(tuple, entry["supporting_facts"])),
        )
        for entry in gold
    ]


def metrics(prediction, gold):
    return hotpotqa_metrics.metrics(gold_examples(gold), prediction)


UNITS = {
    "data_utils.whitespace_split_with_indices": alignment.whitespace_split_with_indices,
    "data_utils.find_char_spans": alignment.find_char_spans,
    "data_utils.get_wordpiece_tokenized_text": tokenized_wordpiece,
    "data_utils.get_sentencepiece_tokenized_text": tokenized_sentencepiece,
    "data_utils.find_answer_spans_wordpiece": answer_spans_wordpiece,
    "data_utils.find_answer_spans_sentencepiece": answer_spans_sentencepiece,
    "data_utils.wordpiece_tokens_to_normalized_text": (
        alignment.wordpiece_tokens_to_normalized_text
    ),
    "data_utils.sentencepiece_detokenize": alignment.sentencepiece_detokenize,
    "eval_utils.get_final_text": alignment.get_final_text,
    "hotpot_evaluate_v1_lib.normalize_answer": lambda s: hotpotqa_metrics.normalize_answer(s),
    "hotpot_evaluate_v1_lib.f1_score": hotpotqa_metrics.f1_score,
    "hotpot_evaluate_v1_lib.exact_match_score": hotpotqa_metrics.exact_match_score,
    "hotpot_evaluate_v1_lib.update_sp": supporting_facts,
    "hotpot_evaluate_v1_lib.evaluate": metrics,
}


def close_to(expected):
    """Numbers within 1e-6, everything else exactly."""
    if isinstance(expected, dict):
        floats = all(isinstance(value, float) for value in expected.values())
    else:
        is_list = isinstance(expected, list)
        floats = is_list and all(isinstance(value, float) for value in expected)
    return pytest.approx(expected, abs=1e-6, rel=0) if expected and floats else expected


def as_json(value):
    """Tuples and dataclasses as JSON has them."""
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value


def check_unit(case):
    name = case["api"].removeprefix("etcmodel.models.hotpotqa.")
    assert name in UNITS, f"no way to run {name}"
    entries = cases.load_json(TOPIC, case["file"])
    assert len(entries) == case["count"]
    for entry in entries:
        result = as_json(UNITS[name](**entry["args"]))
        assert result == close_to(entry["result"]), entry["args"]
        if "metrics" in entry:
            score = hotpotqa_metrics.supporting_facts_score(**entry["args"])._asdict()
            named = {f"sp_{name}": value for name, value in score.items()}
            assert named == close_to(entry["metrics"])
        if "get_em_counts" in entry:
            check_counts(entry)


def check_counts(entry):
    """Where the release fails for want of a prediction, the answer counts as empty here."""
    expected = entry["get_em_counts"]
    answers = entry["args"]["prediction"]["answer"]
    if expected == "KeyError":
        missing = [gold for gold in entry["args"]["gold"] if gold["_id"] not in answers]
        counts = hotpotqa_metrics.exact_match_counts(gold_examples(missing), {"answer": answers})
        assert missing and {name[-2:] for name in counts} == {"_E"}
    else:
        gold = gold_examples(entry["args"]["gold"])
        counts = hotpotqa_metrics.exact_match_counts(gold, entry["args"]["prediction"])
        assert counts == close_to(expected)


def check_convert(case):
    tokenizer = tokenizer_of(TOPIC, case["init"]["vocab_file"], case["init"]["spm_model_file"])
    sentencepiece_ids = case["init"]["use_sentencepiece_default_global_token_ids"]
    make_config = (
        hotpotqa_config.HotpotQAInputConfig.with_sentencepiece_ids
        if sentencepiece_ids
        else hotpotqa_config.HotpotQAInputConfig
    )
    config = make_config(**case["init"]["config"], release_compatible=True)
    expected = cases.load_json(TOPIC, case["file"])
    raw_file = cases.resolve(TOPIC, case["call"]["convert"]["examples"])
    read = list(examples.read_examples(raw_file))
    assert len(read) == len(expected) == case["count"]
    dropped = []
    for example, entry in zip(read, expected, strict=True):
        assert example.example_id == entry["_id"]
        features = hotpotqa_features.make_features(example, config, tokenizer).features
        if features is None:
            dropped.append(example.example_id)
        assert features == entry["features"], example.example_id
    assert dropped == case["dropped"]


def check_predict(case):
    call = case["call"]
    tokenizer = tokenizer_of(TOPIC, **case["init"])
    assert call["use_wordpiece"] == (tokenizer.sp_model is None)
    config = hotpotqa_config.DecodingConfig(
        answer_encoding_method=call["answer_encoding_method"],
        supporting_fact_threshold=call["sp_threshold"],
        max_answer_length=call["max_answer_length"],
        release_compatible=True,
    )
    columns = cases.arrays_of(TOPIC, {"file": call["raw_predictions"]})
    num_rows = len(columns["unique_ids"])
    outputs = [{name: column[row] for name, column in columns.items()} for row in range(num_rows)]
    gold = list(examples.read_examples(cases.resolve(TOPIC, call["gold_json_data"])))
    expected = cases.load_json(TOPIC, case["expected"])
    assert set(case["outputs"]) == set(expected) == {"prediction", "evaluate", "get_em_counts"}
    prediction = hotpotqa_metrics.generate_predictions(outputs, gold, tokenizer, config)
    assert prediction == expected["prediction"]
    assert hotpotqa_metrics.metrics(gold, prediction) == close_to(expected["evaluate"])
    assert hotpotqa_metrics.exact_match_counts(gold, prediction) == close_to(
        expected["get_em_counts"]
    )


CHECKS = {"convert": check_convert, "predict": check_predict, "unit": check_unit}


@pytest.mark.reference(TOPIC)
@pytest.mark.parametrize("case", cases.load_cases(TOPIC), ids=cases.case_id)
def test_case(case):
    assert case["kind"] in CHECKS, f"no way to run the kind {case['kind']!r}"
    CHECKS[case["kind"]](case)
