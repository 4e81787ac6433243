"""Turns texts into batches for LongT5 and PEGASUS, and what they generate into texts."""

import dataclasses
import os

import numpy as np
from absl import logging

from etcmodel import atomic_files, bounded_json, file_systems, shown_values
from etcmodel.text import (
    byte_bpe,
    documents,
    explanation,
    fairseq_pieces,
    processor_files,
    readers,
    vocabulary,
)
from etcmodel.text.encoding import Cut
from etcmodel.text.examples import ReadsExamples
from etcmodel.text.processor_config import CONFIG_FILENAME
from etcmodel.text.seq2seq_tokenizer import Seq2SeqTokenizer
from etcmodel.text.truncation import CutTotals

__all__ = ["IGNORED_LABEL", "Seq2SeqBatch", "Seq2SeqProcessor", "as_texts"]

IGNORED_LABEL = -100
_OF_OTHERS = (byte_bpe.TOKENIZER_FILE, "tokenizer_config.json", "special_tokens_map.json")
_VOCABULARIES = (processor_files.SENTENCE_PIECES, byte_bpe.TOKENIZER_FILE, fairseq_pieces.FILE_NAME)
_MOST = {"id_offset": 1 << 20, "extra_ids": 1 << 20, "pad_to_multiple_of": 1 << 16}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seq2SeqProcessorConfig:
    """Settings of `Seq2SeqProcessor`, saved in `processor_config.json`.

    Attributes:
        max_length: int or None. The most tokens of a text, including its end token; longer ones are
            truncated at the end, before that token.
        max_target_length: int or None. Likewise for a target.
        id_offset: int. Added to the ids of sentence pieces above 1: 103 for PEGASUS-X, 0 for
            LongT5 and BigBird-Pegasus. See `Seq2SeqTokenizer`.
        extra_ids: int. The number of T5's tokens `<extra_id_0>`, … after the last piece: 100 for
            the released LongT5s.
        pad_to_multiple_of: int. The lengths of a batch are rounded up to it.
    Raises:
        ValueError: naming the setting and its value.
    """

    max_length: int | None = None
    max_target_length: int | None = None
    id_offset: int = 0
    extra_ids: int = 0
    pad_to_multiple_of: int = 1

    def __post_init__(self):
        least = {"max_length": 1, "max_target_length": 1, "id_offset": 0, "extra_ids": 0}
        for name, number in {**least, "pad_to_multiple_of": 1}.items():
            value = getattr(self, name)
            is_open = value is None and name.startswith("max_")
            if not is_open and (type(value) is not int or value < number):
                raise ValueError(
                    f"`{name}` must be an int of at least {number}. Received: "
                    f"{shown_values.shown(value)}"
                )
            if not is_open and value > (most := _MOST.get(name, bounded_json.MAX_INT)):
                raise ValueError(
                    f"`{name}` must be at most {most}. Received: {shown_values.shown(value)}"
                )


class Seq2SeqBatch(dict):
    """A batch: int32 `input_ids`, `attention_mask` [batch, length]; `labels` [batch, target].

    There are labels if targets are given; they are -100 behind the end of a target, which losses
    ignore.

    Attributes:
        num_cut: tuple of int. How many tokens of each text were truncated.
        num_target_cut: tuple of int. Likewise for each target; () without targets.
        encodings: tuple of the examples of `Seq2SeqProcessor.make_batch`, for `label_targets`.
    """

    # TensorFlow creates an empty one and fills a copy with tensors, for a model's call.
    def __init__(self, features=(), num_cut=(), num_target_cut=(), encodings=()):
        super().__init__(features)
        self.num_cut, self.num_target_cut = tuple(num_cut), tuple(num_target_cut)
        self.encodings = tuple(encodings)

    @property
    def long_shape(self):
        return self["input_ids"].shape


@dataclasses.dataclass(frozen=True)
class _Encoded:
    """What `encoding.Encoding` tells of an example that is one row."""

    example: int
    document: documents.Document
    ids: list
    cut: Cut
    window: int = 0

    source = property(lambda self: self)


class Seq2SeqProcessor(ReadsExamples):
    """Processor for LongT5, PEGASUS-X and BigBird-Pegasus: texts to batches, and ids to texts.

    A text becomes its sentence pieces and the end token, as in Hugging Face's tokenizers of T5 and
    PEGASUS. No token of a text is chosen as global: LongT5's blocks, PEGASUS-X's learned global
    tokens and BigBird-Pegasus's first and last block are the model's.

    Args:
        vocab: str, the path of a SentencePiece model, or of the `tokenizer.json` that Hugging
            Face's library derives from one, whose ids already include `id_offset` and `extra_ids`;
            so do those of a `sentencepiece.bpe.model` of XLM-RoBERTa or CamemBERT.
        **settings: fields of `Seq2SeqProcessorConfig`.
    Raises:
        ValueError: if a setting is invalid, or the file is damaged.

    >>> processor = etcmodel.Seq2SeqProcessor("spiece.model", max_length=4096)
    >>> batch = processor(["The river is long."], targets=["A river."])
    >>> batch["input_ids"].shape, batch["labels"].shape
    ((1, 7), (1, 4))
    >>> processor.decode(batch["input_ids"][0])
    'The river is long.'
    """

    config_class = Seq2SeqProcessorConfig

    def __init__(self, vocab, **settings):
        self.config = self.config_class(**settings)
        vocab = os.fspath(vocab)
        is_whole = byte_bpe.ByteLevelTokenizer.is_whole(vocab)
        self.tokenizer = Seq2SeqTokenizer(
            **{"vocab_file" if is_whole else "spm_model_file": vocab},
            id_offset=self.config.id_offset,
            extra_ids=self.config.extra_ids,
        )

    @property
    def vocab_size(self):
        """int: all ids are below it."""
        return self.tokenizer.vocab_size

    def add_tokens(self, tokens, special_tokens=False):
        """Adds tokens to the vocabulary: see `EtcProcessor.add_tokens`.

        >>> processor = etcmodel.Seq2SeqProcessor("spiece.model")
        >>> processor.add_tokens(["[ent]"])
        1
        >>> processor.decode(processor("The [ent] river.")["input_ids"][0])
        'The [ent] river.'
        """
        return self.tokenizer.add_tokens(tokens, special_tokens)

    @classmethod
    def from_pretrained(cls, folder, **settings):
        """Loads a processor from `save_pretrained`'s folder, or one with a vocabulary.

        The vocabulary is a `spiece.model` or, without one, a `tokenizer.json` or a
        `sentencepiece.bpe.model`.

        Raises:
            ValueError: naming the folder or the file.

        >>> etcmodel.Seq2SeqProcessor("spiece.model").save_pretrained("processor")
        >>> etcmodel.Seq2SeqProcessor.from_pretrained("processor", max_length=512).config.max_length
        512
        """
        return processor_files.of_folder(cls, folder, settings)

    @classmethod
    def of_model(cls, folder, config, own_tokens=None):
        """Creates a model's processor from its folder, with a vocabulary but no processor settings.

        Args:
            folder: str.
            config: the model's config.
            own_tokens: (setting, entry, number): the setting for the number of the system's own
                tokens besides the sentence pieces, the entry of `tokenizer_config.json` with that
                number, and the default; None for a system without such tokens.
        Raises:
            ValueError: see `from_pretrained`; also if there are more tokens than the model has.
        """
        own, counted = {}, ""
        vocab = cls.vocabulary_file(folder)
        if own_tokens and not byte_bpe.ByteLevelTokenizer.is_whole(vocab):
            setting, entry, usual = own_tokens
            own = {setting: processor_files.foreign_entries(folder).get(entry, usual)}
            counted = f" and {own[setting]} tokens of its own ({entry})"
        processor = cls.from_pretrained(folder, **own)
        if processor.vocab_size > config.vocab_size:
            raise ValueError(
                f"its vocabulary{counted} are {processor.vocab_size} tokens, more than the model's "
                f"{config.vocab_size}."
            )
        return processor

    @staticmethod
    def vocabulary_file(folder):
        """Returns the path of the vocabulary in a folder.

        Raises:
            ValueError: naming the folder, if there is none.
        """
        found = [name for name in _VOCABULARIES if processor_files.is_there(folder, name)]
        if not found:
            raise ValueError(f"{str(folder)!r} holds none of {', '.join(_VOCABULARIES)}.")
        return os.path.join(folder, found[0])

    @staticmethod
    def foreign_settings(folder):
        """Returns the settings in another library's files: none."""
        return {}

    def save_pretrained(self, folder):
        """Saves the vocabulary and the settings to a folder, which is created if needed.

        Files that Hugging Face's library reads beside the vocabulary are copied, too.

        >>> etcmodel.Seq2SeqProcessor("spiece.model", max_length=512).save_pretrained("processor")
        >>> sorted(tf.io.gfile.listdir("processor"))
        ['processor_config.json', 'spiece.model']
        """
        source = os.path.dirname(self.tokenizer.source_file)
        with atomic_files.scratch_folder(os.path.join(folder, CONFIG_FILENAME)) as scratch:
            for name in _OF_OTHERS:
                if processor_files.is_there(source, name):
                    content = vocabulary.read_bytes(os.path.join(source, name))
                    vocabulary.write_bytes(os.path.join(scratch, name), content)
            written = processor_files.save_vocabulary(scratch, self.tokenizer)
            settings = dataclasses.asdict(self.config)
            if written != processor_files.SENTENCE_PIECES:  # An earlier one may be in the folder.
                settings[processor_files.VOCAB_FILE] = written
            atomic_files.write_json(os.path.join(scratch, CONFIG_FILENAME), settings)
            names = file_systems.file_system(scratch).names(scratch)
            stale = processor_files.stale_files(folder, names, self.tokenizer)
            atomic_files.move_all(scratch, CONFIG_FILENAME, stale)

    def __call__(self, texts, targets=None):
        """Makes the batch of one or several texts.

        Args:
            texts: list of str, or one str; without targets also of dicts with one text, such as
                `{"text": …}`.
            targets: list of str, one str, or None: the texts to generate, of which labels are made.
        Returns:
            `Seq2SeqBatch`. What was truncated is logged in one line.
        Raises:
            ValueError: naming the argument, if it is not text, or the number of targets differs.

        >>> processor = etcmodel.Seq2SeqProcessor("spiece.model")
        >>> batch = processor(["The river is long.", "It is."], targets=["A river.", "It."])
        >>> {name: array.shape for name, array in batch.items()}
        {'input_ids': (2, 7), 'attention_mask': (2, 7), 'labels': (2, 4)}
        """
        is_list = isinstance(texts, (list, tuple))
        if targets is None and is_list and any(isinstance(x, dict) for x in texts):
            totals = CutTotals()
            named = ((f"`texts[{place}]`", text) for place, text in enumerate(texts))
            batch = self.make_batch(named, None, totals)
            totals.log()
            return batch
        found = self._encoded(as_texts("texts", texts), self.config.max_length)
        num_cut, num_target_cut = [cut for _, cut in found], ()
        features = self._features(found)
        if targets is not None:
            targets = as_texts("targets", targets)
            if len(targets) != len(texts):
                raise ValueError(f"There are {len(texts)} `texts` and {len(targets)} `targets`.")
            found = self._encoded(targets, self.config.max_target_length)
            features["labels"], _ = self._padded(found, IGNORED_LABEL)
            num_target_cut = [cut for _, cut in found]
        for name, cut in (("texts", num_cut), ("targets", num_target_cut)):
            if any(cut):
                logging.warning(
                    "Cut: %d of %d %s, %d tokens.",
                    np.count_nonzero(cut),
                    len(cut),
                    name,
                    sum(cut),
                )
        return Seq2SeqBatch(features, num_cut, num_target_cut)

    def make_batch(self, named, settings, totals):
        """See `ReadsExamples`: each example is one text, such as a row with a label to learn."""
        if settings:
            fail = f"{type(self).__name__} takes no `settings` for a call. Received: "
            raise ValueError(fail + shown_values.shown(settings))
        encodings = []
        for number, (where, example) in enumerate(named):
            document = readers.read(example, lambda text: [text], where)
            if len(document.texts) != 1:
                raise ValueError(
                    f"{where} must have one text. Received: {', '.join(document.text_names)}"
                )
            ((ids, cut),) = self._encoded(document.texts, self.config.max_length)
            encodings.append(_Encoded(number, document, ids, Cut(cut)))
        totals.add(encodings)
        found = [(x.ids, x.cut.num_tokens) for x in encodings]
        return Seq2SeqBatch(self._features(found), [cut for _, cut in found], (), encodings)

    def _encoded(self, texts, limit):
        """(ids, number of truncated tokens) of each text."""
        return [self.tokenizer.encode(text, limit) for text in texts]

    def _features(self, found):
        ids, mask = self._padded(found, self.tokenizer.pad_id)
        return {"input_ids": ids, "attention_mask": mask}

    def _padded(self, found, padding):
        """(ids, mask) of what `_encoded` returns."""
        longest, multiple = max(len(ids) for ids, _ in found), self.config.pad_to_multiple_of
        shape = [len(found), -(-longest // multiple) * multiple]
        rows, mask = np.full(shape, padding, np.int32), np.zeros(shape, np.int32)
        for row, (ids, _) in enumerate(found):
            rows[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        return rows, mask

    def explain(self, batch, example=0, *, config, tokens=None, blocks=None):
        """Explains what the encoder gets of a text: which tokens attend to which, which are global.

        Args:
            batch: `Seq2SeqBatch`.
            example: int. Index of the text among those given to the processor.
            config: `LongT5Config`, `PegasusXConfig`, or a model with one.
            tokens: range or list of int. The tokens to show; None for all.
            blocks: range or list of int, instead of `tokens`: the blocks of the attention to show.
        Returns:
            `explanation.RowExplanation`: `print` it, call `why(3, 600)`, or `save` its picture.
        Raises:
            ValueError: if there is no such text, token or block, or the config is another model's.

        >>> processor = etcmodel.Seq2SeqProcessor("spiece.model")
        >>> config = etcmodel.LongT5Config()
        >>> print(processor.explain(processor("The river is long."), config=config).why(2, 4))
        2 '▁river' attends to 4 '▁long': 2 places apart, within the radius of 127.
        """
        ids, mask = (np.asarray(batch[name]) for name in ("input_ids", "attention_mask"))
        if not 0 <= example < len(ids):
            raise ValueError(f"The batch has {len(ids)} texts, counted from 0, and no {example}.")
        pieces = [self.tokenizer.token(x) for x in ids[example][mask[example] > 0]]
        explained = explanation.of_seq2seq(batch, pieces, example, config)
        return explained.zoomed(tokens, blocks)

    def decode(self, ids):
        """Decodes ids, such as a row of `generate`'s sequences, to text without special tokens.

        Args:
            ids: sequence of int.

        >>> processor = etcmodel.Seq2SeqProcessor("spiece.model")
        >>> processor.decode(processor("The river is long.")["input_ids"][0])
        'The river is long.'
        """
        return self.tokenizer.decode(ids)


def as_texts(name, texts):
    """Returns a list of str from a text or a list; ValueError naming the argument for others."""
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, (list, tuple)) or not texts:
        raise ValueError(f"`{name}` must be a text or a list of texts. Received: {texts!r}")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"`{name}[{place}]` must be a str. Received: {text!r}")
    return texts
