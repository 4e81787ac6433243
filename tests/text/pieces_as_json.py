"""`tokenizer.json` of a SentencePiece model, as Hugging Face makes it of T5's and PEGASUS's."""

import pathlib

import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

END = "</s>"


def write(spm_file, path, *, extra_ids=0, id_offset=0):
    """Writes the file of a model with T5's `extra_ids`, or with PEGASUS's own tokens in front."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(spm_file))
    pieces = [(model.IdToPiece(x), model.GetScore(x)) for x in range(len(model))]
    own = [f"<extra_id_{x}>" for x in reversed(range(extra_ids))]
    if id_offset:
        own = ["<mask_1>", "<mask_2>", *(f"<unk_{x}>" for x in range(2, id_offset))][:id_offset]
    scored = [(token, 0.0) for token in own]
    vocab = [*pieces[:2], *scored, *pieces[2:]] if id_offset else [*pieces, *scored]
    made = tokenizers.Tokenizer(models.Unigram(vocab, model.unk_id() + id_offset, False))
    steps = [
        normalizers.Strip(left=False, right=True),
        normalizers.Replace(tokenizers.Regex(" {2,}"), "▁"),
    ]
    if rules := _normalization(pathlib.Path(spm_file).read_bytes()):
        steps = [normalizers.Precompiled(rules), *steps]
    made.normalizer = normalizers.Sequence(steps)
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    if id_offset:
        words = pre_tokenizers.WhitespaceSplit()
        made.pre_tokenizer = pre_tokenizers.Sequence([words, made.pre_tokenizer])
    made.decoder = decoders.Metaspace(prepend_scheme="always")
    made.post_processor = processors.TemplateProcessing(
        single=["$A", END], pair=["$A", END, "$B", END], special_tokens=[(END, model.eos_id())]
    )
    named = ["<pad>", END, "<unk>", *own]
    made.add_special_tokens([tokenizers.AddedToken(x, normalized=False) for x in named])
    made.save(str(path))
    return str(path)


def _normalization(content):
    """The compiled rules of a model: field 2 of field 3."""
    return dict(_fields(dict(_fields(content))[3])).get(2)


def _fields(message):
    """(number, value) of each field of a protocol buffer; of fixed sizes the bytes."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(message, place)
        else:
            size, place = {1: (8, place), 5: (4, place)}.get(kind) or _varint(message, place)
            value, place = message[place : place + size], place + size
        yield key >> 3, value


def _varint(message, place):
    value = shift = 0
    while True:
        byte, place = message[place], place + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place
