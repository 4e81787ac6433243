"""HotpotQA for encoders of one sequence, in two stages, as Longformer reads it; plain Python.

The question and all paragraphs are one text:

    [CLS] [q] question [/q] <t> title 1 </t> sentence 1 [s] sentence 2 [s] … <t> title 2 </t> …

A model of the first stage scores each paragraph at its <t>, each sentence at the [s] behind it, and
the answer. One of the second stage does the same with the few paragraphs that the first kept
(Beltagy et al. 2020, arXiv:2004.05150, section 6.1 and appendix D, "HotpotQA").

A paragraph that does not fit is cut behind its last whole sentence, and those after it are left
out.
"""

import functools
from typing import NamedTuple

import numpy as np

from etcmodel.finetuning import text_of
from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.padding import padded
from etcmodel.text import alignment, targets
from etcmodel.text.pieces import Splitter
from etcmodel.text.processor import ends_of

from .config import MARKS, NO_ANSWER, NO_SUPPORTING_FACT, Kind
from .examples import parse_scores

__all__ = [
    "DECODING_FEATURES",
    "PADDING",
    "MarkedExample",
    "Part",
    "best_facts",
    "best_span",
    "make_features",
    "paragraphs_kept",
    "parts_of",
    "predict",
    "read_first_stage",
]

# The features of tokens, and their padding values.
PADDING = {"token_ids": 0, "kinds": 0}
DECODING_FEATURES = ("parts", "token_starts", "token_ends")
_NUM_PARAGRAPHS = 2  # Of the supporting facts of every question.


class Part(NamedTuple):
    """A title, whose `sentence` is -1, or a sentence, by its index in the paragraph."""

    paragraph: int
    sentence: int
    text: str


def parts_of(example):
    """All titles and sentences of a `HotpotQAExample`, in order: list of `Part`."""
    return [
        Part(number, sentence, text)
        for number, paragraph in enumerate(example.paragraphs)
        for sentence, text in enumerate([paragraph.title, *paragraph.sentences], -1)
    ]


# From an example to its features.


class MarkedExample(NamedTuple):
    """A converted example: its features (None if it is dropped), and what is counted."""

    features: dict | None
    drop_reason: str | None
    num_long_tokens: int
    num_left_out: int  # Titles and sentences without room.
    num_global_tokens: int = 0


def make_features(example, config, tokenizer, kept=None):
    """Converts an example.

    Args:
        example: a `HotpotQAExample`; in training, with labels.
        config: a `HotpotQAInputConfig`.
        tokenizer: its tokenizer, which knows `MARKS`.
        kept: set of int. The paragraphs that the first stage kept; None: all.
    Returns:
        `MarkedExample`. Its features (L long tokens):
            unique_ids, type, level: one str.
            token_ids, kinds: int [L]. The latter are `Kind`s; 0 is padding.
        In inference or debug: parts, int [L], the number in `parts_of` of the title or sentence
            that a token is of, its marks included, else -1; token_starts and token_ends, int [L],
            the characters of a token of text in its part's text, else -1.
        In training: supporting_facts, int [L], 1 at the marks of the sentences to find and of their
            paragraphs; answer_types, one int; answer_begins and answer_ends, one int each, the
            tokens of the answer's first mention in a supporting sentence or title, -1 for yes and
            no.
        In debug: long_tokens, str, not padded.
    Raises:
        ValueError: naming the example, if the question has no tokens or does not fit.
    """
    parts = parts_of(example)
    numbers = [x for x, part in enumerate(parts) if kept is None or part.paragraph in kept]
    rows = _rows(example, [(number, parts[number]) for number in numbers], tokenizer)
    lengths = np.cumsum([row.shape[1] for row in rows])
    limit = config.long_seq_length or lengths[-1]
    if lengths[0] > limit:
        raise ValueError(
            f"example {example.example_id!r}: the CLS token and the question need {lengths[0]} "
            f"tokens, more than long_seq_length={limit}"
        )
    num_rows = int(np.searchsorted(lengths, limit, side="right"))
    columns = np.concatenate(rows[:num_rows], axis=1)
    labels, drop_reason = {}, None
    if config.is_training:
        labels, drop_reason = _labels(example, parts, columns, config)
    names = [*PADDING, *(DECODING_FEATURES if config.debug or not config.is_training else ())]
    features = {
        "unique_ids": [example.example_id],
        "type": [example.type],
        "level": [example.level],
        **{
            name: padded(values, config.long_seq_length, PADDING.get(name, -1))
            for name, values in zip(names, columns.tolist(), strict=False)
        },
        **labels,
    }
    if config.debug:
        features["long_tokens"] = tokenizer.convert_ids_to_tokens(columns[0].tolist())
    return MarkedExample(
        features=None if drop_reason else features,
        drop_reason=drop_reason,
        num_long_tokens=columns.shape[1],
        num_left_out=len(rows) - num_rows,
    )


def _rows(example, parts, tokenizer):
    """The tokens of the question and of each of the `parts`, pairs of a number and a `Part`.

    Returns:
        list of int [5, num_tokens], the columns of `PADDING` and `DECODING_FEATURES`.
    """
    texts = [example.question, *(part.text for _, part in parts)]
    # In front of a word, byte-level BPE has a space.
    pieces = _splitter(tokenizer).split(texts, [not text[:1].isspace() for text in texts])
    if not pieces.counts[0]:
        raise ValueError(
            f"example {example.example_id!r}: field `question`: {example.question!r:.80} has no "
            "tokens"
        )
    marks = dict(zip(MARKS, tokenizer.convert_tokens_to_ids(MARKS), strict=True))
    own = np.stack([pieces.ids, np.full_like(pieces.ids, Kind.TEXT)])
    own = np.concatenate([own, np.zeros_like(own[:1]), [pieces.starts, pieces.ends]])
    question, *others = np.split(own, np.cumsum(pieces.counts)[:-1], axis=1)
    question[1:] = [[Kind.QUESTION], [-1], [-1], [-1]]
    start = [(ends_of(tokenizer)[0], Kind.QUESTION), (marks["[q]"], Kind.QUESTION)]
    rows = [_between(start, question, [(marks["[/q]"], Kind.QUESTION)], -1)]
    for (number, part), tokens in zip(parts, others, strict=True):
        tokens[2] = number
        if part.sentence < 0:
            title, end = (marks["<t>"], Kind.TITLE), (marks["</t>"], Kind.TITLE_END)
            rows.append(_between([title], tokens, [end], number))
        else:
            rows.append(_between([], tokens, [(marks["[s]"], Kind.SENTENCE)], number))
    return rows


def _between(before, tokens, after, number):
    """Tokens between marks, which are pairs of an id and a `Kind`: int [5, num_tokens]."""

    def columns(marks):
        return np.array([(*mark, number, -1, -1) for mark in marks], int).reshape(-1, 5).T

    return np.concatenate([columns(before), tokens, columns(after)], axis=1)


@functools.lru_cache(maxsize=4)
def _splitter(tokenizer):
    return Splitter(tokenizer)


def _labels(example, parts, columns, config):
    """The labels, and the reason to drop the example, or None."""
    _, kinds, numbers, *_ = columns
    facts = set(example.supporting_facts)
    titles = {fact.title for fact in facts}
    is_fact = [
        title in titles if part.sentence < 0 else (title, part.sentence) in facts
        for part in parts
        for title in [example.paragraphs[part.paragraph].title]
    ]
    supports = np.array([*is_fact, False])[numbers]  # The last is that of no part.
    if not (supports & (kinds == Kind.SENTENCE)).any():
        return {}, NO_SUPPORTING_FACT
    begin, end, is_span = -1, -1, example.answer not in ("yes", "no")
    if is_span:
        mentions = _mentions(example.answer, parts, supports, columns)
        if not mentions:
            return {}, NO_ANSWER
        begin, end = min(mentions, key=lambda span: span[1])
    is_mark = (kinds == Kind.TITLE) | (kinds == Kind.SENTENCE)
    marked = (supports & is_mark).astype(int).tolist()
    return {
        "supporting_facts": padded(marked, config.long_seq_length),
        "answer_types": [config.answer_types_map["span" if is_span else example.answer]],
        "answer_begins": [begin],
        "answer_ends": [end],
    }, None


def _mentions(answer, parts, supports, columns):
    """The (first, last) tokens of an answer's mentions; letters within words only if need be."""
    _, kinds, numbers, *places = columns
    for find_chars in (alignment.find_word_spans, alignment.find_char_spans):
        found = []
        for number in np.unique(numbers[supports]):
            tokens = np.flatnonzero((numbers == number) & (kinds == Kind.TEXT))
            chars = alignment.in_any_form(find_chars)(parts[number].text, answer)
            for first, last in chars if len(tokens) else ():
                begins, ends = targets.span_ends([(first, last + 1)], np.array(places)[:, tokens])
                if begins.any():
                    found.append((int(tokens[begins.argmax()]), int(tokens[ends.argmax()])))
        if found:
            return found
    return []


# The paragraphs that the first stage keeps.


def read_first_stage(path):
    """Reads the scores of a first stage, which `write_predictions` wrote.

    Args:
        path: str. JSON lines of `id` and `paragraphs`, pairs of a title and a score.
    Returns:
        dict from an example's id to its scores, a tuple of (title, float).
    Raises:
        ValueError: naming the file and the line, if one is malformed.
    """
    found = {}
    for place, raw in raw_files.read_json_elements(path):
        try:
            raw_files.check_readable(raw)
            found.update([parse_scores(raw)])
        except ValueError as error:
            raise ValueError(
                f"{path}: {place}: {error}. Give the …_paragraphs.jsonl of the first stage."
            ) from None
    return found


def paragraphs_kept(example, config, by_id):
    """The indices of the paragraphs that a model reads: set of int; None: all.

    Args:
        example: a `HotpotQAExample`. Its own scores, if any, are checked here, and come before
            those of a file.
        config: a `HotpotQAInputConfig`. Keeps at most `max_num_paragraphs` with a score higher than
            `paragraph_threshold`; the best two anyway, since no question has supporting facts in
            fewer.
        by_id: of `read_first_stage`.
    Raises:
        ValueError: naming the example, if it has no scores, or they are malformed or of other
            paragraphs.
    """
    if not config.max_num_paragraphs:
        return None
    name, source = f"example {example.example_id!r}", "its field `paragraphs`"
    own = [paragraph.title for paragraph in example.paragraphs]
    if example.scores is None:
        source, scores = config.first_stage, by_id.get(example.example_id)
    else:
        _, scores = parse_scores({"id": example.example_id, "paragraphs": example.scores})
    if source is None:
        raise ValueError(
            f"{name} has no field `paragraphs`, the scores that the first stage predicts and the "
            "second reads. Add it, or give --first_stage."
        )
    if scores is None or not {title for title, _ in scores} <= {*own}:
        problem = "nothing of it" if scores is None else "paragraphs that it has not"
        raise ValueError(
            f"{name}: {source} has {problem}. Predict these examples with the first stage."
        )
    ranked = sorted(scores, key=lambda pair: -pair[1])[: config.max_num_paragraphs]
    number = sum(score > config.paragraph_threshold for _, score in ranked)
    kept = {title for title, _ in ranked[: max(number, _NUM_PARAGRAPHS)]}
    return {index for index, title in enumerate(own) if title in kept}


# From the model's outputs to predictions.


def best_facts(paragraph_logits, sentence_logits, threshold=0.5):
    """The most probable supporting facts that are of exactly two paragraphs.

    A paragraph supports the answer if and only if one of its sentences does. Of all choices of
    sentences of two paragraphs, this one is the most probable, by the scores of both.

    Args:
        paragraph_logits: dict from paragraph to logit.
        sentence_logits: dict from paragraph to a dict from sentence to logit. Those without a
            sentence are not chosen. If there is one alone, all are of it.
        threshold: float. Probability from which a sentence counts as a supporting fact.
    Returns:
        list of (paragraph, sentence), sorted.
    """
    probability = np.clip(threshold, 1e-6, 1 - 1e-6)
    shift = np.log(probability) - np.log1p(-probability)
    chosen = {}
    for paragraph, logits in sentence_logits.items():
        margins = {sentence: logit - shift for sentence, logit in logits.items()}
        best = max(margins, key=margins.get, default=None)
        if best is not None:
            found = [x for x, margin in margins.items() if margin >= 0] or [best]
            gain = paragraph_logits[paragraph] + sum(margins[x] for x in found)
            chosen[paragraph] = (gain, found)
    ranked = sorted(chosen, key=lambda paragraph: -chosen[paragraph][0])[:_NUM_PARAGRAPHS]
    return sorted((paragraph, x) for paragraph in ranked for x in chosen[paragraph][1])


def best_span(begin_logits, end_logits, parts, max_length):
    """The span with the highest sum of logits within a title or sentence.

    Args:
        begin_logits, end_logits: float [num_tokens].
        parts: int [num_tokens]. The part of each token of text, whose tokens are adjacent; -1 for
            other tokens.
        max_length: int. Tokens of the longest span.
    Returns:
        (first, last) token, the first such span if there are several; None without text.
    """
    number = len(parts)
    places = np.arange(number)[:, np.newaxis] + np.arange(min(max_length, number))
    lasts = np.minimum(places, number - 1)
    is_valid = (places < number) & (parts[lasts] == parts[:, np.newaxis]) & (parts[lasts] >= 0)
    if not is_valid.any():
        return None
    sums = np.asarray(begin_logits, float)[:, np.newaxis] + np.asarray(end_logits, float)[lasts]
    first, length = np.unravel_index(np.where(is_valid, sums, -np.inf).argmax(), sums.shape)
    return int(first), int(first + length)


def predict(outputs, examples, config):
    """Predictions from the model's outputs.

    Args:
        outputs: iterable of dicts, one an example: `unique_ids`, the features of `make_features` at
            inference, and the outputs of `model.MarkedHotpotQaModel`.
        examples: iterable of `HotpotQAExample`, in any order; there may be more of them.
        config: a `DecodingConfig`.
    Returns:
        {"answer": {id: str}, "sp": {id: [[title, sentence index], …]}, "paragraphs": {id: [[title,
        score], …]}}. The first two are the official format; scores are logits.
    Raises:
        ValueError: if two examples have the same id, or an output matches no example.
    """
    by_id = raw_files.by_id(examples)
    predictions = {"answer": {}, "sp": {}, "paragraphs": {}}
    for output in outputs:
        example_id = text_of(output["unique_ids"])
        if example_id not in by_id:
            raise ValueError(f"Example {example_id!r} of the records is not in the raw file.")
        example = by_id[example_id]
        parts, logits = parts_of(example), np.ravel(output["supporting_facts_logits"]).astype(float)
        kinds, numbers = np.ravel(output["kinds"]), np.ravel(output["parts"])
        paragraphs, sentences = {}, {}
        for place in np.flatnonzero((kinds == Kind.TITLE) | (kinds == Kind.SENTENCE)):
            part = parts[numbers[place]]
            if part.sentence < 0:
                paragraphs[part.paragraph], sentences[part.paragraph] = logits[place], {}
            else:
                sentences[part.paragraph][part.sentence] = logits[place]
        titles = [paragraph.title for paragraph in example.paragraphs]
        facts = best_facts(paragraphs, sentences, config.supporting_fact_threshold)
        predictions["sp"][example_id] = [[titles[x], sentence] for x, sentence in facts]
        predictions["paragraphs"][example_id] = [
            [titles[x], float(logit)] for x, logit in paragraphs.items()
        ]
        predictions["answer"][example_id] = _answer(output, parts, config)
    return predictions


def _answer(output, parts, config):
    """The text of the answer; '' if there is none in the input."""
    names = {index: name for name, index in config.answer_types_map.items()}
    answer_type = names[int(np.ravel(output["answer_types"])[0])]
    if answer_type != "span":
        return answer_type
    kinds, numbers, starts, ends = (np.ravel(output[x]) for x in ("kinds", *DECODING_FEATURES))
    logits = (np.ravel(output[f"answer_{end}_logits"]) for end in ("begin", "end"))
    of_text = np.where(kinds == Kind.TEXT, numbers, -1)
    span = best_span(*logits, of_text, config.max_answer_length)
    if span is None:
        return ""
    first, last = span
    return parts[numbers[first]].text[starts[first] : ends[last]].strip()
