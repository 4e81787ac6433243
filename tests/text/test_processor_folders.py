"""Processors saved and loaded, and the settings, folders and calls that are refused."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from etcmodel import LongformerProcessor
from etcmodel.text import tokenization
from etcmodel.text.gmat_processor import GmatProcessor
from etcmodel.text.processor import EtcProcessor
from tests.reference import cases
from tests.text.processors import CLS, EXAMPLES, SEP, UNK, VOCAB, ids, same, write_vocab

BYTES = str(cases.topic_folder("longformer") / "tokenizer" / "vocab.json")
MODEL = cases.reference_root() / "vocab" / "gpt2_sentencepiece.model"


def test_a_saved_processor_gives_the_same_batches(vocab, tmp_path):
    processor = EtcProcessor(
        vocab, do_lower_case=False, relation_names=["row", "part_of"], max_long_len=12, stride=3
    )
    processor.save_pretrained(tmp_path / "new" / "folder")
    loaded = EtcProcessor.from_pretrained(tmp_path / "new" / "folder")
    assert loaded.config == processor.config
    same(loaded(EXAMPLES), processor(EXAMPLES))
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == ["processor_config.json", "vocab.txt"]
    changed = EtcProcessor.from_pretrained(tmp_path / "new" / "folder", stride=None)
    assert changed.config.stride is None


@pytest.mark.parametrize("split_punctuation", [False, True])
def test_a_sentence_piece_model_is_saved_with_its_settings(tmp_path, split_punctuation):
    if not MODEL.exists():
        pytest.skip("needs the whole reference folder")
    processor = EtcProcessor(str(MODEL), split_punctuation=split_punctuation)
    processor.save_pretrained(tmp_path)
    loaded = EtcProcessor.from_pretrained(tmp_path)
    same(loaded(EXAMPLES), processor(EXAMPLES))
    assert (tmp_path / "spiece.model").read_bytes() == MODEL.read_bytes()
    row = loaded("It rains. Stay in!")["token_ids"][0]
    expected = "It rains . Stay in !" if split_punctuation else "It rains. Stay in!"
    assert loaded.decode(row) == expected
    tokenizer = tokenization.FullTokenizer(
        None, spm_model_file=str(MODEL), split_punctuation=split_punctuation
    )
    same(EtcProcessor(tokenizer)(EXAMPLES), processor(EXAMPLES))
    EtcProcessor(write_vocab(tmp_path)).save_pretrained(tmp_path)  # Of the other kind, over it.
    assert EtcProcessor.from_pretrained(tmp_path).vocabulary == tuple(VOCAB)


def test_a_folder_of_another_library_needs_just_a_vocabulary(tmp_path):
    write_vocab(tmp_path)
    assert EtcProcessor.from_pretrained(tmp_path).config.do_lower_case
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false, "x": 1}')
    cased = EtcProcessor.from_pretrained(tmp_path)
    assert cased("It it")["token_ids"].tolist() == [[CLS, UNK, *ids("it"), SEP]]


def test_only_of_word_pieces_it_is_told_that_text_is_lower_cased(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    write_vocab(tmp_path)
    EtcProcessor.from_pretrained(tmp_path)
    assert "text is lower-cased" in caplog.text
    caplog.clear()
    (tmp_path / "pieces").mkdir()
    source = pathlib.Path(__file__).parents[1] / "fixtures" / "sentence_pieces" / "spiece.model"
    shutil.copy(source, tmp_path / "pieces")
    EtcProcessor.from_pretrained(tmp_path / "pieces")
    for name in ("vocab.json", "merges.txt"):  # A folder like RoBERTa's first one.
        (tmp_path / "bytes").mkdir(exist_ok=True)
        shutil.copy(os.path.join(os.path.dirname(BYTES), name), tmp_path / "bytes")
    processor = EtcProcessor.from_pretrained(tmp_path / "bytes")
    assert "A" in "".join(processor("A").encodings[0].tokens) and "lower-cased" not in caplog.text


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no vocabulary: none of spiece.model, vocab.txt"),
        (
            {"vocab.txt": "a\n[PAD]\n[UNK]\n[SEP]"},
            r"vocab.txt' lacks '\[CLS\]'. Name its own token",
        ),
        (
            {"processor_config.json": '{"vocab_file": "../x"}'},
            "`vocab_file` is '../x', but the folder",
        ),
        ({"processor_config.json": "{"}, "processor_config.json is not valid JSON"),
        ({"processor_config.json": "[]"}, "processor_config.json must hold a JSON object"),
        ({"processor_config.json": '{"strid": 1}'}, "processor_config.json: unknown settings of a"),
        (
            {"processor_config.json": '{"stride": "x"}'},
            "processor_config.json: `stride` must be an",
        ),
        (
            {"tokenizer_config.json": '{"do_lower_case": 1}'},
            "`do_lower_case` must be true or false",
        ),
        ({"spiece.model": "no"}, "is no SentencePiece model"),
        (
            {"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\na\nc\n"},
            "vocab.txt, lines 5 and 7: it has 'a' twice: tokenizers differ in the ids",
        ),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(tmp_path, files, message):
    if files:
        write_vocab(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        EtcProcessor.from_pretrained(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("made_by", [EtcProcessor, GmatProcessor])
@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"strip_accents": False}, "do_lower_case=True, `strip_accents` must be True, as in BERT"),
        ({"do_lower_case": False, "strip_accents": True}, "`strip_accents` must be False, as in"),
        ({"tokenize_chinese_chars": False}, "`tokenize_chinese_chars` must be True, as in BERT"),
    ],
)
def test_word_pieces_that_are_not_made_as_in_bert_are_refused(tmp_path, made_by, entries, message):
    """Hugging Face's library heeds these entries."""
    write_vocab(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(entries))
    with pytest.raises(ValueError, match=message) as error:
        made_by.from_pretrained(tmp_path)
    assert "tokenizer_config.json: " in str(error.value)
    as_usual = {"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(as_usual))
    assert not made_by.from_pretrained(tmp_path).config.do_lower_case


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"max_long_len": 0}, "`max_long_len` must be an int of at least 1. Received: 0"),
        ({"pad_to_multiple_of": 2**31}, "`pad_to_multiple_of` must be at most 65536. Received: 2"),
        ({"truncation": "never"}, r"`truncation` must be one of \('tokens', 'blocks', 'error'\)"),
        ({"pack": True}, "`pack=True` needs `max_long_len` and `max_global_len`"),
        ({"stride": 3}, "`stride` needs `max_long_len`"),
        ({"stride": 9, "max_long_len": 9}, "`stride` must be below `max_long_len` 9. Received: 9"),
        ({"relation_names": "row"}, "`relation_names` must be a list of names. Received: 'row'"),
        ({"relation_names": ["a", "a"]}, "`relation_names` must be a list of different names"),
        ({"global_tokens": {"a": 1}}, "`global_tokens` must be a dict of str to str"),
        ({"global_tokens": {"a": "zzz"}}, "lacks the tokens zzz"),
        ({"global_segments": {"a": 2**31}}, "`global_segments` must be .* from 0 to 2147483647"),
        ({"global_segments": {"a": -1}}, "int, from 0 to 2147483647. Received: {'a': -1}"),
        ({"segments": {"a": -1}}, "`segments` must be .*, from 0 to 2147483647"),
        ({"cls_token": "<c>"}, "lacks '<c>'. Name its own token in `cls_token`"),
        ({"pack": 1}, "`pack` must be True or False. Received: 1"),
        ({"sentence_splitter": "x"}, "`sentence_splitter` must be one of"),
    ],
)
def test_settings_that_cannot_be_are_refused(vocab, settings_, message):
    with pytest.raises(ValueError, match=message):
        EtcProcessor(vocab, **settings_)


@pytest.mark.parametrize(
    ("made_by", "settings_", "message"),
    [
        (GmatProcessor, {"stride": 3}, "`stride` needs `max_length`"),
        (GmatProcessor, {"question_memory": 0}, "`question_memory` must be an int of at least 1."),
        (GmatProcessor, {"has_types": 1}, "`has_types` must be True or False. Received: 1"),
        (LongformerProcessor, {"stride": 3}, "`stride` needs `max_length`"),
        (LongformerProcessor, {"max_length": 0}, "`max_length`|`max_long_len`"),
        (LongformerProcessor, {"global_tokens": "all"}, "`global_tokens` must be one of"),
    ],
)
def test_settings_of_rows_that_cannot_be_are_refused(vocab, made_by, settings_, message):
    with pytest.raises(ValueError, match=message):
        made_by(BYTES if made_by is LongformerProcessor else vocab, **settings_)


def test_a_vocabulary_that_cannot_be_is_refused(tmp_path):
    for made_by in (EtcProcessor, LongformerProcessor):
        wanted = f"is a folder: use `{made_by.__name__}.from_pretrained`"
        with pytest.raises(ValueError, match=wanted):
            made_by(str(tmp_path))
    (tmp_path / "vocab.txt").write_text("[PAD]\n[CLS]\n[SEP]\na")
    with pytest.raises(ValueError, match=r"vocab.txt' lacks the tokens \[UNK\]"):
        EtcProcessor(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Give `examples`, or the fields of one example"),
        ({"examples": []}, "`examples` must hold at least one example"),
        ({"examples": ["a", 3]}, r"`examples\[1\]` must be a text, a dict of fields or a Document"),
        ({"txt": "a"}, r"`example` has unknown fields \['txt'\]"),
        ({"text": "a", "settings": {"max_long": 1}}, "`settings` has 'max_long', which is none"),
        ({"text": "a", "settings": {"do_lower_case": True}}, "`settings` has 'do_lower_case'"),
        (
            {"question": "a b c", "text": "a", "settings": {"max_long_len": 5}},
            "`example`: the question and the special tokens, which are not cut, need "
            "`max_long_len` to be at least 6. Received: 5",
        ),
        (
            {"examples": ["a", "a b c"], "settings": {"max_long_len": 3, "truncation": "error"}},
            r"`examples\[1\]` is too long: 2 tokens and 0 blocks do not fit",
        ),
    ],
)
def test_calls_that_cannot_be_are_refused(processor, arguments, message):
    with pytest.raises(ValueError, match=message):
        processor(**arguments)


def test_batches_are_read_from_json_lines_whose_errors_name_the_line(processor, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in ("a", "b", "c")) + "\n")
    batches = [*processor.batches(path, 2)]
    assert [x["token_ids"].tolist() for x in batches] == [
        [[CLS, *ids("a"), SEP], [CLS, *ids("b"), SEP]],
        [[CLS, *ids("c"), SEP]],
    ]
    path.write_text('{"text": "a"}\n{"txt": "b"}')
    with pytest.raises(ValueError, match="lines.jsonl, line 2 has `txt`, which is no field"):
        [*processor.batches(path, 2)]
    with pytest.raises(ValueError, match="`batch_size` must be an int of at least 1. Received: 0"):
        next(processor.batches(["a"], 0))


def test_no_tensorflow_is_needed(vocab):
    code = (
        "import sys; from etcmodel.text.processor import EtcProcessor; "
        f"EtcProcessor({vocab!r})([{{'html': '<p>a'}}, 'b']); "
        "print([x for x in ('tensorflow', 'matplotlib') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
