"""Texts as the tokens of models with an encoder and a decoder, and back.

Byte-level BPE of BART and LED puts `<s>` and `</s>` around a text; sentence pieces of T5, LongT5
and PEGASUS-X are followed by `</s>`.
"""

import os

from etcmodel.text import byte_bpe, characters, processor_files, tokenization

__all__ = ["Seq2SeqTokenizer"]


class Seq2SeqTokenizer:
    """From a text to ids with those of the tokens around it, and back.

    Args:
        vocab_file: str or None. Byte-level BPE: a `tokenizer.json`, or a `vocab.json` with
            `merges.txt` beside it. Ignored with `spm_model_file`.
        spm_model_file: str or None. A SentencePiece model.
        id_offset: int. What is added to the ids of sentence pieces above 1, which PEGASUS-X has
            behind its own tokens: 103 for the released models.
    Raises:
        ValueError: naming the file, if it is no such vocabulary, has no end token, or is of
            byte-level BPE with an `id_offset`.
    """

    split_punctuation = False

    def __init__(self, vocab_file=None, spm_model_file=None, id_offset=0):
        self.id_offset = id_offset
        if spm_model_file:
            self._own = tokenization.FullTokenizer(None, spm_model_file=spm_model_file)
            self.sp_model = self._own.sp_model
            self.pad_id, self.eos_id = max(self.sp_model.pad_id(), 0), self.sp_model.eos_id()
            self._around = ([], [self.eos_id])
            if self.eos_id < 0:
                raise ValueError(f"{str(spm_model_file)!r} has no end token `</s>`.")
        else:
            if not processor_files.is_byte_level(vocab_file):
                raise ValueError(
                    "The vocabulary of summaries must be byte-level BPE, `tokenizer.json` or "
                    "`vocab.json` with `merges.txt`, or a SentencePiece model (--spm_model_file). "
                    f"Received: {os.path.basename(str(vocab_file))!r}"
                )
            if id_offset:
                raise ValueError(
                    "`piece_id_offset` is for sentence pieces (--spm_model_file). Leave it out for "
                    f"{str(vocab_file)!r}. Received: {id_offset}"
                )
            self._own, self.sp_model = byte_bpe.ByteLevelTokenizer.of_file(str(vocab_file)), None
            start, self.pad_id, self.eos_id = (
                self._own.vocab[token] for token in ("<s>", "<pad>", "</s>")
            )
            self._around = ([start], [self.eos_id])
        self.vocab, self.source_file = self._own.vocab, self._own.source_file

    @property
    def vocab_size(self):
        """int: all ids are below it."""
        return len(self.vocab) + self.id_offset

    @property
    def num_around(self):
        """int: tokens around every text."""
        return sum(map(len, self._around))

    def encode(self, text, max_length):
        """The ids of a text, cut at its end where it is too long.

        Args:
            text: str.
            max_length: int, more than `num_around`. The most ids, those around the text included.
        Returns:
            (list of int; int, how many tokens of the text were left out).
        """
        ids, room = self._ids(text), max_length - self.num_around
        first, last = self._around
        return [*first, *ids[:room], *last], max(0, len(ids) - room)

    def _ids(self, text):
        if self.sp_model is None:
            ((ids, _),) = self._own.pieces_of([text])
            return list(ids)
        ids = self.sp_model.EncodeAsIds(characters.replace_surrogates(text))
        return [x + self.id_offset if x > 1 else x for x in ids]

    def decode(self, ids):
        """The text of ids, without special tokens and those that no piece has."""
        if self.sp_model is None:
            known = [x for x in map(int, ids) if x in self._own.inv_vocab]
            return self._own.decode(known, skip_special_tokens=True).strip()
        lowest = 2 + self.id_offset
        pieces = (int(x) - self.id_offset for x in ids if lowest <= x < self.vocab_size)
        return self.sp_model.DecodeIds([x for x in pieces if x != self.eos_id])

    def source_sha256(self):
        """Hexadecimal digest of the vocabulary's files: the same for the same vocabulary."""
        return self._own.source_sha256()
