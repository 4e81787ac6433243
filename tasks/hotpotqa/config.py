"""The options of features, and of a run besides the training options."""

import dataclasses
import enum

from etcmodel import finetuning, options
from etcmodel.options import ANY_VOCABULARY, FeatureOptions, Options, changed, option
from etcmodel.text import vocabulary

__all__ = [
    "ANSWER_TYPES",
    "BIO_IDS",
    "DROP_REASONS",
    "MARKS",
    "MAX_NUM_PARAGRAPHS",
    "NO_ANSWER",
    "NO_SUPPORTING_FACT",
    "DecodingConfig",
    "HotpotQADecodingOptions",
    "HotpotQAExampleOptions",
    "HotpotQAFeatureOptions",
    "HotpotQAInputConfig",
    "HotpotQaConfig",
    "Kind",
]

ANSWER_TYPES = {"span": 0, "yes": 1, "no": 2}
BIO_IDS = {"begin": 0, "inside": 1, "outside": 2}
NO_SUPPORTING_FACT = "no_supporting_fact_in_input"
NO_ANSWER = "no_answer_in_input"
DROP_REASONS = (NO_SUPPORTING_FACT, NO_ANSWER)
MAX_NUM_PARAGRAPHS = 5  # Of the second stage; Longformer's.

# With `evidence_as="marks"`: the tokens around the question, around each title, and behind each
# sentence.
MARKS = ("[q]", "[/q]", "<t>", "</t>", "[s]")


class Kind(enum.IntEnum):
    """What a token is, with `evidence_as="marks"`: padding, a mark, or text.

    [CLS], the question and its marks are of one kind.
    """

    PADDING = 0
    QUESTION = 1
    TITLE = 2
    TITLE_END = 3
    TEXT = 4
    SENTENCE = 5


# The released SentencePiece vocabulary has no [unusedN] with low ids: other ids are used instead.
_SENTENCEPIECE_IDS = {
    "cls_token_id": 40,
    "question_global_token_id": 41,
    "paragraph_global_token_id": 43,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQAFeatureOptions(Options):
    """Options that features, records and model must agree on."""

    answer_encoding_method: str = option(
        "span",
        "How answers are predicted: by their first and last token (span), or by a begin, inside or "
        "outside tag for each token (bio).",
        role="features",
        choices=("span", "bio"),
    )
    num_word_edges: int = option(
        0,
        "Maximum number of edges of each kind between global tokens: between sentences and "
        "question tokens that share a word, and between a mention of a paragraph's title and that "
        "paragraph. The model needs four unused relative labels (relative_vocab_size), as the "
        "released models have. Not in the paper. 0: none.",
        role="features",
        lower_bound=0,
    )

    evidence_as: str = option(
        "global",
        "What the model scores as evidence: ETC's global tokens of paragraphs and sentences "
        "(global); or, with any encoder of one sequence, tokens in the text, <t> in front of each "
        "title and [s] behind each sentence, as in Longformer (marks).",
        role="features",
        choices=("global", "marks"),
    )
    max_num_paragraphs: int | None = option(
        None,
        "Most paragraphs of a question in the second stage. None: 5 with --first_stage, as in "
        "Longformer; else all, as in the first stage.",
        role="features",
        lower_bound=2,
    )
    paragraph_threshold: float = option(
        -3.0,
        "The second stage reads paragraphs whose score of the first, a logit, is higher than this, "
        "and at least two.",
        role="features",
    )

    @property
    def form(self):
        """The class in `forms` that `evidence_as` names."""
        from . import forms  # Which reads these options, too.

        return forms.FORMS[self.evidence_as]


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQAStageOptions(Options):
    """The result of another model that the features depend on."""

    first_stage: str | None = option(
        None,
        "With --evidence_as=marks, for a model of the second stage: the file …_paragraphs.jsonl "
        "that the first stage wrote beside its predictions for the same examples. None: their "
        "field `paragraphs`, as a server of the first stage answers it.",
        role="decoding",
        is_file=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQADecodingOptions(HotpotQAStageOptions):
    """How answers and supporting facts are chosen."""

    supporting_fact_threshold: float = option(
        0.5,
        "Minimum probability of a supporting fact, from 0 to 1.",
        role="decoding",
        lower_bound=0,
        upper_bound=1,
    )
    min_supporting_facts: int = option(
        0,
        "Minimum number of sentences predicted as supporting facts: the most probable ones, even "
        "below the threshold. Every HotpotQA question has at least two; the release has no such "
        "minimum.",
        role="decoding",
        lower_bound=0,
    )
    max_answer_length: int = option(
        30, "Maximum length of an answer, in tokens.", role="decoding", lower_bound=1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQAExampleOptions(HotpotQAFeatureOptions, HotpotQAStageOptions):
    """Further options of preprocessing."""

    is_training: bool = option(
        True, "Create labels, and drop examples that cannot be trained on.", role="features"
    )
    debug: bool = option(
        False,
        "Add readable features (the tokens) to the records, which makes them larger.",
        role="features",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQAInputConfig(HotpotQAExampleOptions, FeatureOptions):
    """Settings of `features.make_features`; the ids are those of BERT's uncased vocabulary.

    Attributes:
        long_seq_length, global_seq_length: int or None. Length of each input in tokens, including
            padding; None for no limit and no padding.
        cls_token_id: int. The first token of both inputs.
        sentence_global_token_id, question_global_token_id, paragraph_global_token_id: int. The
            global tokens of sentences and titles, question tokens, and paragraphs.
        *_token_type_id: int. Token types of all global tokens, and of the parts of the long input.
        answer_types_map: dict from 'span', 'yes', 'no' to their ids, 0 to 2.
    """

    long_seq_length: int | None = changed(FeatureOptions, "long_seq_length", default=2048)
    global_seq_length: int | None = changed(FeatureOptions, "global_seq_length", default=256)
    cls_token_id: int = 101
    sentence_global_token_id: int = 1
    question_global_token_id: int = 3
    paragraph_global_token_id: int = 5
    global_token_type_id: int = 0
    sentence_token_type_id: int = 1
    title_token_type_id: int = 2
    question_token_type_id: int = 3
    answer_types_map: dict = dataclasses.field(default_factory=lambda: dict(ANSWER_TYPES))

    def __post_init__(self):
        super().__post_init__()
        _check_form(self)
        types = self.answer_types_map
        if set(types) != set(ANSWER_TYPES) or set(types.values()) != set(ANSWER_TYPES.values()):
            raise ValueError(
                f"`answer_types_map` must map 'span', 'yes' and 'no' to 0, 1 and 2. "
                f"Received: {types}"
            )

    @classmethod
    def with_sentencepiece_ids(cls, **fields):
        """The defaults for the released SentencePiece vocabulary, overridden by `fields`."""
        return cls(**{**_SENTENCEPIECE_IDS, **fields})

    @classmethod
    def for_tokenizer(cls, tokenizer, **fields):
        """The defaults for a tokenizer's kind of vocabulary, overridden by `fields`.

        With WordPiece, the CLS token is the vocabulary's `[CLS]`, wherever it is.

        Raises:
            ValueError: if the vocabulary lacks a token that the features need, or is of a kind
                that they are not made for.
        """
        return cls(**fields).form.input_config(cls, tokenizer, fields)

    def check_vocabulary(self, tokenizer):
        """Checks that every id of this config has a token.

        Raises:
            ValueError: names the field, its id, and the vocabulary's file and size.
        """
        vocabulary.check_token_ids(self, tokenizer)


def _check_form(config):
    """Raises ValueError if an option of one form of the evidence is given with the other."""
    from . import forms  # Which reads these options, too.

    form = config.evidence_as
    (other,) = forms.FORMS.keys() - {form}
    others = forms.FORMS[other].own_options
    for field in dataclasses.fields(config):
        if field.name in others and getattr(config, field.name) != field.default:
            raise ValueError(
                f"--{field.name} is for --evidence_as={other}, and this is --evidence_as={form}. "
                "Leave it out, or give the other."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingConfig(HotpotQADecodingOptions):
    """Settings of `metrics.generate_predictions`.

    Attributes:
        answer_encoding_method: 'span' or 'bio'.
        do_lower_case: bool. Whether the WordPiece tokenizer lower-cased the text.
        sentence_token_type_id, title_token_type_id: int. As in `HotpotQAInputConfig`.
        answer_types_map: dict of 'span', 'yes', 'no' to their ids.
        release_compatible: bool. Reproduce the bugs of the authors' release.
    """

    answer_encoding_method: str = changed(HotpotQAFeatureOptions, "answer_encoding_method")
    do_lower_case: bool = True
    sentence_token_type_id: int = 1
    title_token_type_id: int = 2
    answer_types_map: dict = dataclasses.field(default_factory=lambda: dict(ANSWER_TYPES))
    release_compatible: bool = changed(FeatureOptions, "release_compatible")


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQaConfig(
    HotpotQAFeatureOptions,
    HotpotQADecodingOptions,
    options.PaddingOptions,
    finetuning.FinetuningConfig,
):
    """The options of a run besides the training options; the help of each field describes it."""

    aliases = {
        "train_tf_examples_filepattern": "train_data",
        "num_train_tf_examples": "num_train_examples",
        "predict_tf_examples_filepattern": "eval_data",
        "predict_gold_json_file": "eval_gold",
        "predict_input_json_file": "input_file",
        "max_long_seq_length": "long_seq_length",
        "max_global_seq_length": "global_seq_length",
    }
    help_texts = {
        "vocab_file": f"{ANY_VOCABULARY} Without --evidence_as=marks, word pieces only.",
        "eval_gold": "HotpotQA JSON with the answers of the examples to evaluate on.",
    }

    not_of_evaluation = ("answer_encoding_method",)

    flat_sequence: bool = option(
        False,
        "Flat input: ignore paragraphs in masks and relative labels (paper, table 3).",
        role="model",
    )

    def __post_init__(self):
        super().__post_init__()
        _check_form(self)
        try:
            self.form.check_encoder(self.encoder_config)
        except ValueError as error:
            raise ValueError(f"{error} {self.form.advice}") from None

    def records(self):
        return self.form.records(self)

    def features(self, tokenizer):
        """The feature settings at inference."""
        return HotpotQAInputConfig.for_tokenizer(
            tokenizer, **options.shared(HotpotQAInputConfig, self), is_training=False
        )

    def decoding(self):
        """The decoding settings."""
        return DecodingConfig(
            **options.shared(DecodingConfig, self), do_lower_case=self.do_lower_case
        )
