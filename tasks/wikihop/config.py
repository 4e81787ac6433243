"""The options of features, and of a run besides the training options."""

import dataclasses

from etcmodel import finetuning, options
from etcmodel.options import ANY_VOCABULARY, FeatureOptions, Options, changed, option
from etcmodel.text import sentence_splitting

__all__ = [
    "MARKS",
    "WikiHopConfig",
    "WikiHopExampleOptions",
    "WikiHopFeatureOptions",
    "WikiHopInputConfig",
]

# The tokens around the question and around each candidate, with `candidates_as="marks"`.
MARKS = ("[q]", "[/q]", "[ent]", "[/ent]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopFeatureOptions(Options):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(FeatureOptions, "long_seq_length")
    global_seq_length: int = changed(FeatureOptions, "global_seq_length", default=430)
    candidates_as: str = option(
        "global",
        "What the model scores: ETC's global token of each candidate, linked to its mentions "
        "(global); or, with any encoder, the token [ent] in front of each candidate, which comes "
        "before the documents, as in Longformer (marks). Then --max_num_sentences and "
        "--sentence_splitter have no meaning.",
        role="features",
        choices=("global", "marks"),
    )
    max_num_chunks: int = option(
        4,
        "With --candidates_as=marks: the most inputs into which the documents of an example are "
        "divided, each behind all candidates. The end of longer ones is cut.",
        role="features",
        lower_bound=1,
    )
    max_num_sentences: int = option(
        200,
        "Maximum number of sentences to keep from an example's documents.",
        role="features",
        lower_bound=0,
    )
    sentence_splitter: str = option(
        "punkt",
        "How documents are split into sentences: as NLTK does (punkt), or at white space after . ! "
        "or ? (simple).",
        role="features",
        choices=sentence_splitting.SENTENCE_SPLITTERS,
    )

    @property
    def form(self):
        """The class in `forms` that `candidates_as` names."""
        from . import forms  # Which reads these options, too.

        return forms.FORMS[self.candidates_as]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopExampleOptions(WikiHopFeatureOptions):
    """Further options of preprocessing."""

    shuffle_docs_within_example: bool = option(
        False, "Shuffle the documents of each example.", role="features"
    )
    random_seed: int = option(
        0, "Seed of that shuffling, which also depends on the example's id.", role="features"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopInputConfig(WikiHopExampleOptions, FeatureOptions):
    """Settings of `features.make_features`.

    The ids are those of the release, for both WordPiece and SentencePiece.

    Attributes:
        is_training: bool. Reject examples without an answer.
        *_global_token_id: int. The global tokens of candidates, query tokens, documents and
            sentences.
        *_global_token_type_id: int. Their token types.
        *_token_type_id: int. Token types of the parts of the long input.
    """

    is_training: bool = False
    sentence_global_token_id: int = 1
    query_global_token_id: int = 3
    candidate_global_token_id: int = 4
    document_global_token_id: int = 5
    sentence_global_token_type_id: int = 0
    query_global_token_type_id: int = 5
    candidate_global_token_type_id: int = 6
    document_global_token_type_id: int = 7
    sentence_token_type_id: int = 1
    query_token_type_id: int = 3
    candidate_token_type_id: int = 4

    def check_tokenizer(self, tokenizer):
        """Checks that a tokenizer fits these settings.

        Raises:
            ValueError: names the file and its problem.
        """
        self.form.check_tokenizer(self, tokenizer)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopConfig(WikiHopFeatureOptions, options.PaddingOptions, finetuning.FinetuningConfig):
    """The options of a run besides the training options; the help of each field describes it."""

    aliases = {
        "input_tf_records_path": "train_data",
        "dev_tf_records_path": "eval_data",
        "input_dev_json_filepath": "eval_gold",
        "predict_input_json_filepath": "input_file",
        "predict_output_file_path": "predictions_file",
        "spm_model_path": "spm_model_file",
        "long_seq_len": "long_seq_length",
        "global_seq_len": "global_seq_length",
    }
    help_texts = {
        "vocab_file": f"{ANY_VOCABULARY} Without --candidates_as=marks, word pieces only.",
        "eval_gold": "WikiHop JSON with the answers of the examples to evaluate on. None: only the "
        "accuracy is measured, by the answers in the records.",
        "predictions_file": "Where predictions go, as JSON {id: answer}. None: predictions.json in "
        "--output_dir.",
    }
    input_class = WikiHopInputConfig
    not_needed = ("eval_gold",)

    enable_l2g_linking: bool = option(
        True, "Link each mention of a candidate to the candidate's global token.", role="model"
    )
    candidate_ignore_hard_g2l: bool = option(
        False,
        "Let the candidates' global tokens attend to all long tokens, even with use_hard_g2l_mask.",
        role="model",
    )
    query_ignore_hard_g2l: bool = option(
        False,
        "Let the query's global tokens attend to all long tokens, even with use_hard_g2l_mask.",
        role="model",
    )
    flat_sequence: bool = option(
        False,
        "Flat input: ignore documents in masks and relative labels, and link no mentions (paper, "
        "section 4.2). --enable_l2g_linking and the two flags above then have no meaning.",
        role="model",
    )
    add_final_layer: bool = option(
        True, "Add a feed-forward block between the encoder and the scores.", role="model"
    )
    local_radius: float = option(
        -1,
        "Overrides the model config's local radius, in tokens. -1: keep the config's. (A float, as "
        "in the release.)",
        role="model",
        lower_bound=-1,
    )
    hidden_dropout_prob: float = option(
        -1, "Overrides the model config's value. -1: keep it.", role="training", lower_bound=-1
    )
    attention_probs_dropout_prob: float = option(
        -1, "Overrides the model config's value. -1: keep it.", role="training", lower_bound=-1
    )
    label_smoothing: float = option(
        0.0,
        "Probability that the loss spreads over all candidates, from 0 to below 1.",
        role="training",
        lower_bound=0,
    )
    use_one_hot_embeddings: bool = option(
        False,
        "Look up token embeddings by multiplying with one-hot vectors: the same result, faster "
        "on some devices.",
    )

    def __post_init__(self):
        super().__post_init__()
        self.form.check_run(self)
        exempt = ("candidate_ignore_hard_g2l", "query_ignore_hard_g2l")
        if self.flat_sequence and (given := [name for name in exempt if getattr(self, name)]):
            raise ValueError(
                f"--flat_sequence: the hard mask follows sentences alone. Leave --{given[0]} out."
            )
        if self.local_radius != int(self.local_radius):
            raise ValueError(f"`local_radius` must be whole. Received: {self.local_radius}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            rate = getattr(self, name)
            if rate != -1 and not 0 <= rate < 1:
                raise ValueError(f"`{name}` must be -1, or in [0, 1). Received: {rate}")
        if self.label_smoothing >= 1:
            raise ValueError(
                f"`label_smoothing` must be in [0, 1). Received: {self.label_smoothing}"
            )

    def model_config(self):
        """The `EncoderConfig` of the file, with the overrides of the options."""
        from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

        names = ("local_radius", "hidden_dropout_prob", "attention_probs_dropout_prob")
        given = {name: getattr(self, name) for name in names if getattr(self, name) >= 0}
        if "local_radius" in given:
            given["local_radius"] = int(given["local_radius"])
        return encoders.replace(self.encoder_config, **given)

    def records(self):
        return self.form.record_class().of_run(self, measures_labels=not self.eval_gold)
