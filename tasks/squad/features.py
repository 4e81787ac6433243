"""Converts a question about a text to features, one record for each window of the text.

A record is [CLS] question [SEP] window [SEP], as in BERT (Devlin et al. 2018, arXiv:1810.04805,
section 4.2). Its first global token stands for the whole, the others for the question's tokens and
the sentences of the window. A window without a whole answer has [CLS] as its answer (section 4.3).
"""

import numpy as np

from etcmodel import finetuning, preprocessing
from etcmodel.finetuning import spans
from etcmodel.preprocessing import raw_files

from . import examples
from .config import SquadInputConfig

__all__ = ["ConverterFactory", "make_features"]

_CONTEXT = 1  # The number of its text; the question has 0.


def make_features(example, config, processor):
    """Converts an example.

    Args:
        example: `SquadExample`.
        config, processor: `SquadInputConfig`, and the result of its `make_processor`.
    Returns:
        (list of dict, one per window; whether the question was cut). Features are `example_id`, one
        str, and those of the processor (see `models.features`; L long tokens). In training also
        those of `spans.span_labels`, and with `tag_facts` `labels/facts`, int 0/1 [L]. Else those
        of `spans.window_text`, and `max_context`, int 0/1 [L], 1 for tokens of the context that no
        other window shows with more context.
    Raises:
        ValueError: naming the example, if the context has no token, or there is no room for one.
    """
    name = f"example {example.example_id!r}"
    question, source = example.question, processor.tokenize({"question": example.question})
    num_tokens = min(source.num_question_pieces, config.max_query_length)
    if is_cut := num_tokens < source.num_question_pieces:
        question = question[: source.ends[num_tokens - 1]]
    num_special = sum(processor.config.num_special(has_question=True, has_text=True))
    room = config.long_seq_length - num_special - num_tokens  # Of a window of the context.
    if room < 1:
        problem = f"the question's {num_tokens} tokens leave no room for the context"
        raise ValueError(f"{name}: {problem}. Raise --long_seq_length.")
    stride = {"stride": max(0, room - config.doc_stride)}  # What windows have in common.
    batch = processor.batch_of({"question": question, "text": example.context}, name, stride)
    windows = spans.window_places(batch, _CONTEXT)
    if (windows < 0).all(axis=(1, 2)).any():
        raise ValueError(f"{name}: the context has no character that the vocabulary knows")
    is_best, found = _max_context(batch.encodings, config.long_seq_length), []
    for row, places in enumerate(windows):
        features = {"example_id": [example.example_id], **finetuning.features_of_row(batch, row)}
        if config.is_training:
            labels = spans.span_labels([(x.start, x.end) for x in example.answers], places)
            for ends in labels.values():
                ends[0] = int(not any(ends))
            if config.tag_facts:
                labels["labels/facts"] = _is_within(example.facts, places)
            found.append({**features, **labels})
        else:
            texts = spans.window_text(example.context, places)
            found.append({**features, **texts, "max_context": is_best[row].tolist()})
    return found, is_cut


def _is_within(facts, places):
    """Marks the tokens within a fact: list of 0 and 1."""
    starts, ends = places
    found = np.zeros(starts.shape, bool)
    for start, end in facts:
        found |= (starts >= start) & (ends <= end)
    return found.astype(int).tolist()


def _max_context(encodings, length):
    """Marks the tokens for which each window is the best one: int 0/1 [num_windows, length].

    That is the window with the most context on the side that has less, plus a hundredth of the
    window's length; the first one of equals. Source: BERT's `run_squad.py`.
    """
    scores = np.full([len(encodings), len(encodings[0].source.ids)], -np.inf)
    for row, encoding in zip(scores, encodings, strict=True):
        pieces = encoding.pieces[encoding.texts == _CONTEXT]
        places = np.arange(len(pieces))
        row[pieces] = np.minimum(places, places[::-1]) + 0.01 * len(pieces)
    best, found = scores.argmax(axis=0), np.zeros([len(encodings), length], np.int64)
    for row, encoding in enumerate(encodings):
        is_best = (encoding.texts == _CONTEXT) & (best[encoding.pieces] == row)
        found[row, : len(is_best)] = is_best
    return found


# What a preprocessing worker does to one raw question.


class ConverterFactory(preprocessing.ProcessorConverterFactory):
    """Makes the converter; `fields` are arguments of `SquadInputConfig`."""

    task = "squad"
    input_class = SquadInputConfig
    read = staticmethod(examples.read_questions)
    deals_records = True  # A context may have many windows.

    def convert(self, row, config, processor):
        raw_files.check_readable(row["question"])
        example = examples.parse_example(row["question"], config.is_training, config)
        if config.is_training and not (example.answers or config.version_2_with_negative):
            raise ValueError(
                f"example {example.example_id!r}: field `answers` is empty, and "
                "--version_2_with_negative=false"
            )
        windows, is_cut = make_features(example, config, processor)
        counts = {"questions_cut": int(is_cut)}
        if config.is_training:
            inside = sum(not x["labels/starts"][0] for x in windows)
            counts["windows_without_answer"] = len(windows) - inside
            counts["questions_without_answer"] = int(not example.answers)
            counts["answers_in_no_window"] = int(bool(example.answers) and not inside)
        return preprocessing.Converted(
            features=windows, counts=counts, lengths={"windows": len(windows)}
        )
