"""The options of the features for summarization."""

import dataclasses

from etcmodel.options import FeatureOptions, Options, changed, option

__all__ = ["SummarizationFeatureOptions", "SummarizationInputConfig", "check_punctuation"]


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
        "Offset added to SentencePiece ids above 1: 103 for PEGASUS and PEGASUS-X.",
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
    """Settings of `examples.make_features`."""


def check_punctuation(options):
    """Raises ValueError if `split_punctuation` is set, which these vocabularies do not support."""
    if options.split_punctuation:
        raise ValueError("`split_punctuation` must be left out: it is for encoders alone.")
