"""Decodes the model's outputs to predictions, and measures them."""

import collections
import itertools
from typing import NamedTuple

import numpy as np

from etcmodel.finetuning import metrics as metrics_lib
from etcmodel.finetuning import text_of
from etcmodel.finetuning.metrics import normalize_answer
from etcmodel.preprocessing import raw_files
from etcmodel.text import alignment

from .config import BIO_IDS

__all__ = [
    "NAMES",
    "Score",
    "answer_score",
    "exact_match_counts",
    "exact_match_score",
    "f1_score",
    "generate_predictions",
    "metrics",
    "supporting_facts_score",
]

# HotpotQA's official metrics: answer, supporting facts, and both jointly.
#
# Source: Yang et al. 2018 (arXiv:1809.09600), section 5.2, and the official script
# `hotpot_evaluate_v1.py`, which gives the same numbers.


_CLOSED_KINDS = {"yes": "Y", "no": "N"}


class Score(NamedTuple):
    """Exact match, F1, precision and recall, each in [0, 1]."""

    em: float
    f1: float
    prec: float
    recall: float


NAMES = tuple(part + name for part in ("", "sp_", "joint_") for name in Score._fields)


def f1_score(prediction, ground_truth):
    """Overlap of the words of two answers: see `finetuning.metrics.answer_overlap`."""
    return metrics_lib.answer_overlap(prediction, ground_truth)


def exact_match_score(prediction, ground_truth):
    """Whether two answers are equal once normalized."""
    return normalize_answer(prediction) == normalize_answer(ground_truth)


def answer_score(prediction, ground_truth):
    """The `Score` of one answer."""
    exact = float(exact_match_score(prediction, ground_truth))
    return Score(exact, *f1_score(prediction, ground_truth))


def supporting_facts_score(prediction, gold):
    """The `Score` of one example's supporting facts, sequences of (title, sentence index)."""
    predicted, true = ({tuple(fact) for fact in facts} for facts in (prediction, gold))
    num_common = len(predicted & true)
    precision = num_common / len(predicted) if predicted else 0.0
    recall = num_common / len(true) if true else 0.0
    return Score(float(predicted == true), _f1(precision, recall), precision, recall)


def metrics(gold, prediction):
    """Averages the scores over the gold examples.

    Args:
        gold: iterable of `HotpotQAExample` with labels.
        prediction: {"answer": {id: str}, "sp": {id: [[title, sentence index], …]}}. An example
            without an answer, without facts, or without either scores 0 there and jointly.

    Returns:
        dict of str to float in [0, 1]: em, f1, prec, recall; the same with `sp_` and `joint_`.

    Raises:
        ValueError: if there is no gold example, or one without labels.
    """
    totals = collections.Counter()
    count = 0
    for example in gold:
        count += 1
        for prefix, score in _scores(example, prediction).items():
            for name, value in score._asdict().items():
                totals[prefix + name] += value
    if not count:
        raise ValueError("There is no gold example to evaluate on.")
    return {name: totals[name] / count for name in NAMES}


def _scores(example, prediction):
    _check_labels(example)
    scores = {}
    if (answer := prediction["answer"].get(example.example_id)) is not None:
        scores[""] = answer_score(answer, example.answer)
    if (facts := prediction["sp"].get(example.example_id)) is not None:
        scores["sp_"] = supporting_facts_score(facts, example.supporting_facts)
    if len(scores) == 2:
        scores["joint_"] = _joint(scores[""], scores["sp_"])
    return scores


def _joint(answer, facts):
    precision, recall = answer.prec * facts.prec, answer.recall * facts.recall
    return Score(answer.em * facts.em, _f1(precision, recall), precision, recall)


def _f1(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def exact_match_counts(gold, prediction):
    """Counts the answers by true and predicted kind.

    The kinds are `Y` (yes), `N` (no) and `A` (any other answer, once normalized even an empty one).
    For a predicted answer, `A` means the correct one if the answer is a span, and any text if it is
    yes or no; other kinds are `B` (a wrong span where the answer is a span) and `E` (empty).

    Args:
        gold, prediction: see `metrics`. Examples without a predicted answer count as empty.

    Returns:
        dict from `counts/<true>_<predicted>` to a number, and from `percentages/<true>_<predicted>`
        to its fraction of the examples of this true kind, in [0, 1].

    Raises:
        ValueError: if a gold example has no labels.
    """
    counts = collections.Counter()
    totals = collections.Counter()
    for example in gold:
        _check_labels(example)
        answer = prediction["answer"].get(example.example_id) or ""
        true_kind, kind = _kinds(normalize_answer(example.answer), normalize_answer(answer))
        counts[f"{true_kind}_{kind}"] += 1.0
        totals[true_kind] += 1
    named = {f"counts/{pair}": count for pair, count in sorted(counts.items())}
    shares = {f"percentages/{pair}": counts[pair] / totals[pair[0]] for pair in sorted(counts)}
    return named | shares


def _kinds(answer, predicted):
    """The true and the predicted kind; both answers are normalized."""
    true_kind = _CLOSED_KINDS.get(answer, "A")
    if predicted in _CLOSED_KINDS:
        return true_kind, _CLOSED_KINDS[predicted]
    if true_kind != "A":
        return true_kind, "A" if predicted else "E"
    if predicted == answer:
        return true_kind, "A"
    return true_kind, "B" if predicted else "E"


def _check_labels(example):
    for name in ("answer", "supporting_facts"):
        if getattr(example, name) is None:
            raise ValueError(
                f"example {example.example_id!r}: field `{name}` is missing, and evaluation needs "
                "it. Give a gold file with labels."
            )


# Decodes model outputs to HotpotQA's prediction format.
#
# An answer is a span within one sentence or title, of at most `max_answer_length` tokens, whose
# sentence is predicted to be a supporting one. Its score is the product of the probabilities of its
# ends (span), or the mean of its tokens' probabilities (BIO).
#
# Differences from the release (`release_compatible=True` reproduces it):
# - There the CLS token counts as a supporting sentence whenever the last global token does; an
#   answer may go from it to a padding token.
# - Of spans with the same score the one that begins last wins there, then the one that ends last;
#   here the one that begins first, then the one that ends first.
# - There the answer is empty without a span in a supporting sentence; here it is the best span of
#   any sentence, since an empty answer is never right.
# - There SentencePiece answers are spelled from the pieces, with `<unk>`; here they are the raw
#   text.
# - There a fact is listed twice where two paragraphs have the same title.
# - There a BIO answer that goes on to the input's last token is lost.


def generate_predictions(outputs, examples, tokenizer, config):
    """Decodes the outputs of a model.

    Args:
        outputs: iterable of dict of NumPy arrays, one an example (L long, G global tokens, k best):
            unique_ids: str or bytes, scalar or [1].
            long_token_ids, long_sentence_ids, long_token_type_ids: int [L].
            global_paragraph_ids, global_sentence_ids: int [G].
            long_tokens_to_unigrams: int [L]; only used with word pieces and `release_compatible`.
            supporting_facts_probs: float [G].
            answer_types: int, scalar or [1].
            answer_begin_top_probs, answer_end_top_probs: float [k]; answer_begin_top_indices,
                answer_end_top_indices: int [k]; all four for spans.
            answer_bio_probs: float [L], answer_bio_ids: int [L]; for BIO.
        examples: iterable of the `HotpotQAExample`s. Outputs for other examples are ignored.
        tokenizer: the `FullTokenizer` that the features were made with.
        config: a `DecodingConfig`.

    Returns:
        {"answer": {id: str}, "sp": {id: [[title, sentence index], …]}} for every example; without
        an output, the answer is empty and there are no facts.

    Raises:
        ValueError: if two examples have the same id; if there are outputs, but none matches an
            example.
    """
    examples = raw_files.by_id(examples)
    prediction = {
        "answer": dict.fromkeys(examples, ""),
        "sp": {example_id: [] for example_id in examples},
    }
    example_id, num_found = None, 0
    for output in outputs:
        example_id = text_of(output["unique_ids"])
        if example_id in examples:
            num_found += 1
            decoder = _Decoder(output, examples[example_id], tokenizer, config)
            prediction["answer"][example_id] = decoder.answer()
            prediction["sp"][example_id] = decoder.supporting_facts()
    if example_id is not None and not num_found:
        raise ValueError(
            f"None of the records is of one of the {len(examples)} examples of the raw file; the "
            f"last has id {example_id!r}. Were they made from another file?"
        )
    return prediction


class _Decoder:
    """Decodes the outputs for one example."""

    def __init__(self, output, example, tokenizer, config):
        self._output = output
        self._example = example
        self._tokenizer = tokenizer
        self._config = config
        self._sentence_ids = np.asarray(output["long_sentence_ids"])
        self._types = np.asarray(output["long_token_type_ids"])
        probs = np.asarray(output["supporting_facts_probs"])
        self._supports = probs >= config.supporting_fact_threshold
        if least := config.min_supporting_facts:
            sentences = [place for place in range(len(probs)) if self._is_sentence(place)]
            self._supports[sorted(sentences, key=lambda place: -probs[place])[:least]] = True

    def supporting_facts(self):
        """[[title, sentence index], …] in the order of the global input."""
        facts = []
        for position in np.flatnonzero(self._supports):
            if self._is_sentence(position):
                paragraph, sentence = self._place(position)
                fact = [paragraph.title, sentence]
                if self._config.release_compatible or fact not in facts:
                    facts.append(fact)
        return facts

    def _is_sentence(self, position):
        """Whether a global token represents a sentence."""
        paragraph, sentence = self._place(position)
        return paragraph is not None and sentence >= 0

    def answer(self):
        """The answer's text; '' without an answer."""
        names = {index: name for name, index in self._config.answer_types_map.items()}
        answer_type = names[int(np.ravel(self._output["answer_types"])[0])]
        if answer_type != "span":
            return answer_type
        span = self._best_span()
        if span is None:
            return ""
        return self._release_text(*span) if self._config.release_compatible else self._text(*span)

    def _best_span(self):
        """(first, last) long token of the best valid span, or None."""
        make = self._span_candidates if self._is_span() else self._bio_candidates
        best, best_rank = None, None
        for first, last, score in make():
            if not self._is_valid(first, last):
                continue
            supported = bool(self._supports[self._sentence_ids[first]])
            if self._config.release_compatible:
                is_candidate, rank = supported, (score, first, last)
            else:
                is_candidate, rank = True, (supported, score, -first, -last)
            if is_candidate and (best is None or rank > best_rank):
                best, best_rank = (first, last), rank
        return best

    def _is_span(self):
        return self._config.answer_encoding_method == "span"

    def _is_valid(self, first, last):
        config = self._config
        types = (config.sentence_token_type_id, config.title_token_type_id)
        sentence_id = self._sentence_ids[first]
        return (
            0 <= last - first < config.max_answer_length
            and sentence_id == self._sentence_ids[last]
            and self._types[first] in types
            and (config.release_compatible or sentence_id >= 0)
        )

    def _span_candidates(self):
        begins, ends = (
            list(
                zip(
                    self._output[f"answer_{end}_top_indices"],
                    self._output[f"answer_{end}_top_probs"],
                    strict=True,
                )
            )
            for end in ("begin", "end")
        )
        for (first, begin_prob), (last, end_prob) in itertools.product(begins, ends):
            yield int(first), int(last), begin_prob * end_prob

    def _bio_candidates(self):
        """Runs of tokens: a begin and the insides after it, or insides alone."""
        ids = np.asarray(self._output["answer_bio_ids"])
        probs = np.asarray(self._output["answer_bio_probs"])
        is_in = ids != BIO_IDS["outside"]
        was_in = np.concatenate([[False], is_in[:-1]])
        starts = np.flatnonzero(is_in & ((ids == BIO_IDS["begin"]) | ~was_in))
        for first in starts:
            last = int(first)
            while last + 1 < len(ids) and ids[last + 1] == BIO_IDS["inside"]:
                last += 1
            if self._config.release_compatible and last + 1 == len(ids):
                continue  # There a run that nothing ends is lost.
            yield int(first), last, probs[first : last + 1].mean()

    def _place(self, position):
        """The paragraph and the sentence index (-1: title) of a global token, or (None, -1)."""
        index = int(self._output["global_paragraph_ids"][position])
        sentence = int(self._output["global_sentence_ids"][position])
        if not 0 <= index < len(self._example.paragraphs):
            return None, -1
        return self._example.paragraphs[index], sentence

    def _sentence(self, first):
        """The raw text of the sentence or title that long token `first` is in."""
        paragraph, sentence = self._place(self._sentence_ids[first])
        if paragraph is None:
            return ""
        if self._types[first] == self._config.title_token_type_id:
            return paragraph.title
        return paragraph.sentences[sentence] if 0 <= sentence < len(paragraph.sentences) else ""

    def _text(self, first, last):
        """The raw text of a span, by tokenizing its sentence again."""
        sentence = self._sentence(first)
        start = int(np.flatnonzero(self._sentence_ids == self._sentence_ids[first])[0])
        first, last = first - start, last - start
        if self._tokenizer.sp_model:
            tokenized = alignment.get_sentencepiece_tokenized_text(sentence, self._tokenizer)
            tokens = tokenized.chars_to_tokens
            chars = [char for char, token in enumerate(tokens) if first <= token <= last]
            return tokenized.text[chars[0] : chars[-1] + 1].strip() if chars else ""
        tokenized = alignment.get_wordpiece_tokenized_text(sentence, self._tokenizer)
        words = tokenized.tokens_to_unigrams[first : last + 1]
        return self._final_text(tokenized.tokens[first : last + 1], tokenized.unigrams, words)

    def _release_text(self, first, last):
        """The text of a span as the release finds it, sometimes in another sentence."""
        ids = self._output["long_token_ids"][first : last + 1]
        tokens = self._tokenizer.convert_ids_to_tokens(ids)
        if self._tokenizer.sp_model:
            return alignment.sentencepiece_detokenize(tokens)
        unigrams, _, _ = alignment.whitespace_split_with_indices(self._sentence(first))
        words = self._output["long_tokens_to_unigrams"][first : last + 1]
        return self._final_text(tokens, unigrams, words)

    def _final_text(self, tokens, unigrams, words):
        """Projects word pieces onto the `unigrams` number `words[0]` to `words[-1]`."""
        if not len(words):
            return ""
        raw = " ".join(unigrams[words[0] : words[-1] + 1])
        normalized = alignment.wordpiece_tokens_to_normalized_text(tokens)
        return alignment.get_final_text(normalized, raw, self._config.do_lower_case)
