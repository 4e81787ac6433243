"""What the model scores as evidence: the two forms of records and models of `--evidence_as`.

Both have the same functions, from the vocabulary to the predictions; `HotpotQAFeatureOptions.form`
is one.
"""

from etcmodel.text import added_tokens, vocabulary_files

from . import features, marks, metrics
from .config import MARKS

__all__ = ["FORMS", "GlobalTokens", "Marks"]


class GlobalTokens:
    """ETC's global tokens of paragraphs and sentences."""

    own_options = (
        *("answer_encoding_method", "num_word_edges", "min_supporting_facts", "flat_sequence"),
        "release_compatible",
    )
    advice = "Or preprocess with --evidence_as=marks, which other encoders read."

    @staticmethod
    def input_config(config_class, tokenizer, fields):
        """The `HotpotQAInputConfig` of its `fields` that are given, for a tokenizer.

        Raises:
            ValueError: if the vocabulary lacks a token, or is of a kind that this is not made for.
        """
        vocabulary_files.require_pieces(tokenizer, "--evidence_as=marks")
        if tokenizer.sp_model:
            config = config_class.with_sentencepiece_ids(**fields)
        else:
            tokenizer.require_tokens(["[PAD]", "[UNK]", "[CLS]"])
            config = config_class(**{"cls_token_id": tokenizer.vocab["[CLS]"], **fields})
        config.check_vocabulary(tokenizer)
        return config

    @staticmethod
    def check_encoder(config):
        """Raises a ValueError if an `EncoderConfig` is of a system that does not read this form."""
        from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

        encoders.check_global_local(config)

    @staticmethod
    def make_features(example, config, tokenizer, first_stage):
        """An object with the `features` of a `HotpotQAExample`, and what was left out.

        Args:
            example: `HotpotQAExample`.
            config: `HotpotQAInputConfig`.
            tokenizer: its tokenizer.
            first_stage: dict from the id of an example to the first stage's result.
        """
        del first_stage
        return features.make_features(example, config, tokenizer)

    @staticmethod
    def records(config):
        """The `finetuning.RecordConfig` of a `HotpotQaConfig`."""
        from . import task  # Imports TensorFlow, which takes seconds.

        # The release finds answers by the words of their pieces.
        needs_words = config.release_compatible and not config.spm_model_file
        return task.RecordConfig.of_run(config, needs_words=needs_words)

    @staticmethod
    def make_model(config):
        """A new model for a `HotpotQaConfig`."""
        from . import model  # Imports TensorFlow, which takes seconds.

        return model.HotpotQaModel(
            config.encoder_config,
            answer_encoding_method=config.answer_encoding_method,
            flat_sequence=config.flat_sequence,
            skip_padding=config.skip_padding,
        )

    @staticmethod
    def loss(outputs, batch):
        """The loss of each example, float32 [batch]."""
        from . import model  # Imports TensorFlow, which takes seconds.

        return model.loss(outputs, batch)

    @staticmethod
    def predict(task, outputs, examples):
        """The predictions of a `HotpotQaTask` by name: see `metrics.generate_predictions`."""
        config = task.config.decoding()
        return metrics.generate_predictions(outputs, examples, task.tokenizer, config)


class Marks:
    """Tokens in the text, with any encoder of one sequence: see `marks`."""

    own_options = ("first_stage", "max_num_paragraphs", "paragraph_threshold")
    advice = "Or preprocess with --evidence_as=global, which an ETC reads."

    @staticmethod
    def input_config(config_class, tokenizer, fields):
        """See `GlobalTokens`."""
        added_tokens.require(tokenizer, MARKS)
        return config_class(**fields)

    @staticmethod
    def check_encoder(config):
        """See `GlobalTokens`."""
        from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

        encoders.check_one_sequence(config)

    @staticmethod
    def make_features(example, config, tokenizer, first_stage):
        """See `GlobalTokens`."""
        if config.is_training:
            features.check_labels(example, config)
        kept = marks.paragraphs_kept(example, config, first_stage)
        return marks.make_features(example, config, tokenizer, kept)

    @staticmethod
    def records(config):
        """See `GlobalTokens`."""
        from . import task  # Imports TensorFlow, which takes seconds.

        return task.MarkedRecordConfig.of_run(config)

    @staticmethod
    def make_model(config):
        """See `GlobalTokens`."""
        from . import model  # Imports TensorFlow, which takes seconds.

        return model.MarkedHotpotQaModel(config.encoder_config, skip_padding=config.skip_padding)

    @staticmethod
    def loss(outputs, batch):
        """See `GlobalTokens`."""
        from . import model  # Imports TensorFlow, which takes seconds.

        return model.marked_loss(outputs, batch)

    @staticmethod
    def predict(task, outputs, examples):
        """See `GlobalTokens`."""
        return marks.predict(outputs, examples, task.config.decoding())


FORMS = {"global": GlobalTokens, "marks": Marks}
