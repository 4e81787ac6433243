"""Converts a typed question to features, one record for each document or window of it.

The processor (`EtcProcessor`) arranges a record as [CLS] question [SEP] document [SEP]. The first
global token represents the whole record, followed by one for each token of the question and each
sentence. A long document is cut at its end, as by Longformer (Beltagy et al. 2020,
arXiv:2004.05150, appendix D), or, with a stride, into windows.

Answers are not annotated in the documents: each place that matches an answer by the official script
is used as one (distant supervision; see `examples.find_answers`).
"""

import collections
import json
from typing import NamedTuple

from etcmodel import finetuning, preprocessing
from etcmodel.finetuning import spans
from etcmodel.preprocessing import raw_files

from . import examples
from .config import TriviaQaInputConfig

__all__ = ["ConvertedExample", "ConverterFactory", "make_features"]

_DOCUMENT = 1  # The index of its text; the question has 0.


class ConvertedExample(NamedTuple):
    """A converted question."""

    windows: list  # Features of each, dicts.
    counts: collections.Counter  # Of parts that were cut or left out.
    problems: list  # Unusable documents, with the reasons: str.


def make_features(example, config, processor):
    """Converts a question with its documents.

    Args:
        example: `TriviaQaExample`.
        config, processor: `TriviaQaInputConfig`, and the result of its `make_processor`.
    Returns:
        `ConvertedExample`. Its features are `question_id`, one str, and those of the processor (see
        `models.features`; L long tokens). In training `labels/starts` and `labels/ends`, 0/1 [L], 1
        at the first and the last token of each answer, only for windows with an answer. Else
        `document`, one str, its name; and those of `spans.window_text`.
    Raises:
        ValueError: naming the example, if the question does not fit, or in training has no answer.
    """
    name = f"example {example.example_id!r}"
    if config.is_training and example.answers is None:
        raise ValueError(f"{name}: field `Answer` is missing, and training needs it")
    converted = ConvertedExample([], collections.Counter(), [])
    for page in example.pages:
        try:
            text = examples.read_document(page, config.evidence_dir)
            _add_windows(converted, example, page, text, config, processor)
        except examples.EvidenceError as error:
            converted.counts[f"documents_{error.kind}"] += 1
            converted.problems.append(str(error))
    if len(converted.problems) == len(example.pages):
        converted.counts["questions_without_evidence"] += 1
        converted.problems.append("the question has no document that can be used")
    elif not converted.windows:
        converted.counts["questions_without_answer"] += 1
    return converted


def _add_windows(converted, example, page, text, config, processor):
    name = f"example {example.example_id!r}"
    batch = processor.batch_of({"question": example.question, "text": text}, name)
    windows = spans.window_places(batch, _DOCUMENT)
    is_cut = bool(batch.encodings[0].cut)
    if not is_cut and (windows < 0).all():
        problem = "the document has no character that the vocabulary knows"
        raise examples.EvidenceError("empty", f"{page.source}/{page.name}: {problem}")
    converted.counts["documents_cut"] += is_cut
    found = examples.find_answers(text, example.answers) if config.is_training else ()
    for row, places in enumerate(windows):
        if (places < 0).all():
            problem = "the question leaves no room for a document"
            raise ValueError(f"{name}: {problem}. Raise --long_seq_length or --global_seq_length.")
        if config.is_training:
            own = spans.span_labels(found, places)
        else:
            own = {"document": [page.name], **spans.window_text(text, places)}
        if config.is_training and not any(own["labels/starts"]):
            converted.counts["windows_without_answer"] += 1
        else:
            features = {"question_id": [example.example_id], **own}
            converted.windows.append({**features, **finetuning.features_of_row(batch, row)})


# TriviaQA's part of the preprocessing: what a worker does to one raw question.


_COUNTS = (
    *(f"documents_{problem}" for problem in (*examples.PROBLEMS, "cut")),
    "windows_without_answer",
    "questions_without_answer",
    "questions_without_evidence",
)


class ConverterFactory(preprocessing.ProcessorConverterFactory):
    """Makes the converter; `fields` are arguments of `TriviaQaInputConfig`."""

    task = "triviaqa"
    input_class = TriviaQaInputConfig
    read = staticmethod(examples.read_questions)
    deals_records = True  # A question may have many documents.
    line_files = ("left_out",)  # The documents that cannot be used.

    def input_config(self, tokenizer):
        examples.check_folder(self.fields.get("evidence_dir"))
        return super().input_config(tokenizer)

    def convert(self, row, config, processor):
        raw_files.check_readable(row["question"])
        example = examples.parse_example(row["question"], config.is_training)
        converted = make_features(example, config, processor)
        left_out = {"place": row["place"], "question_id": example.example_id}
        left_out["problems"] = converted.problems
        return preprocessing.Converted(
            features=converted.windows,
            counts={name: converted.counts[name] for name in _COUNTS},
            lengths={"documents": len(example.pages)},
            lines={"left_out": json.dumps(left_out)} if converted.problems else {},
        )
