"""From texts to a batch for LongT5 and PEGASUS-X, and from what they generate to texts."""

import dataclasses
import os

import numpy as np
from absl import logging

from etcmodel import atomic_files, bounded_json, shown_values
from etcmodel.text import byte_bpe, explanation, processor_files, vocabulary
from etcmodel.text.processor_config import CONFIG_FILENAME, Configured
from etcmodel.text.seq2seq_tokenizer import Seq2SeqTokenizer

__all__ = ["IGNORED_LABEL", "Seq2SeqBatch", "Seq2SeqProcessor", "as_texts"]

IGNORED_LABEL = -100
_OF_OTHERS = (byte_bpe.TOKENIZER_FILE, "tokenizer_config.json", "special_tokens_map.json")
_VOCABULARIES = (processor_files.SENTENCE_PIECES, byte_bpe.TOKENIZER_FILE)
_MOST = {"id_offset": 1 << 20, "extra_ids": 1 << 20, "pad_to_multiple_of": 1 << 16}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seq2SeqProcessorConfig:
    """Settings, kept in `processor_config.json`.

    Attributes:
        max_length: int or None. The most tokens of a text, with its end token; what is longer is
            cut at its end, before that token.
        max_target_length: int or None. Likewise of a target.
        id_offset: int. What is added to the ids of sentence pieces above 1: 103 of PEGASUS-X, 0 of
            LongT5. See `Seq2SeqTokenizer`.
        extra_ids: int. T5's tokens `<extra_id_0>`, … after the last piece: 100 of the released
            LongT5s.
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
    """int32 `input_ids`, `attention_mask` [batch, length]; with targets `labels` [batch, target].

    Labels are -100 where a target has ended, which counts for no loss.

    Attributes:
        num_cut: tuple of int. How many tokens of each text were left out.
        num_target_cut: tuple of int. Likewise of each target; () without targets.
    """

    # TensorFlow makes an empty one, of which it makes a copy with tensors, for a model's call.
    def __init__(self, features=(), num_cut=(), num_target_cut=()):
        super().__init__(features)
        self.num_cut, self.num_target_cut = tuple(num_cut), tuple(num_target_cut)


class Seq2SeqProcessor(Configured):
    """Texts in, tensors out, and back: for `LongT5Model` and `PegasusXForConditionalGeneration`.

    A text is its sentence pieces and the end token, as Hugging Face's tokenizers of T5 and PEGASUS
    make them. No token of a text is global: blocks of LongT5 and the learned global tokens of
    PEGASUS-X are made in the model.

    Args:
        vocab: str, the path of a SentencePiece model, or of the `tokenizer.json` that Hugging
            Face's library makes of one, which has `id_offset` and `extra_ids` in its ids already.
        **settings: fields of `Seq2SeqProcessorConfig`.
    Raises:
        ValueError: if a setting cannot be, or the file is damaged.

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
        is_whole = os.path.basename(vocab) == byte_bpe.TOKENIZER_FILE
        self.tokenizer = Seq2SeqTokenizer(
            **{"vocab_file" if is_whole else "spm_model_file": vocab},
            id_offset=self.config.id_offset,
            extra_ids=self.config.extra_ids,
        )

    @property
    def vocab_size(self):
        """int: all ids are below it."""
        return self.tokenizer.vocab_size

    @classmethod
    def from_pretrained(cls, folder, **settings):
        """Reads what `save_pretrained` wrote, or a folder with a vocabulary.

        That is a `spiece.model` or, without one, a `tokenizer.json`.

        Raises:
            ValueError: naming the folder or the file.

        >>> etcmodel.Seq2SeqProcessor("spiece.model").save_pretrained("processor")
        >>> etcmodel.Seq2SeqProcessor.from_pretrained("processor", max_length=512).config.max_length
        512
        """
        atomic_files.settle(folder)
        path, given = os.path.join(folder, CONFIG_FILENAME), {}
        if processor_files.is_there(folder, CONFIG_FILENAME):
            given = bounded_json.load_object(vocabulary.read_bytes(path), path)
        named = processor_files.named_file(folder, given)
        known = {field.name for field in dataclasses.fields(Seq2SeqProcessorConfig)}
        if unknown := sorted(set(given) - known):
            raise ValueError(
                f"{path}: unknown settings of a processor: {shown_values.named(unknown)}"
            )
        vocab = named or cls.vocabulary_file(folder)
        try:
            return cls(vocab, **{**given, **settings})
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def of_model(cls, folder, config, own_tokens=None):
        """A processor for a model, of its folder, which has a vocabulary and no settings of one.

        Args:
            folder: str.
            config: the model's config.
            own_tokens: (setting, entry, number): the setting that counts the system's own tokens
                beside the sentence pieces, the entry of `tokenizer_config.json` that says their
                number, and the number without that; None for a system without such tokens.
        Raises:
            ValueError: see `from_pretrained`; if there are more tokens than the model has.
        """
        own, counted = {}, ""
        if own_tokens and not cls.vocabulary_file(folder).endswith(byte_bpe.TOKENIZER_FILE):
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
        """The path of the vocabulary in a folder.

        Raises:
            ValueError: naming the folder, if there is none.
        """
        found = [name for name in _VOCABULARIES if processor_files.is_there(folder, name)]
        if not found:
            raise ValueError(f"{str(folder)!r} holds none of {', '.join(_VOCABULARIES)}.")
        return os.path.join(folder, found[0])

    def save_pretrained(self, folder):
        """Writes the vocabulary and the settings into a folder, made if need be.

        What Hugging Face's library reads beside the vocabulary is taken along.

        >>> etcmodel.Seq2SeqProcessor("spiece.model", max_length=512).save_pretrained("processor")
        >>> sorted(tf.io.gfile.listdir("processor"))
        ['processor_config.json', 'spiece.model']
        """
        source = os.path.dirname(self.tokenizer.source_file)
        with atomic_files.scratch_folder(os.path.join(folder, CONFIG_FILENAME)) as scratch:
            written = processor_files.save_vocabulary(scratch, self.tokenizer)
            for name in _OF_OTHERS:
                if processor_files.is_there(source, name):
                    content = vocabulary.read_bytes(os.path.join(source, name))
                    vocabulary.write_bytes(os.path.join(scratch, name), content)
            settings = dataclasses.asdict(self.config)
            if written != processor_files.SENTENCE_PIECES:  # One of before may lie in the folder.
                settings[processor_files.VOCAB_FILE] = written
            atomic_files.write_json(os.path.join(scratch, CONFIG_FILENAME), settings)
            atomic_files.move_all(scratch, CONFIG_FILENAME)

    def __call__(self, texts, targets=None):
        """The batch of one or several texts.

        Args:
            texts: list of str, or one str.
            targets: of the same form, or None: what is to be written, of which the labels are made.
        Returns:
            `Seq2SeqBatch`. What was cut is logged in one line.
        Raises:
            ValueError: naming the argument, if it is no text, or there are not as many targets.

        >>> processor = etcmodel.Seq2SeqProcessor("spiece.model")
        >>> batch = processor(["The river is long.", "It is."], targets=["A river.", "It."])
        >>> {name: array.shape for name, array in batch.items()}
        {'input_ids': (2, 7), 'attention_mask': (2, 7), 'labels': (2, 4)}
        """
        texts = as_texts("texts", texts)
        ids, mask, num_cut = self._padded(texts, self.config.max_length, self.tokenizer.pad_id)
        features, num_target_cut = {"input_ids": ids, "attention_mask": mask}, ()
        if targets is not None:
            targets = as_texts("targets", targets)
            if len(targets) != len(texts):
                raise ValueError(f"There are {len(texts)} `texts` and {len(targets)} `targets`.")
            found = self._padded(targets, self.config.max_target_length, IGNORED_LABEL)
            features["labels"], _, num_target_cut = found
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

    def _padded(self, texts, limit, padding):
        """(ids, mask, numbers of tokens that were cut)."""
        found = [self.tokenizer.encode(text, limit) for text in texts]
        longest, multiple = max(len(ids) for ids, _ in found), self.config.pad_to_multiple_of
        shape = [len(found), -(-longest // multiple) * multiple]
        rows, mask = np.full(shape, padding, np.int32), np.zeros(shape, np.int32)
        for row, (ids, _) in enumerate(found):
            rows[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        return rows, mask, [cut for _, cut in found]

    def explain(self, batch, example=0, *, config, tokens=None, blocks=None):
        """What a model's encoder is told of a text: what is global and why, who sees whom.

        Args:
            batch: `Seq2SeqBatch`.
            example: int. Which of the texts that the processor was given.
            config: `LongT5Config`, `PegasusXConfig`, or a model with one.
            tokens: range or list of int. The tokens that are shown; None for all.
            blocks: range or list of int, instead: the blocks of the attention that are shown.
        Returns:
            `explanation.RowExplanation`: `print` it, ask it `why(3, 600)`, `save` its picture.
        Raises:
            ValueError: if there is no such text, token or block, or the config is of another model.

        >>> processor = etcmodel.Seq2SeqProcessor("spiece.model")
        >>> config = etcmodel.LongT5Config()
        >>> print(processor.explain(processor("The river is long."), config=config).why(2, 4))
        2 '▁river' sees 4 '▁long': 2 places apart, within the radius of 127.
        """
        ids, mask = (np.asarray(batch[name]) for name in ("input_ids", "attention_mask"))
        if not 0 <= example < len(ids):
            raise ValueError(f"The batch has {len(ids)} texts, counted from 0, and no {example}.")
        pieces = [self.tokenizer.token(x) for x in ids[example][mask[example] > 0]]
        explained = explanation.of_seq2seq(batch, pieces, example, config)
        return explained.zoomed(tokens, blocks)

    def decode(self, ids):
        """The text of ids, such as a row of `generate`'s sequences, without special tokens.

        Args:
            ids: sequence of int.

        >>> processor = etcmodel.Seq2SeqProcessor("spiece.model")
        >>> processor.decode(processor("The river is long.")["input_ids"][0])
        'The river is long.'
        """
        return self.tokenizer.decode(ids)


def as_texts(name, texts):
    """A text or a list of texts as a list of str; ValueError naming the argument if it is none."""
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, (list, tuple)) or not texts:
        raise ValueError(f"`{name}` must be a text or a list of texts. Received: {texts!r}")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"`{name}[{place}]` must be a str. Received: {text!r}")
    return texts
