"""The vocabulary of XLM-RoBERTa and CamemBERT: sentence pieces under fairseq's numbers.

Both were trained with fairseq, which puts tokens of its own before the pieces of a SentencePiece
model, and [MASK] behind them. Source: Conneau et al. 2020 (arXiv:1911.02116) and Martin et al. 2020
(arXiv:1911.03894), by the files of their tokenizers in Hugging Face's library.
"""

import json
import os

from etcmodel import bounded_json, extras
from etcmodel.text import vocabulary

FILE_NAME = "sentencepiece.bpe.model"
_UNKNOWN, _MASK = "<unk>", "<mask>"
# By the model's type: tokens before the pieces, and the first piece that follows them.
_FIRST = {
    "xlm-roberta": (("<s>", "<pad>", "</s>", _UNKNOWN), 3),
    "camembert": (("<s>NOTUSED", "<pad>", "</s>NOTUSED", _UNKNOWN, "<unk>NOTUSED"), 1),
}
# Files beside the pieces that tell the type, by an entry of which the lower-cased value begins so.
_TOLD = {"config.json": "model_type", "tokenizer_config.json": "tokenizer_class"}
_BEGIN = {"xlm-roberta": "xlm-roberta", "xlmroberta": "xlm-roberta", "camembert": "camembert"}
_NEVER = -100.0  # A score that no other segmentation has.
_NORMALIZER, _CHARACTERS = 3, 2  # Fields of SentencePiece's protocol buffers.


def is_of(path):
    """Returns whether a file, by its name, has pieces that fairseq numbers: bool."""
    return os.path.basename(str(path)) == FILE_NAME


def model_type_of(path):
    """Returns "xlm-roberta" or "camembert": which of them has the pieces of a file.

    The files of both have the same tokens in front, so the files beside it must tell.

    Args:
        path: str. A `sentencepiece.bpe.model`.
    Raises:
        ValueError: naming the file, if nothing beside it says so.
    """
    folder = os.path.dirname(str(path))
    for file, name in _TOLD.items():
        beside = os.path.join(folder, file)
        if vocabulary.exists(beside):
            told = bounded_json.load_object(vocabulary.read_bytes(beside), beside).get(name)
            for begin, model_type in _BEGIN.items():
                if str(told).lower().startswith(begin):
                    return model_type
    told = " or ".join(f"`{name}` of {file}" for file, name in _TOLD.items())
    raise ValueError(
        f"{str(path)!r} is numbered as in XLM-RoBERTa or in CamemBERT. Say which by {told} beside "
        f'it, such as {{"model_type": "xlm-roberta"}}.'
    )


def tokenizer_json(content, model_type, path):
    """Returns the `tokenizer.json` of the same tokenizer, as Hugging Face's library derives it.

    Args:
        content: bytes of a `sentencepiece.bpe.model`.
        model_type: str. "xlm-roberta" or "camembert".
        path: str. The file, for errors.
    Returns:
        str.
    Raises:
        ValueError: naming the file, if it is no unigram model.
    """
    with extras.needed("text"):
        import sentencepiece
        import tokenizers
        from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

    try:
        pieces = sentencepiece.SentencePieceProcessor(model_proto=content)
        characters = dict(_fields(dict(_fields(content))[_NORMALIZER])).get(_CHARACTERS)
    except (RuntimeError, KeyError, IndexError) as error:
        raise ValueError(f"{path!r} is no SentencePiece model: {error}") from error
    own, first = _FIRST[model_type]
    scores = [(x, _NEVER if x.startswith("<unk>N") else 0.0) for x in own]
    scores += [(pieces.IdToPiece(x), pieces.GetScore(x)) for x in range(first, len(pieces))]
    unknown = own.index(_UNKNOWN)
    made = tokenizers.Tokenizer(models.Unigram([*scores, (_MASK, 0.0)], unk_id=unknown))
    if characters:
        made.normalizer = normalizers.Precompiled(characters)
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    made.decoder = decoders.Metaspace(prepend_scheme="always")
    special = [x for x in dict(scores) if x in ("<s>", "<pad>", "</s>", _UNKNOWN)]
    made.add_special_tokens([*special, tokenizers.AddedToken(_MASK, lstrip=True, special=True)])
    made.post_processor = processors.TemplateProcessing(
        "<s> $A </s>",
        "<s> $A </s> </s> $B </s>",
        [(x, made.token_to_id(x)) for x in ("<s>", "</s>")],
    )
    return json.dumps(json.loads(made.to_str()), ensure_ascii=False)


def _fields(content):
    """(number, bytes or int) of each field of a message in the protocol buffers' wire format."""
    place = 0
    while place < len(content):
        key, place = _number(content, place)
        kind = key & 7
        if kind == 0:
            value, place = _number(content, place)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, place = _number(content, place)
            value, place = content[place : place + size], place + size
        yield key >> 3, value


def _number(content, place):
    """(a number of 7 bits a byte, the place behind it)."""
    value = shift = 0
    while True:
        byte = content[place]
        value, place, shift = value | (byte & 127) << shift, place + 1, shift + 7
        if byte < 128:
            return value, place
