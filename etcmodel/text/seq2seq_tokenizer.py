"""Tokenizers of encoder-decoder models: texts to ids, and back.

Byte-level BPE of BART and LED puts `<s>` and `</s>` around a text; sentence pieces of T5, LongT5
and PEGASUS-X are followed by `</s>`, and special tokens in a text, such as `<extra_id_0>` or
`<mask_1>`, keep their ids. A `tokenizer.json` is of either kind.
"""

import os
import re

from etcmodel.text import (
    added_tokens,
    byte_bpe,
    characters,
    processor_files,
    tokenization,
    vocabulary,
)


class _OfFile(byte_bpe.ByteLevelTokenizer):
    """Its texts need not have a start token, such as T5's."""

    needed = (("<pad>",), ("</s>",))


class Seq2SeqTokenizer:
    """Tokenizer of encoder-decoder models: a text to ids, with special tokens around it, and back.

    Args:
        vocab_file: str or None. Byte-level BPE, a `vocab.json` with `merges.txt` beside it; or a
            `tokenizer.json` or fairseq's `sentencepiece.bpe.model`, which have all tokens. Ignored
            with `spm_model_file`.
        spm_model_file: str or None. A SentencePiece model of another name.
        id_offset: int. Added to the ids of sentence pieces above 1, which PEGASUS-X puts behind its
            own tokens: 103 for the released models. These are `<mask_1>`, `<mask_2>`, `<unk_2>`,
            `<unk_3>`, …
        extra_ids: int. The number of T5's tokens behind the sentence pieces, the last one
            `<extra_id_0>`.
    Attributes:
        special_ids: dict. The ids of all tokens that a text may contain by name, for sentence
            pieces: those of the system, and added ones.
        of_system: dict. The ids of the system's own tokens by name, for sentence pieces.
        own: the `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer` of the file.
    Raises:
        ValueError: naming the file, if it is not such a vocabulary, has no padding or end token, or
            is not a SentencePiece model and `id_offset` or `extra_ids` is given.
    """

    split_punctuation = False

    def __init__(self, vocab_file=None, spm_model_file=None, id_offset=0, extra_ids=0):
        self.id_offset, self.extra_ids = id_offset, extra_ids
        if spm_model_file:
            self.own = tokenization.FullTokenizer(None, spm_model_file=spm_model_file, added=())
            self.sp_model, self.vocab = self.own.sp_model, self.own.vocab
            self.pad_id, self.eos_id = max(self.sp_model.pad_id(), 0), self.sp_model.eos_id()
            self._around = ([], [self.eos_id])
            if self.eos_id < 0:
                raise ValueError(f"{str(spm_model_file)!r} has no end token `</s>`.")
            self.of_system = self._special_ids()
            self._set_added(added_tokens.AddedTokens(self._beside()))
        else:
            if not processor_files.is_byte_level(vocab_file):
                raise ValueError(
                    "The vocabulary of summaries must be byte-level BPE, `tokenizer.json` or "
                    "`vocab.json` with `merges.txt`, or a SentencePiece model (--spm_model_file). "
                    f"Received: {os.path.basename(str(vocab_file))!r}"
                )
            if id_offset or extra_ids:
                raise ValueError(
                    "`piece_id_offset` is for sentence pieces (--spm_model_file). Leave it out for "
                    f"{str(vocab_file)!r}. Received: {id_offset or extra_ids}"
                )
            self.own, self.sp_model = _OfFile.of_file(str(vocab_file)), None
            self.added, self.of_system = self.own.added, self.own.of_system
            start, self.pad_id, self.eos_id = map(self.own.vocab.get, ("<s>", "<pad>", "</s>"))
            self._around = self.own.around()
            if self.eos_id not in self._around[1]:
                self._around = ([] if start is None else [start], [self.eos_id])
        self.vocab, self.source_file = self.own.vocab, self.own.source_file

    def _beside(self):
        """The tokens of files beside the sentence pieces, besides the system's own ones."""
        pieces = self.vocab.items()
        ids = {
            name: self._shifted(x) for name, x in pieces if name not in self.of_system
        } | self.of_system
        found = added_tokens.beside(self.own.source_file, ids)
        return [x for x in found if x.content not in self.of_system]

    def _set_added(self, added):
        self.added = added
        self.special_ids = {**self.of_system, **added.ids}
        of_words = {x.content for x in added.tokens if x.single_word}
        names = sorted(self.special_ids, key=len, reverse=True)
        names = [added_tokens.pattern_of(x, x in of_words) for x in names]
        self._splits = re.compile(f"({'|'.join(names)})")

    def add_tokens(self, tokens, special_tokens=False):
        """Adds tokens that are then not split: see `tokenization.FullTokenizer.add_tokens`."""
        if self.sp_model is None:
            number = self.own.add_tokens(tokens, special_tokens)
            self.added, self.vocab = self.own.added, self.own.vocab
            return number
        names, before = added_tokens.checked(tokens), self.vocab_size
        ids = {name: self._shifted(x) for name, x in self.vocab.items()} | self.special_ids
        self._set_added(self.added.with_more(names, special_tokens, ids, before))
        return self.vocab_size - before

    @property
    def vocab_size(self):
        """int: all ids are below it."""
        if self.sp_model is None:
            return 1 + max(self.vocab.values())
        return max([self._num_own - 1, *self.added.ids.values()]) + 1

    @property
    def _num_own(self):
        """int. The number of sentence pieces and of the system's own tokens."""
        return len(self.vocab) + self.id_offset + self.extra_ids

    @property
    def num_around(self):
        """int: the number of special tokens around every text."""
        return sum(map(len, self._around))

    def check_model(self, config):
        """Checks that the ids match a model's config.

        Raises:
            ValueError: if the model has fewer ids, or another padding or end token.
        """
        if self.vocab_size > config.vocab_size:
            raise ValueError(
                f"The vocabulary {self.source_file} has ids up to {self.vocab_size - 1}, the "
                f"model's `vocab_size` is {config.vocab_size}."
            )
        for entry, ours in (("pad_token_id", self.pad_id), ("eos_token_id", self.eos_id)):
            if (theirs := getattr(config, entry)) != ours:
                raise ValueError(
                    f"The model's `{entry}` is {theirs}, that of the vocabulary "
                    f"{self.source_file} {ours}."
                )

    def encode(self, text, max_length):
        """Returns the ids of a text, truncated at its end if it is too long.

        Args:
            text: str.
            max_length: int, at least `num_around`, or None for no limit. The most ids, including
                those around the text.
        Returns:
            (list of int; int, how many tokens of the text were truncated).
        """
        ids = self._ids(text)
        room = len(ids) if max_length is None else max_length - self.num_around
        first, last = self._around
        return [*first, *ids[:room], *last], max(0, len(ids) - room)

    def _ids(self, text):
        if self.sp_model is None:
            ((ids, _),) = self.own.pieces_of([text])
            return list(ids)
        parts = self._splits.split(characters.replace_surrogates(text))
        ids = []
        for pieces, special in zip(parts[::2], [*parts[1::2], None], strict=True):
            ids += map(self._shifted, self.sp_model.EncodeAsIds(pieces))
            ids += [] if special is None else [self.special_ids[special]]
        return ids

    def _shifted(self, piece):
        return piece + self.id_offset if piece > 1 else piece

    def _special_ids(self):
        """The ids of special tokens that a text may contain by name: dict."""
        own = {self.eos_id, max(self.sp_model.pad_id(), 0), self.sp_model.unk_id()}
        found = {self.sp_model.IdToPiece(x): self._shifted(x) for x in own}
        if self.id_offset:
            names = ["<mask_1>", "<mask_2>", *(f"<unk_{x}>" for x in range(2, self.id_offset))]
            found |= {name: index for index, name in enumerate(names[: self.id_offset], 2)}
        last = self._num_own - 1
        return found | {f"<extra_id_{x}>": last - x for x in range(self.extra_ids)}

    def token(self, index):
        """Returns the token of an id: str; "<unused>" if there is none."""
        if self.sp_model is None:
            return self.own.inv_vocab.get(int(index), "<unused>")
        for name, special in self.special_ids.items():
            if special == index:
                return name
        piece = int(index) - self.id_offset
        return self.sp_model.IdToPiece(piece) if 1 < piece < len(self.vocab) else "<unused>"

    def decode(self, ids):
        """Decodes ids to text, without special tokens, unknown ones and ids without a piece.

        Raises:
            ValueError: if an id is negative: see `vocabulary.known_ids`.
        """
        if self.sp_model is None:
            special = (self.pad_id, self.eos_id, self.own.vocab.get("<unk>"))
            known = vocabulary.known_ids(ids, self.own.inv_vocab)
            known = [x for x in known if x not in special]
            text = self.own.decode(known, skip_special_tokens=True)
            # Like a SentencePiece model, which keeps the spaces at the end.
            return text.lstrip(" ") if self.own.is_of_pieces else text.strip()
        left_out = (self.eos_id, self.sp_model.unk_id())
        with_piece = range(2 + self.id_offset, self._num_own - self.extra_ids)
        added = {x.id: x.content for x in self.added.tokens if not x.special}
        texts, pieces = [], []
        for index in vocabulary.known_ids(ids, {*with_piece, *added}):
            if index in added:
                texts += [self.sp_model.DecodeIds(pieces), added[index]]
                pieces = []
            elif (piece := index - self.id_offset) not in left_out:
                pieces.append(piece)
        return " ".join(filter(None, [*texts, self.sp_model.DecodeIds(pieces)]))

    def source_sha256(self):
        """Returns a hexadecimal digest of the vocabulary's files, equal for equal vocabularies."""
        if self.sp_model is None:
            return self.own.source_sha256()
        return tokenization.digest(self.source_file, self.added.tokens)
