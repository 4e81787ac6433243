"""The options of features, and of a run besides the training options."""

import dataclasses

from etcmodel import finetuning, options
from etcmodel.options import FeatureOptions, Options, changed, option

__all__ = [
    "GenerationOptions",
    "SummarizationConfig",
    "SummarizationFeatureOptions",
    "SummarizationInputConfig",
    "check_punctuation",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizationFeatureOptions(Options):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(
        FeatureOptions,
        "long_seq_length",
        default=4096,
        lower_bound=3,
        help_text=(
            "Maximum length of a document in tokens, including special tokens; longer documents "
            "are cut."
        ),
    )
    global_seq_length: int = changed(
        FeatureOptions, "global_seq_length", help_text="No effect: this task has no global tokens."
    )
    release_compatible: bool = changed(
        FeatureOptions,
        "release_compatible",
        help_text="No effect: this task is not in the authors' release.",
    )
    target_length: int = option(
        512,
        "Maximum length of a summary in tokens, including special tokens; longer training "
        "summaries are cut.",
        role="features",
        lower_bound=3,
    )
    piece_id_offset: int = option(
        0,
        "Offset added to SentencePiece ids above 1: 103 for PEGASUS and PEGASUS-X. The folder "
        "--init_checkpoint tells it.",
        role="features",
        lower_bound=0,
    )
    text_fields: tuple = option(
        ("article_text", "text", "document"),
        "Fields or columns with the document; the first one that an example has is used.",
        role="features",
    )
    summary_fields: tuple = option(
        ("abstract_text", "summary"),
        "Fields or columns with the summary; the first one that an example has is used.",
        role="features",
    )
    id_fields: tuple = option(
        ("article_id", "id"),
        "Fields or columns with the id; the first one that an example has is used. Without any, "
        "the id is the file name and line number.",
        role="features",
    )

    def __post_init__(self):
        super().__post_init__()
        for name in ("text_fields", "summary_fields"):
            if not all(getattr(self, name) or ("",)):
                raise ValueError(f"`{name}` must name fields. Received: {getattr(self, name)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizationInputConfig(SummarizationFeatureOptions, FeatureOptions):
    """Settings of `features.make_features`."""


def check_punctuation(options):
    """Raises ValueError if `split_punctuation` is set, which these vocabularies do not support."""
    if options.split_punctuation:
        raise ValueError("`split_punctuation` must be left out: it is for encoders alone.")


_OF_MODEL = "None: the value in the checkpoint's generation_config.json, or else"
# Config entries that limit lengths; models without learned positions lack them.
_POSITIONS = {
    "long_seq_length": "max_encoder_position_embeddings",
    "target_length": "max_decoder_position_embeddings",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationOptions(options.Options):
    """Options of generation, named as in a model's `generate`."""

    num_beams: int | None = option(
        None, f"Number of beams; 1 for greedy search. {_OF_MODEL} 1.", role="decoding"
    )
    length_penalty: float | None = option(
        None,
        f"Exponent of the length that the scores of beams are divided by. {_OF_MODEL} 1.",
        role="decoding",
    )
    max_new_tokens: int | None = option(
        None,
        f"Maximum length of a summary, in tokens. {_OF_MODEL} --target_length.",
        role="decoding",
        lower_bound=1,
    )
    min_new_tokens: int | None = option(
        None,
        f"Minimum length of a summary, in tokens. {_OF_MODEL} 0.",
        role="decoding",
        lower_bound=0,
    )
    no_repeat_ngram_size: int | None = option(
        None,
        f"No n-gram of this size occurs twice in a summary; 0: no limit. {_OF_MODEL} 0.",
        role="decoding",
    )

    def __post_init__(self):
        super().__post_init__()
        least, most = self.min_new_tokens, self.max_new_tokens
        if None not in (least, most) and least > most:
            raise ValueError(
                f"`min_new_tokens` must be at most `max_new_tokens`. Received: {least}, {most}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizationConfig(
    SummarizationFeatureOptions,
    GenerationOptions,
    options.TableOptions,
    finetuning.FinetuningConfig,
):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "eval_gold": "None: the records of --eval_data have the summaries, too.",
        "input_file": "Raw file of the documents to summarize, in mode predict.",
        "predictions_file": "Where summaries go, a JSON object a line. None: predictions.json in "
        "--output_dir.",
        "vocab_file": "Byte-level BPE, for LED: tokenizer.json, or vocab.json with merges.txt "
        "beside it.",
        "do_lower_case": "No effect: texts are as they are.",
        "split_punctuation": "Must be left out: texts are split as their models were pretrained.",
    }
    not_needed = ("eval_gold",)
    input_class = SummarizationInputConfig
    records_hold = "summaries"

    not_of_evaluation = ("target_length", "text_fields", "summary_fields", "id_fields")

    label_smoothing: float = option(
        0.0,
        "Fraction of the labels' probability that the loss spreads over the vocabulary.",
        role="training",
        lower_bound=0,
        upper_bound=1,
    )
    batch_by_length: bool = option(
        False,
        "Group documents of similar length (in tokens) into training batches, which is cheaper "
        "when lengths vary a lot.",
        role="training",
    )

    def __post_init__(self):
        super().__post_init__()
        check_punctuation(self)
        entries = _POSITIONS
        if getattr(self.encoder_config, "model_type", None) == "bigbird_pegasus":
            entries = dict.fromkeys(_POSITIONS, "max_position_embeddings")  # No limit elsewhere.
        for name, entry in entries.items():
            limit = getattr(self.encoder_config, entry, None)
            if limit is not None and getattr(self, name) > limit:
                raise ValueError(
                    f"`{name}` must be at most the model's `{entry}`, {limit}. Received: "
                    f"{getattr(self, name)}"
                )

    def records(self):
        from . import task  # Imports TensorFlow, which takes seconds.

        return task.RecordConfig.of_run(self, skip_padding=self.batch_by_length)

    def generation(self):
        """The given options of generation: dict."""
        names = [field.name for field in options.option_fields(GenerationOptions)]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def model_config(self):
        """The model's config; the first token of an LED is global (Beltagy et al. 2020, 7.1)."""
        config = self.encoder_config
        if getattr(config, "global_positions", None) == ():
            return dataclasses.replace(config, global_positions=(0,))
        return config

    def tokenizer(self):
        from etcmodel.text.seq2seq_tokenizer import Seq2SeqTokenizer

        self.require_vocabulary()
        found = Seq2SeqTokenizer(self.vocab_file, self.spm_model_file, self.piece_id_offset)
        found.check_model(self.encoder_config)
        return found
