"""Byte-level BPE against what Hugging Face's tokenizers gave."""

import json

import numpy as np
import pytest

from etcmodel.text.byte_bpe import ByteLevelTokenizer
from tests.reference import cases

FOLDER = cases.topic_folder("longformer") / "tokenizer"
CASES = json.loads((FOLDER / "tokens.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer():
    return ByteLevelTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module", params=["longformer", "modernbert"])
def known(request):
    """(a tokenizer, what Hugging Face's makes of texts with the same files)."""
    folder = cases.topic_folder(request.param) / "tokenizer"
    told = json.loads((folder / "tokens.json").read_text(encoding="utf-8"))
    return ByteLevelTokenizer.from_pretrained(folder), told


def test_single_texts(known):
    tokenizer, told = known
    for case in told["single"]:
        found = tokenizer.encode(case["text"])
        assert found.ids == case["ids"], case["text"]
        assert found.tokens == case["tokens"], case["text"]
        assert list(map(list, found.offsets)) == case["offsets"], case["text"]
        tokens = tokenizer.tokenize(case["text"])
        assert tokenizer.convert_tokens_to_ids(tokens) == case["ids_bare"], case["text"]
        assert tokenizer.convert_ids_to_tokens(case["ids_bare"]) == tokens
        assert tokenizer.decode(case["ids"]) == case["decoded"]
        skipped = tokenizer.decode(case["ids"], skip_special_tokens=True)
        assert skipped == case["decoded_skip_special"]


def test_pairs_whole_and_cut(known):
    tokenizer, told = known
    kinds = set()
    for pair in told["pairs"]:
        assert tokenizer.encode(pair["a"], pair["b"]).ids == pair["ids"]
        for name in (name for name in pair if name.startswith("truncated_")):
            wanted, kind = pair[name], name.removeprefix("truncated_")
            kinds.add(kind)
            is_single = kind == "single"
            texts = (pair["b"],) if is_single else (pair["a"], pair["b"])
            options = {"max_length": wanted["max_length"]}
            options |= {} if is_single else {"truncation": kind}
            if "error" in wanted:
                kind = "" if is_single else f".{kind}"
                with pytest.raises(ValueError, match=f"cannot be cut to .* tokens.*{kind}"):
                    tokenizer.encode(*texts, **options)
            else:
                assert tokenizer.encode(*texts, **options).ids == wanted["ids"]
    assert len(kinds) >= 2


def test_batches(known):
    tokenizer, told = known
    for case in told["batches"]:
        batch = tokenizer(case["texts"])
        np.testing.assert_array_equal(batch["input_ids"], case["ids"])
        np.testing.assert_array_equal(batch["attention_mask"], case["attention_mask"])
        assert tokenizer(case["texts"], multiple_of=16)["input_ids"].shape[1] % 16 == 0


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"add_prefix_space": True}, "ids_prefix_space"),
        ({"mask_takes_space": True}, "ids_mask_lstrip"),
    ],
    ids=["prefix", "mask"],
)
def test_settings(settings, wanted):
    tokenizer = ByteLevelTokenizer.from_pretrained(FOLDER, **settings)
    for case in CASES["single"]:
        assert tokenizer.encode(case["text"]).ids == case[wanted], case["text"]


def copied(folder, **files):
    """A folder with the vocabulary, and JSON files beside it."""
    for name in ("vocab.json", "merges.txt"):
        (folder / name).write_bytes((FOLDER / name).read_bytes())
    for name, entries in files.items():
        (folder / f"{name}.json").write_text(json.dumps(entries))
    return folder


MASK = {"content": "<mask>", "lstrip": True, "normalized": False, "rstrip": False}


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config": {"mask_token": {"__type": "AddedToken", **MASK}}},
        {"tokenizer_config": {"mask_token": "<mask>", "added_tokens_decoder": {"4": MASK}}},
        {"special_tokens_map": {"mask_token": MASK}},
    ],
    ids=["entry", "listed", "map"],
)
def test_files_that_let_the_mask_take_the_space_in_front_are_heeded(tmp_path, files):
    """As Hugging Face's library, also its version 5, reads them beside a `vocab.json`."""
    loaded = ByteLevelTokenizer.from_pretrained(copied(tmp_path, **files))
    for case in CASES["single"]:
        assert loaded.encode(case["text"]).ids == case["ids_mask_lstrip"], case["text"]


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config": {"mask_token": MASK}, "special_tokens_map": {"mask_token": "<mask>"}},
        {"tokenizer_config": {"added_tokens_decoder": {"4": {**MASK, "lstrip": False}}}},
    ],
    ids=["map", "listed"],
)
def test_the_file_that_hugging_face_reads_last_counts(tmp_path, files):
    loaded = ByteLevelTokenizer.from_pretrained(copied(tmp_path, **files))
    for case in CASES["single"]:
        assert loaded.encode(case["text"]).ids == case["ids"], case["text"]


def test_a_mask_that_takes_the_space_is_saved_so_for_hugging_face(tmp_path):
    ByteLevelTokenizer.from_pretrained(FOLDER, mask_takes_space=True).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert saved["mask_token"] == {"__type": "AddedToken", **MASK, "single_word": False}


def test_settings_that_contradict_the_file_of_a_roberta_are_refused(tokenizer, tmp_path):
    """Hugging Face's library takes the entry of the settings there."""
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer._tokenizer.to_str())
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space": false}')
    text = "A book."
    same = ByteLevelTokenizer.from_pretrained(tmp_path).encode(text).ids
    assert same == tokenizer.encode(text).ids
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    with pytest.raises(ValueError, match="`add_prefix_space` is True, that .* is False. Make the"):
        ByteLevelTokenizer.from_pretrained(tmp_path)


def changed(tokenizer, folder, kind, **parts):
    """Writes a `tokenizer.json` with other parts, and the class that reads it there."""
    entries = {**json.loads(tokenizer._tokenizer.to_str()), **parts}
    (folder / "tokenizer.json").write_text(json.dumps(entries))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))


@pytest.mark.parametrize("kind", ["RobertaTokenizer", "LEDTokenizerFast"])
def test_a_space_in_front_that_only_the_file_of_a_roberta_tells_is_refused(tmp_path, kind):
    """Hugging Face's library has none, unless the settings ask for it."""
    made = ByteLevelTokenizer(FOLDER / "vocab.json", add_prefix_space=True)
    changed(made, tmp_path, kind)
    with pytest.raises(
        ValueError,
        match="`add_prefix_space` is False, the default of .*, that .* is True. Make the",
    ):
        ByteLevelTokenizer.from_pretrained(tmp_path)
    changed(made, tmp_path, "PreTrainedTokenizerFast")  # It takes all from the file.
    same = ByteLevelTokenizer.from_pretrained(tmp_path).encode("A book.").ids
    assert same == made.encode("A book.").ids


LOWER = {"type": "Lowercase"}


@pytest.mark.parametrize("kind", ["RobertaTokenizerFast", "XLMRobertaTokenizer", "T5Tokenizer"])
@pytest.mark.parametrize("part", [LOWER, {"type": "Sequence", "normalizers": [LOWER]}])
def test_a_normalizer_that_the_class_leaves_out_is_refused(tokenizer, tmp_path, kind, part):
    changed(tokenizer, tmp_path, kind, normalizer=part)
    with pytest.raises(ValueError, match="leaves out the `normalizer` of type 'Lowercase' in .*j"):
        ByteLevelTokenizer.from_pretrained(tmp_path)
    changed(tokenizer, tmp_path, "PreTrainedTokenizerFast", normalizer=part)
    lower = ByteLevelTokenizer.from_pretrained(tmp_path).encode("A Book.").ids
    assert lower == tokenizer.encode("a book.").ids
    changed(tokenizer, tmp_path, kind, normalizer=None)
    assert ByteLevelTokenizer.from_pretrained(tmp_path).encode("A").ids == tokenizer.encode("A").ids


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"model_type": "longformer"}, "that of `model_type` 'longformer', RobertaTokenizer,"),
        ({"model_type": "led"}, "that of `model_type` 'led', LEDTokenizer,"),
        ({"tokenizer_class": "BartTokenizer"}, "the `tokenizer_class` of config.json, BartTokeniz"),
    ],
)
def test_so_is_it_where_the_model_s_config_alone_tells_the_class(tokenizer, tmp_path, config, told):
    changed(tokenizer, tmp_path, None, normalizer=LOWER)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"{told}.* leaves out the `normalizer` of type 'Lowerc"):
        ByteLevelTokenizer.from_pretrained(tmp_path)
    # Of such a model that library takes all from the file, whatever class is named.
    taken = {**config, "model_type": "modernbert"}
    (tmp_path / "config.json").write_text(json.dumps(taken))
    lower = ByteLevelTokenizer.from_pretrained(tmp_path)
    assert lower.encode("A Book.").ids == tokenizer.encode("a book.").ids

    lower.save_pretrained(tmp_path / "saved")  # Beside a Longformer, say.
    (tmp_path / "saved" / "config.json").write_text(json.dumps(config))
    again = ByteLevelTokenizer.from_pretrained(tmp_path / "saved")
    assert again.encode("A Book.").ids == lower.encode("A Book.").ids


def test_a_folder_of_this_library_says_itself_how_its_texts_are_read(tokenizer, tmp_path):
    """As earlier versions wrote it, without a class."""
    changed(tokenizer, tmp_path, None, normalizer=LOWER)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "longformer"}))
    (tmp_path / "processor_config.json").write_text("{}")
    lower = ByteLevelTokenizer.from_pretrained(tmp_path)
    assert lower.encode("A Book.").ids == tokenizer.encode("a book.").ids


def test_sentence_pieces_keep_their_own_normalizer(tokenizer, tmp_path):
    own = {"type": "Replace", "pattern": {"String": "  "}, "content": " "}
    changed(tokenizer, tmp_path, "XLMRobertaTokenizer", normalizer=own)
    same = ByteLevelTokenizer.from_pretrained(tmp_path).encode("a  b").ids
    assert same == tokenizer.encode("a b").ids


def test_the_file_of_a_roberta_is_saved_with_what_hugging_face_asks_the_settings_for(tmp_path):
    """Its tokens with white space, once tokens are added, and the space in front of a text."""
    made = ByteLevelTokenizer(FOLDER / "vocab.json", add_prefix_space=True, mask_takes_space=True)
    path = tmp_path / "tokenizer.json"
    path.write_text(made._tokenizer.to_str())
    loaded = ByteLevelTokenizer.from_pretrained(tmp_path)
    loaded.save_pretrained(tmp_path / "one")
    saved = json.loads((tmp_path / "one" / "tokenizer_config.json").read_text())
    assert saved == {"add_prefix_space": True}
    loaded.add_tokens(["[q]"])
    loaded.save_pretrained(tmp_path / "two")
    saved = json.loads((tmp_path / "two" / "tokenizer_config.json").read_text())
    listed = {x["content"]: x["lstrip"] for x in saved["added_tokens_decoder"].values()}
    wanted = {"<s>": False, "<pad>": False, "</s>": False, "<unk>": False, "<mask>": True}
    assert listed == {**wanted, "[q]": False} and saved["add_prefix_space"]
    again = ByteLevelTokenizer.from_pretrained(tmp_path / "two")
    assert again.encode("a <mask>[q]").ids == loaded.encode("a <mask>[q]").ids
    assert again.vocab["[q]"] == len(made.vocab)


def test_the_files_are_written_as_they_were_read(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"vocab.json", "merges.txt"}
    for name in names:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()
    assert ByteLevelTokenizer.from_pretrained(tmp_path).vocab == tokenizer.vocab


def test_a_tokenizer_json_holds_all(tokenizer, tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokenizer._tokenizer.to_str(), encoding="utf-8")
    whole = ByteLevelTokenizer.from_pretrained(tmp_path)
    for case in CASES["single"][:20]:
        assert whole.encode(case["text"]).ids == case["ids"]


def test_the_settings_of_the_folder_hold(tmp_path):
    copied(tmp_path, tokenizer_config={"add_prefix_space": True})
    case = CASES["single"][0]
    found = ByteLevelTokenizer.from_pretrained(tmp_path).encode(case["text"])
    assert found.ids == case["ids_prefix_space"]


@pytest.mark.parametrize("value", ['"false"', "[false]", "1", "NaN"])
def test_a_setting_that_is_neither_true_nor_false_is_refused(tmp_path, value):
    copied(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(f'{{"add_prefix_space": {value}}}')
    message = r"tokenizer_config\.json: `add_prefix_space` must be true or false. Received: "
    with pytest.raises(ValueError, match=message):
        ByteLevelTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vocab.json", b"[]", "vocab.json"),
        ("vocab.json", b'{"a": 0}', "vocab.json' lacks the tokens <s>, <pad>"),
        ("merges.txt", b"\n", "merges.txt' is empty: copy it again from where the vocabulary is"),
        ("merges.txt", b"a b c\n", "merges.txt, line 1: two tokens are needed"),
        ("merges.txt", b"qq zz\n", "merges.txt' does not fit .*vocab.json"),
        ("tokenizer.json", b'{"a": 0}', "tokenizer.json' holds no tokenizer"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content, message):
    (copied(tmp_path) / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        ByteLevelTokenizer.from_pretrained(tmp_path)


def test_a_folder_without_files_is_named(tmp_path):
    with pytest.raises(ValueError, match="has none of tokenizer.json, vocab.json"):
        ByteLevelTokenizer.from_pretrained(tmp_path)
