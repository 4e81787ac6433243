"""Converts typed examples to features, which are the same for every model.

The processor (`EtcProcessor`) arranges a text as [CLS] text [SEP], two texts as [CLS] first [SEP]
second [SEP]. The first global token stands for the whole example; each sentence, and the first of
two texts, has its own. Inputs that do not fit are cut at the end; the first of two texts is never
cut.
"""

from etcmodel import finetuning, preprocessing
from etcmodel.preprocessing import raw_files

from . import examples
from .config import MULTI_LABEL, ClassificationInputConfig

__all__ = ["ConverterFactory", "encoded_label", "make_features"]


def make_features(example, config, processor):
    """Converts an example.

    Args:
        example: `TextExample`. Without a label, there are no `labels`.
        config: `ClassificationInputConfig`.
        processor: of `config.make_processor`.

    Returns:
        (dict, `text.encoding.Encoding`, which shows what was cut). Features are `example_id`, one
        str; those of the processor (see `models.features`); and `labels`: the index of the label,
        one int; with several labels, a 0 or 1 for each of them; for a regression, one float.

    Raises:
        ValueError: naming the example, if its label is unknown, or the first of two texts does not
            fit.
    """
    fields = {"text": example.text}
    if example.second_text is not None:
        fields = {"question": example.text, "documents": [example.second_text]}
    batch = processor.batch_of(fields, f"example {example.example_id!r}")
    features = {"example_id": [example.example_id], **finetuning.features_of_row(batch)}
    if example.label is not None:
        features["labels"] = encoded_label(example, config)
    (encoding,) = batch.encodings
    return features, encoding


def encoded_label(example, config):
    """A label as a feature: list of int or, for a regression, of one float; see `make_features`.

    Args:
        example: `TextExample` with a label.
        config: `ClassificationFeatureOptions`.
    Raises:
        ValueError: naming the example, if its label is unknown.
    """
    try:
        target = config.make_labels().target(example.label)
    except ValueError as error:
        where = f"example {example.example_id!r}: field `{config.label_field}`"
        raise ValueError(f"{where}: {error}") from None
    return target if config.problem_type == MULTI_LABEL else [target]


# Classification's converter: what a preprocessing worker does with one raw example.


class ConverterFactory(preprocessing.ProcessorConverterFactory):
    """Makes the converter; `fields` are arguments of `ClassificationInputConfig`."""

    task = "classification"
    input_class = ClassificationInputConfig
    read = staticmethod(raw_files.read_text_rows)

    def input_config(self, tokenizer):
        config = super().input_config(tokenizer)
        config.check_labels()  # Not before: `fit` makes settings while they are not known yet.
        return config

    def convert(self, row, config, processor):
        example = examples.parse_row(row, config, needs_labels=True)
        features, encoding = make_features(example, config, processor)
        is_cut = bool(encoding.cut)
        has_room = len(encoding.token_ids) < config.long_seq_length
        return preprocessing.Converted(
            features=[features],
            counts={
                "examples_truncated": int(is_cut),
                # `preprocess` warns of these.
                "examples_out_of_global_tokens": int(is_cut and has_room),
            },
            lengths={
                "long_tokens": len(encoding.token_ids),
                "global_tokens": len(encoding.global_ids),
                "tokens_left_out": encoding.cut.num_tokens,
            },
        )
