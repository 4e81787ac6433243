"""A `tokenizer.json` of any kind: Gemma's (mmBERT), Llama's, sentence pieces with other names.

The judge is the package that wrote the file, with all that the file says of normalization, added
tokens and what is put around a text.
"""

import json
import pathlib
import shutil

import numpy as np
import pytest
import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import etcmodel
from etcmodel import checkpoints
from etcmodel.text import byte_bpe, fairseq_pieces, processor_files, tokenization, vocabulary_files
from etcmodel.text.seq2seq_processor import Seq2SeqProcessor
from etcmodel.text.seq2seq_tokenizer import Seq2SeqTokenizer
from tests.checkpoints import berts

CORPUS = ["The river is long and old.", "Rain fell on the stone bridge.", "日本の川は長い。"]
TEXTS = [
    *CORPUS,
    "",
    " in front, and behind ",
    "a  b   c",
    "one\n\ntwo\tthree",
    "naïve café, ｆｕｌｌ",
    "new 😀 signs ☃",
    "<mask> fell on <pad>",
    "▁ is no space",
]


def of_pieces(around, special, piece_bytes, **parts):
    """Gemma's kind: BPE whose spaces are "▁", with bytes of what it lacks, and added tokens."""
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer, made.pre_tokenizer = parts["normalizer"], pre_tokenizers.Split(" ", "isolated")
    trainer = trainers.BpeTrainer(
        vocab_size=len(special) + 256 + 90,
        special_tokens=[*special, *piece_bytes],
        show_progress=False,
    )
    made.train_from_iterator(CORPUS, trainer)
    entries = json.loads(made.to_str())
    entries["added_tokens"] = [x for x in entries["added_tokens"] if x["content"] in special]
    entries["pre_tokenizer"] = None
    made = tokenizers.Tokenizer.from_str(json.dumps(entries))
    made.add_tokens([tokenizers.AddedToken(x, normalized=False) for x in ("\n\n", "▁▁", "▁▁▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return with_template(made, *around)


def with_template(made, first, last):
    made.post_processor = processors.TemplateProcessing(
        f"{first} $A {last}",
        f"{first} $A {last} $B {last}",
        [(x, made.token_to_id(x)) for x in (first, last)],
    )
    return made


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def gemma():
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    return of_pieces(("<bos>", "<eos>"), special, BYTES, normalizer=normalizers.Replace(" ", "▁"))


def llama():
    """What stands around a text is neither the first nor the best known of the tokens."""
    special = ["<unk>", "<s>", "</s>", "<pad>", "<sep>", "<mask>", "<cls>"]
    spaces = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    return of_pieces(("<cls>", "<sep>"), special, BYTES, normalizer=normalizers.Sequence(spaces))


def unigram():
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    special = ["<s>", "<pad>", "</s>", "<unk>", "[CLS]", "[SEP]", "<mask>"]
    made.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(
            vocab_size=70, special_tokens=special, unk_token="<unk>", show_progress=False
        ),
    )
    made.decoder = decoders.Metaspace(prepend_scheme="first")
    return with_template(made, "[CLS]", "[SEP]")


@pytest.fixture(params=[gemma, llama, unigram], ids=lambda x: x.__name__)
def made(request, tmp_path):
    """(what the package makes of texts, our processor)."""
    package = request.param()
    package.save(str(tmp_path / "tokenizer.json"))
    return package, etcmodel.ModernBertProcessor.from_pretrained(tmp_path)


def test_tokens_are_the_packages(made):
    package, processor = made
    for text in TEXTS:
        ids = package.encode(text).ids
        assert processor([text])["input_ids"].tolist() == [ids], text
        known = package.decode(ids[1:-1], skip_special_tokens=False)
        assert processor.decode(ids) == known.replace("<pad>", ""), text
    batch = processor(question=TEXTS[0], documents=[TEXTS[1]])
    assert batch["input_ids"].tolist() == [package.encode(*TEXTS[:2]).ids]


def test_pieces_know_their_characters(made):
    _, processor = made
    text = "Rain fell 😀 on 日本."
    source = processor([text]).encodings[0].source
    covered = np.zeros(len(text), int)
    for start, end in zip(source.starts, source.ends, strict=True):
        assert not text[start:end].startswith(" ") or not text[start:end].strip()
        covered[start:end] = 1
    assert all(covered[[not x.isspace() for x in text]])


def change(path, **parts):
    entries = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**entries, **parts}), encoding="utf-8")


@pytest.mark.parametrize(
    ("part", "value", "kind"),
    [
        ("normalizer", {"type": "Kana"}, "Kana"),
        ("normalizer", {"type": "Sequence", "normalizers": [{"type": "Kana"}]}, "Kana"),
        ("pre_tokenizer", {"type": "Mecab", "dictionary": "ipadic"}, "Mecab"),
        ("model", {"type": "Trie", "vocab": {}}, "Trie"),
        ("post_processor", {"type": 7}, "7"),
        ("decoder", {"type": "Mecab"}, "Mecab"),
    ],
)
def test_an_unknown_part_is_named_in_a_line(part, value, kind, tmp_path):
    path = tmp_path / "tokenizer.json"
    gemma().save(str(path))
    change(path, **{part: value})
    with pytest.raises(ValueError, match=f"tokenizer.json': there is no `{part}` of type .?{kind}"):
        byte_bpe.ByteLevelTokenizer(path)


def test_a_vocabulary_without_the_needed_tokens_is_refused(tmp_path):
    package = gemma()
    package.post_processor = processors.ByteLevel()
    text = package.to_str().replace('"<bos>"', '"<first>"').replace('"<pad>"', '"<blank>"')
    (tmp_path / "tokenizer.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="tokenizer.json' lacks the tokens <s>, <pad>"):
        byte_bpe.ByteLevelTokenizer(tmp_path / "tokenizer.json")


# XLM-RoBERTa's and CamemBERT's sentence pieces, which fairseq has numbered.


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("pieces") / "sentencepiece.bpe")
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(CORPUS * 3), model_prefix=path, vocab_size=33, minloglevel=2
    )
    return pathlib.Path(f"{path}.model")


@pytest.mark.parametrize(
    ("kind", "around", "offset"), [("xlm-roberta", (0, 2), 1), ("camembert", (5, 6), 4)]
)
@pytest.mark.parametrize("into", ["longformer", "big_bird"])
def test_fairseqs_pieces_become_a_tokenizer_of_the_lifted_model(
    kind, around, offset, into, pieces, tmp_path
):
    source = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    vocab_size = len(source) + offset + 1
    folder = berts.write_folder(tmp_path / kind, ["a"] * vocab_size)
    (folder / "vocab.txt").unlink()
    entries = json.loads((folder / "config.json").read_text())
    own = {"bos_token_id": around[0], "eos_token_id": around[1], "pad_token_id": 1}
    berts.write_config(
        folder, **{**entries, **own, "model_type": kind, "max_position_embeddings": 8}
    )
    weights = berts.hugging_face_weights(prefix="roberta.", positions=8, vocab_size=vocab_size)
    berts.write_safetensors(folder, weights)
    shutil.copyfile(pieces, folder / "sentencepiece.bpe.model")
    lifted = checkpoints.lift(folder, into, max_length=40)
    assert (lifted.config.bos_token_id, lifted.config.sep_token_id) == around
    lifted.save_pretrained(tmp_path / "lifted")
    processor = etcmodel.from_pretrained(tmp_path / "lifted").processor
    for text in ("The river is long.", "Rain  fell ｏｎ 日本の橋。", "naïve ☃"):
        ids = [3 if x == 0 else x + offset for x in source.EncodeAsIds(text)]
        assert processor([text])["input_ids"].tolist() == [[around[0], *ids, around[1]]], text
    assert processor("Rain <mask>")["input_ids"][0, -2] == vocab_size - 1


# What tells the type, and the number of the first piece after fairseq's own tokens.
TOLD = {
    "config.json": ({"model_type": "xlm-roberta-xl"}, 4),
    "tokenizer_config.json": ({"tokenizer_class": "CamembertTokenizerFast"}, 7),
}


@pytest.mark.parametrize("told_by", TOLD)
def test_fairseqs_pieces_are_the_vocabulary_of_programs_and_processors(told_by, pieces, tmp_path):
    folder, (entries, first) = tmp_path / "model", TOLD[told_by]
    folder.mkdir()
    shutil.copyfile(pieces, folder / "sentencepiece.bpe.model")
    (folder / told_by).write_text(json.dumps({**entries, "add_prefix_space": True}))
    vocab_file = str(folder / "sentencepiece.bpe.model")
    source = sentencepiece.SentencePieceProcessor(model_file=vocab_file)
    text, around = "The river is long ☃.", [[0, 2], [5, 6]][first == 7]
    ids = [3 if x == 0 else x + first - 3 for x in source.EncodeAsIds(text)]

    program = vocabulary_files.open_tokenizer(vocab_file, do_lower_case=True)
    assert program.encode(text).ids == [around[0], *ids, around[1]]
    assert vocabulary_files.of_folder(folder, {}) == {"vocab_file": vocab_file}
    whole = [around[0], *ids, around[1]]
    for own in (Seq2SeqProcessor(vocab_file), Seq2SeqProcessor.from_pretrained(folder)):
        own.save_pretrained(tmp_path / "to_texts")
        for to_texts in (own, Seq2SeqProcessor.from_pretrained(tmp_path / "to_texts")):
            assert to_texts(text)["input_ids"].tolist() == [whole]
    for processor in (etcmodel.EtcProcessor, etcmodel.BigBirdProcessor):
        own = processor.from_pretrained(folder)
        own.save_pretrained(tmp_path / "saved")
        again = processor.from_pretrained(tmp_path / "saved")
        for tokenizer in (own.tokenizer, again.tokenizer):
            assert tokenizer.pieces_of([text])[0][0] == ids
            assert tokenizer.source_sha256() == program.source_sha256()
    # An export has what the vocabulary has become, since its folder does not tell the type.
    exported = processor_files.vocabulary_files(vocab_file)["tokenizer.json"]
    assert exported == (tmp_path / "saved" / "tokenizer.json").read_bytes()

    for refuses in (vocabulary_files.open_tokenizer, tokenization.FullTokenizer, Seq2SeqTokenizer):
        with pytest.raises(ValueError, match="`spm_model_file` is .* Give it as `vocab_file`"):
            refuses(None, spm_model_file=vocab_file)
    (folder / told_by).write_text(json.dumps({"model_type": "roberta"}))
    with pytest.raises(ValueError, match="bpe.model' is numbered as in XLM-RoBERTa or in Camem"):
        vocabulary_files.open_tokenizer(vocab_file)


def test_a_file_without_sentence_pieces_is_named():
    for content in (b"", b"\x80", b"no pieces"):
        with pytest.raises(ValueError, match="'a.model' is no SentencePiece model"):
            fairseq_pieces.tokenizer_json(content, "camembert", "a.model")
