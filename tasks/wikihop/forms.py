"""What the model scores: the two forms of records and models, chosen by `--candidates_as`.

Both have the same functions, from the vocabulary to the model; `WikiHopFeatureOptions.form` is one.
"""

import dataclasses

from etcmodel import preprocessing
from etcmodel.text import added_tokens, sentence_splitting, vocabulary, vocabulary_files

from . import features
from .config import MARKS

__all__ = ["FORMS", "GlobalTokens", "Marks"]


class GlobalTokens:
    """ETC's global token of each candidate, linked to its mentions."""

    @staticmethod
    def check_tokenizer(config, tokenizer):
        """Raises a ValueError if what a `WikiHopInputConfig` needs is missing."""
        sentence_splitting.sentence_splitter(config.sentence_splitter)  # Its package.
        vocabulary_files.require_pieces(tokenizer, "--candidates_as=marks")
        if not tokenizer.sp_model:
            tokenizer.require_tokens(["[PAD]", "[UNK]"])
            if not tokenizer.basic_tokenizer.do_lower_case:
                raise ValueError(
                    "`do_lower_case` must be true with word pieces: candidates are compared in "
                    "lower case, and would never be found in the documents."
                )
        vocabulary.check_token_ids(config, tokenizer, "_global_token_id")

    @staticmethod
    def check_run(config):
        """Raises a ValueError if the encoder or an option of a `WikiHopConfig` does not fit."""
        from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

        try:
            encoders.check_global_local(config.encoder_config)
        except ValueError as error:
            advice = "Or preprocess with --candidates_as=marks, which other encoders read."
            raise ValueError(f"{error} {advice}") from None

    @staticmethod
    def convert(example, config, tokenizer):
        """The `preprocessing.Converted` of a `WikiHopExample`."""
        converted = features.make_features(example, config, tokenizer)
        return preprocessing.Converted(
            features=[converted.features],
            counts={
                "examples_truncated": int(converted.num_sentences_left_out > 0),
                "examples_without_mention": int(converted.num_mentions == 0),
            },
            lengths={
                "long_tokens": converted.num_long_tokens,
                "global_tokens": converted.num_global_tokens,
                "mentions": converted.num_mentions,
                "sentences_left_out": converted.num_sentences_left_out,
            },
        )

    @staticmethod
    def record_class():
        """The subclass of `finetuning.RecordConfig`."""
        from . import task  # Imports TensorFlow, which takes seconds.

        return task.RecordConfig

    @staticmethod
    def make_model(config):
        """A new model for a `WikiHopConfig`."""
        from . import model  # Imports TensorFlow, which takes seconds.

        return model.WikiHopModel(
            config.model_config(),
            **{name: getattr(config, name) for name in _OPTIONS},
            skip_padding=config.skip_padding,
        )


_OPTIONS = (
    *("enable_l2g_linking", "candidate_ignore_hard_g2l", "query_ignore_hard_g2l"),
    *("flat_sequence", "add_final_layer", "use_one_hot_embeddings"),
)


class Marks:
    """The token [ent] in front of each candidate, with any encoder: see `marks`."""

    @staticmethod
    def check_tokenizer(config, tokenizer):
        """See `GlobalTokens`."""
        del config
        added_tokens.require(tokenizer, MARKS)

    @staticmethod
    def check_run(config):
        """See `GlobalTokens`."""
        defaults = {field.name: field.default for field in dataclasses.fields(config)}
        if given := [name for name in _OPTIONS if getattr(config, name) != defaults[name]]:
            raise ValueError(
                f"--{given[0]} is for --candidates_as=global, and the candidates are marks. "
                "Leave it out."
            )

    @staticmethod
    def convert(example, config, tokenizer):
        """See `GlobalTokens`."""
        converted = features.make_marked_features(example, config, tokenizer)
        return preprocessing.Converted(
            features=[converted.features],
            counts={"examples_truncated": int(converted.num_tokens_left_out > 0)},
            lengths={
                "long_tokens": converted.num_long_tokens,
                "chunks": converted.num_chunks,
                "tokens_left_out": converted.num_tokens_left_out,
            },
        )

    @staticmethod
    def record_class():
        """See `GlobalTokens`."""
        from . import task  # Imports TensorFlow, which takes seconds.

        return task.MarkedRecordConfig

    @staticmethod
    def make_model(config):
        """See `GlobalTokens`."""
        from . import model  # Imports TensorFlow, which takes seconds.

        return model.MarkedWikiHopModel(config.model_config(), skip_padding=config.skip_padding)


FORMS = {"global": GlobalTokens, "marks": Marks}
