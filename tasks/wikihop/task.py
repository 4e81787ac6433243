"""WikiHop as a task for `etcmodel.training`."""

import dataclasses

from etcmodel import finetuning
from etcmodel.models import modeling, sentence_splitting

from . import evaluate, examples, inputs, model
from .config import WikiHopInputConfig

__all__ = ["WikiHopConfig", "WikiHopTask"]

option = finetuning.option


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikiHopConfig(finetuning.FinetuningConfig):
    """Everything about a run beside the training options; each field's help says what it means."""

    train_pattern: str | None = option(
        None,
        "Training TFRecords of preprocess, wildcards allowed.",
        role="training",
        flag="input_tf_records_path",
    )
    num_train_examples: int | None = option(
        None, "Number of training records. None: they are counted.", role="training"
    )
    eval_pattern: str | None = option(
        None,
        "TFRecords of preprocess to evaluate on, wildcards allowed.",
        flag="dev_tf_records_path",
    )
    gold_file: str | None = option(
        None,
        "WikiHop JSON with the answers of those examples. None: only the accuracy is measured, by "
        "the answers in the records.",
        flag="input_dev_json_filepath",
        is_file=True,
    )
    input_file: str | None = option(
        None,
        "Raw WikiHop JSON of the questions to answer, in mode predict.",
        flag="predict_input_json_filepath",
        is_file=True,
    )
    predictions_file: str | None = option(
        None,
        "Where predictions go, as JSON {id: answer}. None: predictions.json in --output_dir.",
        flag="predict_output_file_path",
    )
    spm_model_file: str | None = option(
        None,
        "SentencePiece model. If it is given, --vocab_file is ignored.",
        flag="spm_model_path",
        is_file=True,
    )
    max_long_seq_length: int = option(
        4096,
        "Length of the long input in tokens; that of the records.",
        role="model",
        flag="long_seq_len",
        lower_bound=2,
    )
    max_global_seq_length: int = option(
        430,
        "Length of the global input in tokens; that of the records.",
        role="model",
        flag="global_seq_len",
        lower_bound=2,
    )
    max_num_sentences: int = option(
        200,
        "Sentences to keep of an example's documents; kept with an export, for predict.",
        role="features",
        lower_bound=0,
    )
    sentence_splitter: str = option(
        "punkt",
        "How documents become sentences; kept with an export, for predict.",
        role="features",
        choices=sentence_splitting.SENTENCE_SPLITTERS,
    )
    enable_l2g_linking: bool = option(
        True, "Link each mention of a candidate to the candidate's global token.", role="model"
    )
    candidate_ignore_hard_g2l: bool = option(
        False,
        "Let candidates' global tokens see all long tokens, even with use_hard_g2l_mask.",
        role="model",
    )
    query_ignore_hard_g2l: bool = option(
        False,
        "Let the query's global tokens see all long tokens, even with use_hard_g2l_mask.",
        role="model",
    )
    add_final_layer: bool = option(
        True, "Put a feed-forward block between the encoder and the scores.", role="model"
    )
    local_radius: float = option(
        -1,
        "Replaces that of the model's config. -1: it stays. (A float, as in the release.)",
        role="model",
        lower_bound=-1,
    )
    hidden_dropout_prob: float = option(
        -1, "Replaces that of the model's config. -1: it stays.", role="training", lower_bound=-1
    )
    attention_probs_dropout_prob: float = option(
        -1, "Replaces that of the model's config. -1: it stays.", role="training", lower_bound=-1
    )
    label_smoothing: float = option(
        0.0,
        "Probability that is spread over all candidates, from 0 to below 1.",
        role="training",
        lower_bound=0,
    )
    use_one_hot_embeddings: bool = option(
        False, "Look tokens up by a product with one-hot vectors: the same, for some devices."
    )

    def __post_init__(self):
        if self.local_radius != int(self.local_radius):
            raise ValueError(f"`local_radius` must be whole. Received: {self.local_radius}")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(
                f"`label_smoothing` must be in [0, 1). Received: {self.label_smoothing}"
            )

    def model_config(self):
        """`EtcConfig`: that of the file, with what the options replace."""
        names = ("local_radius", "hidden_dropout_prob", "attention_probs_dropout_prob")
        given = {name: getattr(self, name) for name in names if getattr(self, name) >= 0}
        if "local_radius" in given:
            given["local_radius"] = int(given["local_radius"])
        return modeling.EtcConfig.from_dict({**self.etc_config.to_dict(), **given})

    def records(self):
        return inputs.RecordConfig(
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            vocab_size=self.etc_config.vocab_size,
            segment_vocab_size=self.etc_config.segment_vocab_size,
            measures_labels=not self.gold_file,
        )

    def features(self):
        """How raw examples become features, at inference."""
        return WikiHopInputConfig(
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            max_num_sentences=self.max_num_sentences,
            sentence_splitter=self.sentence_splitter,
            release_compatible=self.release_compatible,
        )


class WikiHopTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `WikiHopConfig`.
    """

    name = "wikihop"
    title = "WikiHop"
    config_class = WikiHopConfig
    best_metric = "accuracy"
    decoding_needs_vocabulary = False
    needs_gold = False  # The records have the answers, too.

    def make_model(self):
        return model.WikiHopModel(
            self.config.model_config(),
            add_final_layer=self.config.add_final_layer,
            enable_l2g_linking=self.config.enable_l2g_linking,
            candidate_ignore_hard_g2l=self.config.candidate_ignore_hard_g2l,
            query_ignore_hard_g2l=self.config.query_ignore_hard_g2l,
            use_one_hot_embeddings=self.config.use_one_hot_embeddings,
        )

    def loss(self, outputs, features):
        return model.loss(outputs, features, label_smoothing=self.config.label_smoothing)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def decode(self, outputs, examples):
        return evaluate.predict(
            outputs, examples, release_compatible=self.config.release_compatible
        )

    def metrics(self, examples, predictions):
        return evaluate.metrics(examples, predictions)

    def evaluate(self, predictions):
        if self.config.gold_file:
            return super().evaluate(predictions)
        return evaluate.record_metrics(predictions)  # There are no texts to predict.
