"""Every tokenization case of the reference values, exactly."""

import inspect

import pytest

from etcmodel.text import tokenization
from tests.reference import cases

TOPIC = "tokenization"
FILE_ARGUMENTS = ("vocab_file", "spm_model_file")


def public_object(case):
    """The function or class that a case is about."""
    module, _, name = case["api"].rpartition(".")
    assert module == "etcmodel.models.tokenization", f"no way to run {case['api']}"
    return getattr(tokenization, name)


def constructed(factory, init):
    """Calls a class with a case's arguments, files resolved."""
    init = {
        name: str(cases.resolve(TOPIC, value)) if value and name in FILE_ARGUMENTS else value
        for name, value in init.items()
    }
    if factory is tokenization.WordpieceTokenizer:
        init["vocab"] = tokenization.load_vocab(init.pop("vocab_file"))
    return factory(**init)


def check_entries_by_field(case):
    """Runs `call` on every entry of a file and compares with the fields named in `outputs`."""
    api = public_object(case)
    owner = constructed(api, case["init"]) if inspect.isclass(api) else None
    entries = cases.load_json(TOPIC, case["file"])
    assert len(entries) == case["count"]
    models = {}
    for method, arguments in case["call"].items():
        function = getattr(owner, method, None) or getattr(tokenization, method)
        literal = {}
        if "sp_model" in arguments:
            path = str(cases.resolve(TOPIC, arguments["sp_model"]))
            literal["sp_model"] = models.setdefault(
                path, tokenization.load_sentencepiece_model(path)
            )
        for entry in entries:
            fields = {
                name: entry[field] for name, field in arguments.items() if name not in literal
            }
            assert function(**fields, **literal) == entry[case["outputs"][method]], entry["text"]


def check_load_vocab(case, expected):
    vocab = tokenization.load_vocab(cases.resolve(TOPIC, expected["file"]))
    assert list(vocab.items()) == [tuple(pair) for pair in expected["vocab"]]


def check_wordpiece_tokenizer(case, entries):
    for entry in entries:
        tokenizer = constructed(tokenization.WordpieceTokenizer, {**case["init"], **entry["init"]})
        assert tokenizer.tokenize(entry["text"]) == entry["tokens"]


def check_full_tokenizer(case, entries):
    tokenizer = constructed(tokenization.FullTokenizer, case["init"])
    for entry in entries:
        assert tokenizer.tokenize(entry["text"]) == entry["tokens"]
        assert tokenizer.convert_tokens_to_ids(entry["tokens"]) == entry["ids"]
        assert tokenizer.convert_ids_to_tokens(entry["ids"]) == entry["tokens"]


def check_bytes_input(case, entries):
    vocab_file = {"vocab_file": "vocab/bert_uncased_vocab.txt"}
    full = constructed(tokenization.FullTokenizer, {**vocab_file, **case["init"]})
    for entry in entries:
        text = bytes.fromhex(entry["hex"])
        assert tokenization.BasicTokenizer().tokenize(text) == entry["basic_lower"]
        assert full.tokenize(text) == entry["wordpiece_lower_tokens"]


def check_validate_case(case, entries):
    for entry in entries:
        arguments = (entry["do_lower_case"], entry["init_checkpoint"])
        if entry["result"] == "ValueError":
            with pytest.raises(ValueError, match="do_lower_case"):
                tokenization.validate_case_matches_checkpoint(*arguments)
        else:
            assert entry["result"] == "ok"
            tokenization.validate_case_matches_checkpoint(*arguments)


CHECKS_BY_KEY = {
    "load_vocab": check_load_vocab,
    "wordpiece_tokenizer": check_wordpiece_tokenizer,
    "full_tokenizer": check_full_tokenizer,
    "bytes_input": check_bytes_input,
    "validate_case_matches_checkpoint": check_validate_case,
}


@pytest.mark.reference(TOPIC)
@pytest.mark.parametrize("case", cases.load_cases(TOPIC), ids=cases.case_id)
def test_case(case):
    if "key" not in case:
        check_entries_by_field(case)
        return
    assert case["key"] in CHECKS_BY_KEY, f"no way to run the entries {case['key']!r}"
    entries = cases.load_json(TOPIC, case["file"])[case["key"]]
    assert case["count"] in (1, len(entries))
    CHECKS_BY_KEY[case["key"]](case, entries)
