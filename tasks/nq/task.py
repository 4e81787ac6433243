"""Natural Questions as a task for `etcmodel.training`."""

import dataclasses
import logging

from etcmodel import finetuning

from . import curves, decode, evaluate, examples, gold, inputs, model
from .config import NqInputConfig, special_token_ids

__all__ = ["NqConfig", "NqTask"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NqConfig(finetuning.FinetuningConfig):
    """Everything about a run beside the training options; each field's help says what it means."""

    train_pattern: str | None = finetuning.option(
        None,
        "Training TFRecords of preprocess, wildcards allowed.",
        role="training",
        flag="train_precomputed_file",
    )
    num_train_examples: int | None = finetuning.option(
        None,
        "Number of training records. None: they are counted.",
        role="training",
        flag="train_num_precomputed",
    )
    eval_pattern: str | None = finetuning.option(
        None,
        "TFRecords to evaluate on (preprocess with --is_training=false), wildcards allowed.",
        flag="predict_precomputed_file",
    )
    gold_file: str | None = finetuning.option(
        None,
        "Annotations of those examples: Natural Questions' files, wildcards allowed, or the file "
        "of make_gold_cache.",
        flag="gold_cache_path",
    )
    input_file: str | None = finetuning.option(
        None,
        "Raw file of the questions to answer (JSON lines, possibly .gz), in mode predict.",
        is_file=True,
    )
    predictions_file: str | None = finetuning.option(
        None,
        "Where predictions go, in the official format. None: predictions.json in --output_dir.",
    )
    curve_plot_file: str | None = finetuning.option(
        None, "PNG file for precision, recall and F1 by threshold, written at evaluation."
    )
    spm_model_file: str | None = finetuning.option(
        None,
        "SentencePiece model. If it is given, --vocab_file is ignored.",
        flag="spm_model_path",
        is_file=True,
    )
    max_long_seq_length: int = finetuning.option(
        4096,
        "Length of the long input in tokens; that of the records.",
        role="model",
        flag="max_seq_length",
        lower_bound=5,
    )
    max_global_seq_length: int = finetuning.option(
        230,
        "Length of the global input in tokens; that of the records.",
        role="model",
        flag="max_global_seq_length",
        lower_bound=1,
    )
    mask_long_output: bool = finetuning.option(
        False, "Allow answers to start and end in the page only.", role="model"
    )
    cls_token_id: int | None = finetuning.option(
        None,
        "CLS token, for --mask_long_output. None: that of the vocabulary.",
        role="model",
        flag="cls_tok_id",
        lower_bound=0,
    )
    sep_token_id: int | None = finetuning.option(
        None,
        "SEP token, for --mask_long_output. None: that of the vocabulary.",
        role="model",
        flag="sep_tok_id",
        lower_bound=0,
    )
    stride: int = finetuning.option(
        2048,
        "Page tokens from one window to the next, in mode predict.",
        role="decoding",
        lower_bound=1,
    )
    question_len: int = finetuning.option(
        32, "Question tokens kept, in mode predict.", role="features", lower_bound=1
    )
    include_html_tokens: bool = finetuning.option(
        True, "Keep tags, as two kinds of token, in mode predict.", role="features"
    )
    fixed_blocks: bool = finetuning.option(
        False,
        "A global token a block of long tokens, not a candidate, in mode predict.",
        role="features",
    )
    fixed_block_size: int = finetuning.option(
        27, "Long tokens of a block, in mode predict.", role="features", lower_bound=1
    )
    span_selection_method: str = finetuning.option(
        "joint",
        "The best start and then its best end; the best of each; or the best pair, the short "
        "answer within the long one.",
        role="decoding",
        choices=decode.SPAN_SELECTION_METHODS,
    )
    consider_answer_type: bool = finetuning.option(
        True, "Answer yes or no where that is the most probable answer type.", role="decoding"
    )
    max_short_answer_len: int = finetuning.option(
        32, "Longest short answer, in words.", role="decoding", lower_bound=1
    )

    def __post_init__(self):
        self.decoding()  # Refuses options outside their range.

    def records(self):
        return inputs.RecordConfig(
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            vocab_size=self.etc_config.vocab_size,
        )

    def features(self, tokenizer):
        """How raw examples become features, at inference."""
        return NqInputConfig.for_tokenizer(
            tokenizer,
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            stride=self.stride,
            question_len=self.question_len,
            include_html_tokens=self.include_html_tokens,
            fixed_blocks=self.fixed_blocks,
            fixed_block_size=self.fixed_block_size,
            release_compatible=self.release_compatible,
            is_training=False,
        )

    def decoding(self):
        """How outputs become answers."""
        return decode.DecodingConfig(
            span_selection_method=self.span_selection_method,
            consider_answer_type=self.consider_answer_type,
            max_short_answer_len=self.max_short_answer_len,
            release_compatible=self.release_compatible,
        )


class NqTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `NqConfig`.
    """

    name = "nq"
    title = "Natural Questions"
    config_class = NqConfig
    best_metric = "mean-best-threshold-f1"
    decoding_needs_vocabulary = False
    decoding_needs_examples = False

    def make_model(self):
        config = self.config
        return model.NqModel(
            config.etc_config,
            mask_long_output=config.mask_long_output,
            **(self._special_tokens() if config.mask_long_output else {}),
        )

    def _special_tokens(self):
        """The ids that the mask of the output goes by."""
        names = ("cls_token_id", "sep_token_id")
        ids = {name: getattr(self.config, name) for name in names}
        if None in ids.values():
            if not self.config.has_vocabulary():
                raise ValueError(
                    "--mask_long_output needs --cls_tok_id and --sep_tok_id (101 and 102 with "
                    "BERT's vocabulary), or --vocab_file or --spm_model_path, which tell them."
                )
            known = special_token_ids(self.tokenizer)
            ids = {name: known[name] if i is None else i for name, i in ids.items()}
        return ids

    def loss(self, outputs, features):
        return model.loss(outputs, features)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def decode(self, outputs, examples):
        del examples  # A prediction needs no more than the words' numbers.
        return decode.generate_predictions(outputs, self.config.decoding())

    def metrics(self, examples, predictions):
        """`examples` is the annotations alone, by example id: see `gold.read_gold`."""
        return evaluate.metrics(examples, predictions)

    def evaluate(self, predictions):
        # Without the pages; malformed lines are left out, as they are by preprocess.
        annotations = gold.read_gold(
            self.config.gold_file, skip=lambda line: logging.warning("skipped %s", line)
        )
        predicted = self.decode(predictions, None)
        _warn_of_unpredicted(annotations, predicted)
        if self.config.predictions_file:
            self.write_predictions(self.config.predictions_file, predicted)
        if self.config.curve_plot_file:
            verdicts = evaluate.verdicts(annotations, predicted)
            groups = [list(by_id.values()) for by_id in verdicts]
            curves.plot_curves(*groups, self.config.curve_plot_file)
        return self.metrics(annotations, predicted)

    def num_predictions(self, predictions):
        return len(predictions["predictions"])


def _warn_of_unpredicted(annotations, predictions):
    missing = set(annotations) - {entry["example_id"] for entry in predictions["predictions"]}
    if missing:
        logging.warning(
            "%d of %d gold examples have no prediction and count as unanswered, such as %d.",
            len(missing),
            len(annotations),
            min(missing),
        )
