"""A BERT's `tokenizer.json` alone is its vocabulary: text is cut as Hugging Face cuts it."""

import json

import pytest
import tokenizers

from etcmodel import BigBirdProcessor, EtcProcessor, GmatProcessor
from etcmodel.text import vocabulary_files
from etcmodel.text.tokenization import FullTokenizer

TOKENS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "river", "##s", "long", "Long"),
    *("é", "e", ",", "'", "##'", "can"),
]
TEXTS = ["The rivers, long é", "can't Long RIVER\u00a0the", "e,e\u4e00the"]


def write(folder, is_lower=True, **changes):
    """A `tokenizer.json`, as Hugging Face writes a BERT's, and its tokenizer."""
    made = tokenizers.BertWordPieceTokenizer(
        {token: number for number, token in enumerate(TOKENS)}, lowercase=is_lower
    )
    folder.mkdir(exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    entries = json.loads((folder / "tokenizer.json").read_text())
    for name, value in changes.items():
        entries[name] = {**entries[name], **value} if isinstance(value, dict) else value
    (folder / "tokenizer.json").write_text(json.dumps(entries))
    return made


@pytest.mark.parametrize("is_lower", [True, False])
def test_the_pieces_are_those_of_the_file(tmp_path, is_lower):
    theirs = write(tmp_path, is_lower)
    for processor in (EtcProcessor, GmatProcessor):
        ours = processor.from_pretrained(tmp_path)
        assert ours.config.do_lower_case is is_lower
        assert list(ours.vocabulary) == TOKENS
        for text in TEXTS:
            assert (
                ours.tokenizer.tokenize(text)
                == theirs.encode(text, add_special_tokens=False).tokens
            )
    ours.save_pretrained(tmp_path / "again")
    assert (tmp_path / "again/vocab.txt").read_text(encoding="utf-8").split() == TOKENS
    again = GmatProcessor.from_pretrained(tmp_path / "again")
    assert again.config == ours.config


def test_it_is_the_same_vocabulary_as_that_of_lines(tmp_path):
    write(tmp_path)
    (tmp_path / "vocab.txt").write_text("".join(f"{x}\n" for x in TOKENS), encoding="utf-8")
    found = {vocabulary_files.sha256(tmp_path / name) for name in ("vocab.txt", "tokenizer.json")}
    assert len(found) == 1
    tokenizer = vocabulary_files.open_tokenizer(str(tmp_path / "tokenizer.json"))
    assert isinstance(tokenizer, FullTokenizer) and {tokenizer.source_sha256()} == found
    (tmp_path / "vocab.txt").unlink()
    told = vocabulary_files.of_folder(str(tmp_path), {})
    assert told == {"vocab_file": str(tmp_path / "tokenizer.json"), "do_lower_case": True}


def lines(folder, tokens):
    path = folder / "vocab.txt"
    path.write_text("".join(f"{x}\n" for x in tokens), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("tokens", "place", "ours", "theirs"),
    [
        ([*TOKENS[:5], TOKENS[6], TOKENS[5], *TOKENS[7:]], 5, "'river'", "'the'"),
        (TOKENS[:-1], 15, "None", "'can'"),
        ([*TOKENS, "more"], 16, "'more'", "None"),
        ([*TOKENS[:-1], "[EXTRA]"], 15, r"'\[EXTRA\]'", "'can'"),
    ],
)
def test_word_pieces_of_two_files_must_be_the_same(tmp_path, tokens, place, ours, theirs):
    write(tmp_path)
    first, second = lines(tmp_path, tokens), tmp_path / "tokenizer.json"
    message = f"{first} and {second},.* the id {place} is {ours} in the first, {theirs} in the sec"
    for processor in (EtcProcessor, GmatProcessor):
        with pytest.raises(ValueError, match=message):
            processor.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match=message):
        vocabulary_files.of_folder(str(tmp_path), {})
    # What a processor has saved names its file.
    EtcProcessor(str(first)).save_pretrained(tmp_path)
    assert list(EtcProcessor.from_pretrained(tmp_path).vocabulary) == tokens


def test_a_file_of_lines_may_list_the_tokens_that_were_added(tmp_path):
    write(tmp_path, added_tokens=ADDED)
    for tokens in (TOKENS, [*TOKENS, "[EXTRA]"]):
        lines(tmp_path, tokens)
        found = EtcProcessor.from_pretrained(tmp_path).vocabulary
        assert list(found) == [*TOKENS, "[EXTRA]"]


def test_blank_lines_at_the_end_are_no_tokens(tmp_path):
    write(tmp_path)
    lines(tmp_path, [*TOKENS, "", ""])
    for processor in (EtcProcessor, GmatProcessor):
        assert list(processor.from_pretrained(tmp_path).vocabulary)[: len(TOKENS)] == TOKENS


def test_a_token_that_a_file_has_twice_is_told_as_such(tmp_path):
    write(tmp_path)
    lines(tmp_path, [*TOKENS, TOKENS[7]])
    with pytest.raises(ValueError, match=f"lines 8 and 17: it has {TOKENS[7]!r} twice"):
        EtcProcessor.from_pretrained(tmp_path)


def test_pieces_of_another_kind_are_another_vocabulary(tmp_path):
    made = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), ("[UNK]", -1.0)]))
    made.save(str(tmp_path / "tokenizer.json"))
    lines(tmp_path, TOKENS)
    with pytest.raises(ValueError, match=r"the id 0 is '\[PAD\]' in the first, '<unk>' in the"):
        EtcProcessor.from_pretrained(tmp_path)


@pytest.mark.parametrize("is_lower", [True, False])
def test_without_other_settings_the_case_is_that_of_the_file_beside(tmp_path, is_lower):
    write(tmp_path, is_lower)
    lines(tmp_path, TOKENS)  # It has "Long", for which it would be taken as cased.
    settings = tmp_path / "tokenizer_config.json"
    for told, expected in ((None, is_lower), ({}, is_lower), ({"do_lower_case": True}, True)):
        if told is not None:
            settings.write_text(json.dumps(told))
        for processor in (EtcProcessor, GmatProcessor):
            assert processor.from_pretrained(tmp_path).config.do_lower_case is expected


@pytest.mark.parametrize("processor", [EtcProcessor, GmatProcessor, BigBirdProcessor])
@pytest.mark.parametrize("told", [{}, {"do_lower_case": True}])
def test_beside_a_file_of_lines_it_must_be_as_in_bert_too(tmp_path, processor, told):
    write(tmp_path, pre_tokenizer={"type": "WhitespaceSplit"})
    lines(tmp_path, TOKENS)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(told))
    message = f"{tmp_path}/tokenizer.json: `type` of `pre_tokenizer` must be 'BertPreTokenizer'"
    with pytest.raises(ValueError, match=f"^{message}"):
        processor.from_pretrained(tmp_path)


@pytest.mark.parametrize("processor", [EtcProcessor, GmatProcessor, BigBirdProcessor])
def test_a_file_of_lines_alone_tells_the_case_by_its_capitals(tmp_path, processor):
    # As in the folders of Google's BERTs.
    for tokens, is_lower in ((TOKENS, False), ([x for x in TOKENS if x != "Long"], True)):
        lines(tmp_path, tokens)
        found = processor.from_pretrained(tmp_path)
        assert found.config.do_lower_case is is_lower
        assert found.tokenizer.tokenize("Long") == (["long"] if is_lower else ["Long"])
    (tmp_path / "tokenizer_config.json").write_text("{}")  # Hugging Face's default.
    lines(tmp_path, TOKENS)
    assert processor.from_pretrained(tmp_path).config.do_lower_case


ADDED = [{"id": len(TOKENS), "content": "[EXTRA]"}]


def test_tokens_that_were_added_are_there(tmp_path):
    write(tmp_path, added_tokens=ADDED)
    assert list(EtcProcessor.from_pretrained(tmp_path).vocabulary) == [*TOKENS, "[EXTRA]"]


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        (
            {"normalizer": {"clean_text": False}},
            {},
            "`clean_text` of `normalizer` must be True, as",
        ),
        (
            {"normalizer": {"strip_accents": False}},
            {},
            "lose its accents, or neither. Received: lo",
        ),
        ({"normalizer": None}, {}, "`type` of `normalizer` must be 'BertNormalizer', as in BERT"),
        (
            {"pre_tokenizer": {"type": "Whitespace"}},
            {},
            "`type` of `pre_tokenizer` must be 'BertPre",
        ),
        (
            {"model": {"continuing_subword_prefix": "@@"}},
            {},
            "`continuing_subword_prefix` of `model`",
        ),
        ({"added_tokens": [{"id": 99, "content": "x"}]}, {}, "ids must count the tokens from 0"),
        ({"added_tokens": [{"id": 99}]}, {}, "`vocab` and `added_tokens` must be tokens with ids"),
        (
            {},
            {"do_lower_case": False},
            "`do_lower_case` must be True, as '.*tokenizer.json' has it",
        ),
    ],
)
def test_what_is_not_as_in_bert_is_refused(tmp_path, changes, settings, message):
    write(tmp_path, **changes)
    if settings:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=message) as raised:
        EtcProcessor.from_pretrained(tmp_path)
    assert "tokenizer.json" in str(raised.value) and "\n" not in str(raised.value)
