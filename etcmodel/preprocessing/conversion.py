"""The base of converters, which turn one raw example into features in a worker."""

import abc
import dataclasses

from etcmodel.text import processor_files, vocabulary_files


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConverterFactory(abc.ABC):
    """Makes the converter of a `preprocessing.Job`; small enough to send to each worker.

    A task's subclass sets `task` and `input_class`, and implements `convert`. When its features
    change, increase `format_version` here and in its `RecordConfig`, which rejects other versions.

    Attributes:
        vocab_file, spm_model_file: str. The latter takes precedence; '' for none.
        do_lower_case: bool. Lower-case the text; WordPiece only.
        fields: dict. Arguments of the task's input configuration.
        split_punctuation: bool. For SentencePiece; see `tokenization.FullTokenizer`.
        input_class: dataclass of the task's feature settings.
        read: function that takes a path and yields raw examples, for `program.parts_beside`.

    >>> from etcmodel.tasks.classification.features import ConverterFactory
    >>> fields = {"labels": ("neg", "pos"), "long_seq_length": 16, "global_seq_length": 4}
    >>> files = {"vocab_file": "vocab.txt", "spm_model_file": ""}
    >>> factory = ConverterFactory(**files, do_lower_case=True, fields=fields)
    >>> factory.settings()["tokenizer"]
    'wordpiece'
    """

    vocab_file: str
    spm_model_file: str
    do_lower_case: bool
    fields: dict
    split_punctuation: bool = False

    task = None
    input_class = None
    read = None
    format_version = 1
    deals_records = False  # See `preprocessing.Job`.
    line_files = ()  # Names of files for lines: `<prefix>_<name>.jsonl`.

    def input_config(self, tokenizer):
        """The task's feature settings, made from `fields`; subclasses check the tokenizer, too.

        Raises:
            ValueError: if the fields, or the tokenizer's vocabulary, do not fit.
        """
        if self.input_class is None:
            raise NotImplementedError(f"{type(self).__name__} needs an `input_class`.")
        return self.input_class(**self.fields)

    @abc.abstractmethod
    def convert(self, raw, config, tokenizer):
        """Converts a raw example (JSON-like dict) to a `preprocessing.Converted`.

        Raises:
            ValueError: naming the example, if it is malformed.
        """

    def __call__(self):
        tokenizer = self.tokenizer()
        config = self.input_config(tokenizer)
        return lambda raw: self.convert(raw, config, tokenizer)

    def tokenizer(self):
        """The tokenizer for the files: see `vocabulary_files.open_tokenizer`."""
        return vocabulary_files.open_tokenizer(
            self.vocab_file,
            self.spm_model_file,
            do_lower_case=self.do_lower_case,
            split_punctuation=self.split_punctuation,
        )

    def settings(self):
        """The settings that a program reading the records must agree with: dict.

        Raises:
            ValueError: if the files or the fields do not fit.
        """
        tokenizer = self.tokenizer()
        kind = "sentencepiece" if tokenizer.sp_model else "wordpiece"
        if not tokenizer.sp_model and processor_files.is_byte_level(self.vocab_file):
            kind = "byte_level_bpe"
        splitting = {"split_punctuation": True} if tokenizer.split_punctuation else {}
        return {
            "task": self.task,
            "format_version": self.format_version,
            **dataclasses.asdict(self.input_config(tokenizer)),
            "tokenizer": kind,
            "do_lower_case": self.do_lower_case and kind == "wordpiece",
            **splitting,
            "vocab_size": len(tokenizer.vocab),
            "vocab_sha256": tokenizer.source_sha256(),
        }


class ProcessorConverterFactory(ConverterFactory):
    """For tasks whose raw examples have a `place` and whose config makes a processor.

    The task's config has `make_processor`, and its `convert` gets a processor instead of a
    tokenizer.

    >>> from etcmodel.tasks.classification.features import ConverterFactory
    >>> fields = {"labels": ("neg", "pos"), "long_seq_length": 16, "global_seq_length": 4}
    >>> files = {"vocab_file": "vocab.txt", "spm_model_file": ""}
    >>> convert = ConverterFactory(**files, do_lower_case=True, fields=fields)()
    >>> convert({"place": "line 1", "id": "1", "text": "Good!", "label": "pos"}).lengths
    {'long_tokens': 4, 'global_tokens': 2, 'tokens_left_out': 0}
    """

    def input_config(self, tokenizer):
        config = super().input_config(tokenizer)
        config.make_processor(tokenizer)  # Raises an error if the vocabulary does not fit.
        return config

    def __call__(self):
        tokenizer = self.tokenizer()
        config = self.input_config(tokenizer)
        processor = config.make_processor(tokenizer)

        def convert(row):
            try:
                return self.convert(row, config, processor)
            except ValueError as error:
                raise ValueError(f"{row['place']}: {error}") from error

        return convert
