"""Tokens added to a vocabulary: never split, kept in the files of Hugging Face's library.

The expected pieces are those of transformers 5.24, of the same vocabularies and added tokens.
"""

import functools
import json
import pathlib
import re
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import etcmodel
from etcmodel.checkpoints import processors
from etcmodel.text import pieces, tokenization, vocabulary_files
from tests.reference import cases

VOCABULARIES = cases.reference_root() / "vocab"
LONGFORMER = cases.reference_root() / "longformer" / "tokenizer"
SENTENCE_PIECES = pathlib.Path(__file__).parents[1] / "fixtures/sentence_pieces/spiece.model"
PLAIN, SPECIAL = ["[question]", "[/question]"], ["[ent]", "[/ent]"]
TEXT = "[question]Who wrote Emma?[/question] By [ent]Jane Austen[/ent], of course."
EXPECTED = {
    "longformer": "[question] W ho Ġwr ot e ĠEmma ? [/question] ĠB y Ġ [ent] J ane ĠA ust en"
    " [/ent] , Ġof Ġcourse .",
    "bert": "[question] who wrote emma ? [/question] by [ent] jane austen [/ent] , of course .",
    "t5": "[question] ▁W h o ▁ w r o t e ▁ <unk> m m a <unk> [/question] ▁ B y [ent] ▁ <unk> a n e"
    " ▁A u s t e n [/ent] ▁ <unk> ▁ o f ▁ c o u r s e .",
}
FIRST_NEW = {"longformer": 2000, "bert": 30522, "t5": 190}
FILES = {
    "longformer": ["merges.txt", "processor_config.json", "tokenizer_config.json", "vocab.json"],
    "bert": ["processor_config.json", "tokenizer_config.json", "vocab.txt"],
    "t5": ["processor_config.json", "spiece.model", "tokenizer_config.json"],
}


FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def bert_vocabulary():
    """BERT's; where the small copy of it stands, with the words of `EXPECTED`, and as long."""
    lines = (VOCABULARIES / "bert_uncased_vocab.txt").read_text("utf-8").splitlines()
    lines += [x for x in EXPECTED["bert"].split() if x not in [*lines, *PLAIN, *SPECIAL]]
    lines += [f"[filler{number}]" for number in range(FIRST_NEW["bert"] - len(lines))]
    path = pathlib.Path(FOLDER.name, "vocab.txt")
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def made(name):
    if name == "longformer":
        return etcmodel.LongformerProcessor(str(LONGFORMER / "vocab.json"))
    if name == "bert":
        return etcmodel.EtcProcessor(bert_vocabulary())
    return etcmodel.Seq2SeqProcessor(SENTENCE_PIECES, extra_ids=100)


def with_tokens(name):
    processor = made(name)
    assert processor.add_tokens(PLAIN) == 2
    assert processor.add_tokens([*SPECIAL, "[question]"], special_tokens=True) == 2
    return processor


def tokens_of(processor, text=TEXT):
    """The pieces of a text, without special ones around it."""
    batch, tokenizer = processor([text]), processor.tokenizer
    if isinstance(processor, etcmodel.Seq2SeqProcessor):
        return [tokenizer.token(x) for x in batch["input_ids"][0][:-1]]
    return batch.encodings[0].tokens[1:-1]


@pytest.mark.parametrize("name", EXPECTED)
def test_added_tokens_are_not_split_and_kept_in_hugging_faces_files(name, tmp_path):
    processor = with_tokens(name)
    assert tokens_of(processor) == EXPECTED[name].split()
    assert processor.vocab_size == FIRST_NEW[name] + 4 == made(name).vocab_size + 4
    processor.save_pretrained(tmp_path)
    assert sorted(x.name for x in tmp_path.iterdir()) == FILES[name]
    entries = json.loads((tmp_path / "tokenizer_config.json").read_text())
    found = entries["added_tokens_decoder"]
    ids = [str(FIRST_NEW[name] + x) for x in range(4)]
    assert [found[x]["content"] for x in ids] == PLAIN + SPECIAL
    assert [found[x]["special"] for x in ids] == [False, False, True, True]
    again = type(processor).from_pretrained(tmp_path)
    assert tokens_of(again) == EXPECTED[name].split()
    assert again.tokenizer.source_sha256() == processor.tokenizer.source_sha256()
    assert again.tokenizer.source_sha256() != made(name).tokenizer.source_sha256()
    made(name).save_pretrained(tmp_path)  # They must not come back.
    assert type(processor).from_pretrained(tmp_path).vocab_size == FIRST_NEW[name]


def write(path, entries):
    path.write_text(json.dumps(entries))


def as_decoder(folder, ids, special):
    kinds = {"lstrip": False, "rstrip": False, "single_word": False}
    entries = {
        str(x): {"content": token, "special": token in special, "normalized": False, **kinds}
        for token, x in ids.items()
    }
    write(folder / "tokenizer_config.json", {"added_tokens_decoder": entries})


def as_older_files(folder, ids, special):
    write(folder / "added_tokens.json", ids)
    write(folder / "special_tokens_map.json", {"additional_special_tokens": special})


def as_names_alone(folder, ids, special):
    del special
    write(folder / "special_tokens_map.json", {"additional_special_tokens": [*ids]})


@pytest.mark.parametrize("form", [as_decoder, as_older_files, as_names_alone])
@pytest.mark.parametrize("name", EXPECTED)
def test_every_form_of_hugging_faces_files_is_read(name, form, tmp_path):
    made(name).save_pretrained(tmp_path)
    ids = {token: FIRST_NEW[name] + x for x, token in enumerate([*PLAIN, *SPECIAL])}
    form(tmp_path, ids, SPECIAL)
    processor = type(made(name)).from_pretrained(tmp_path)
    assert tokens_of(processor) == EXPECTED[name].split()
    special = {x.content for x in processor.tokenizer.added.tokens if x.special}
    assert special == set(ids if form is as_names_alone else SPECIAL)


def test_a_tokenizer_json_of_word_pieces_does_not_split_what_was_added(tmp_path):
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ent", "a", "[", "]", "##nt"]
    added = [{"id": x, "content": token, "special": True} for x, token in enumerate(vocab[:5])]
    added.append({"id": 10, "content": "[ent]", "special": False, "normalized": True})
    entries = {
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "vocab": {token: x for x, token in enumerate(vocab)},
        },
    }
    write(tmp_path / "tokenizer.json", entries)
    processor = etcmodel.EtcProcessor.from_pretrained(tmp_path)
    assert tokens_of(processor, "A[ENT]a [a]") == ["a", "[ent]", "a", "[", "a", "]"]
    processor.save_pretrained(tmp_path / "saved")
    again = etcmodel.EtcProcessor.from_pretrained(tmp_path / "saved")
    assert tokens_of(again, "A[ENT]a [a]") == ["a", "[ent]", "a", "[", "a", "]"]
    assert len((tmp_path / "saved" / "vocab.txt").read_text().split()) == len(vocab)


# A slow twin: the first token that any place has, the longest there, and the rest in between.


def slow_split(text, tokens, lower):
    def same(place, token):
        found = text[place : place + len(token)]
        return (found.lower() if lower else found) == token

    parts, between, place = [], "", 0
    while place < len(text):
        here = [x for x in tokens if same(place, x)]
        if here:
            parts += [between, max(here, key=len)]
            between, place = "", place + len(parts[-1])
        else:
            between, place = between + text[place], place + 1
    return [*parts, between]


NEW = ["[ent]", "[ent", "ent]x", "zz", "z z"]
TEXTS = st.lists(
    st.sampled_from([*NEW, "[ENT]", "e", "z", " ", "é", "\u200b", "a.b", "字"]), max_size=9
)


@functools.cache
def tokenizer_with(*tokens, special=False):
    tokenizer = tokenization.FullTokenizer(str(VOCABULARIES / "bert_uncased_vocab.txt"))
    tokenizer.add_tokens(list(tokens), special_tokens=special)
    return tokenizer


@given(TEXTS)
@settings(max_examples=60)
@pytest.mark.parametrize("special", [False, True])
def test_pieces_and_their_places_match_a_slow_twin(special, parts):
    text, plain, tokenizer = "".join(parts), tokenizer_with(), tokenizer_with(*NEW, special=special)
    cleaned = (
        text if special else text.replace("\u200b", "").replace("é", "e").replace("字", " 字 ")
    )
    expected = []
    for number, part in enumerate(slow_split(cleaned, NEW, lower=not special)):
        expected += [part] if number % 2 else plain.tokenize(part)
    assert tokenizer.tokenize(text) == expected
    found = pieces.Splitter(tokenizer).split(["", text, "a"])
    assert found.counts.tolist() == [0, len(expected), 1]
    assert tokenizer.convert_ids_to_tokens(found.ids[:-1]) == expected
    for start, end, token in zip(found.starts, found.ends, expected, strict=False):
        spelled = re.sub("[\u200b]", "", text[start:end]).lower().replace("é", "e")
        assert spelled == token.removeprefix("##") or token == "[UNK]"
    assert (np.diff(found.starts[:-1]) >= 0).all()


def test_what_contradicts_is_refused_in_a_line_that_names_the_file(tmp_path):
    made("bert").save_pretrained(tmp_path)
    for entries, error in [
        ({"[ent]": 7}, "added token '.ent.' has the id 7, which is that of '.unused6.'"),
        ({"the": 40000}, "added token 'the' has the id 40000"),
        ({"[ent]": "x"}, "this is no added token: "),
        ({"[ent]": -1}, "an added token has the id -1"),
    ]:
        write(tmp_path / "added_tokens.json", entries)
        with pytest.raises(ValueError, match=f"added_tokens.json: .*{error}"):
            etcmodel.EtcProcessor.from_pretrained(tmp_path)
    made("longformer").save_pretrained(tmp_path / "bpe")
    write(tmp_path / "bpe" / "added_tokens.json", {"[ent]": 2001})
    with pytest.raises(ValueError, match="'.ent.' cannot have the id 2001. The ids of added tok"):
        etcmodel.LongformerProcessor.from_pretrained(tmp_path / "bpe")
    for wrong in (7, [""], ["a", None]):
        with pytest.raises(ValueError, match="`tokens"):
            made("bert").add_tokens(wrong)


def test_a_tokenizer_json_is_saved_over_itself_with_the_files_beside_it(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes((cases.reference_root() / "modernbert/tokenizer/tokenizer.json").read_bytes())
    listed = json.loads(path.read_text())["added_tokens"]
    decoder = {str(x.pop("id")): x for x in listed}
    write(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": decoder})
    processor = etcmodel.ModernBertProcessor(str(path))
    size = processor.vocab_size
    processor.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["added_tokens_decoder"]
    processor.add_tokens(PLAIN)
    processor.save_pretrained(tmp_path)
    again = etcmodel.ModernBertProcessor.from_pretrained(tmp_path)
    assert again.vocab_size == size + 2 and tokens_of(again)[0] == "[question]"
    again.save_pretrained(tmp_path)
    assert etcmodel.ModernBertProcessor.from_pretrained(tmp_path).vocab_size == size + 2


def test_a_model_with_fewer_rows_than_tokens_is_refused_when_both_meet(tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = etcmodel.LongformerModel(
        etcmodel.LongformerConfig(vocab_size=2000, attention_window=(4,), **sizes)
    )
    model.processor = with_tokens("longformer")
    error = "has 2004 tokens, more than the model's `vocab_size`, 2000. .*resize_token_embeddings"
    with pytest.raises(ValueError, match=error):
        processors.check_processor(model, model.processor)
    assert model.resize_token_embeddings().shape[0] == 2004
    model.save_pretrained(tmp_path)
    loaded = etcmodel.from_pretrained(tmp_path)
    assert tokens_of(loaded.processor) == EXPECTED["longformer"].split()


def test_programs_find_them_beside_the_vocabulary(tmp_path):
    with_tokens("bert").save_pretrained(tmp_path)
    path = str(tmp_path / "vocab.txt")
    tokenizer = vocabulary_files.open_tokenizer(path)
    assert tokenizer.tokenize(TEXT) == EXPECTED["bert"].split()
    assert vocabulary_files.sha256(path) == tokenizer.source_sha256()
    assert vocabulary_files.of_folder(str(tmp_path), {})["vocab_file"] == path
