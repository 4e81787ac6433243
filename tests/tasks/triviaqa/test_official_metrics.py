"""The official metrics, against a slow restatement, on predictions full of borderline text."""

import json
import unicodedata

import hypothesis
import pytest
from hypothesis import strategies as st

from etcmodel.tasks.triviaqa import examples, metrics

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" + "\N{LEFT SINGLE QUOTATION MARK}"
PUNCTUATION += "\N{RIGHT SINGLE QUOTATION MARK}\N{ACUTE ACCENT}\N{GRAVE ACCENT}"

PIECES = (
    *("the", "The", "THE", "a", "A", "an", "An", "theatre", "ant", "Beatles", "BEATLES", "o"),
    *("neil",),
    *("1", "000", "e.", "g", "é", "É", "E\u0301", "İ", "ß", "ΟΔΟΣ", "ﬁ", "٣", "½", "日本"),
    *("\U0001f600",),
    *(" ", "  ", "_", "__", "-", "'", '"', ".", ",", "!", "(", "]", "\\", "$", "&", "~", "^"),
    *("\u2018", "\u2019", "\u00b4", "`", "\u201c", "\u201d", "\u2013", "\u2026", "\u00ab"),
    *("\t", "\n", "\r", "\x0b", "\x1c", "\x85", "\u00a0", "\u2003", "\u200b", "\u3000", "\x00"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)
questions = st.lists(
    st.fixed_dictionaries(
        {
            "NormalizedAliases": st.lists(texts, min_size=1, max_size=3),
            "HumanAnswers": st.none() | st.lists(texts, max_size=2),
            "predicted": st.none() | texts | st.integers(0, 2),  # An int: one of the answers.
            "decoration": st.sampled_from(
                ["{}", "The {}", "{}.", "_{}_", "\u2018{}\u2019", "{} {}"]
            ),
            "verified": st.booleans(),
        }
    ),
    min_size=1,
    max_size=4,
)


def slow_normalized(text):
    """Character by character, without any of Python's ready-made parts of it."""
    kept = [" " if char in PUNCTUATION else char for char in text.replace("_", " ").lower()]
    runs, is_word = [""], None
    for char in kept:
        belongs = char.isalnum() or char == "_"
        if belongs != is_word:
            runs.append("")
        is_word = belongs
        runs[-1] += char
    for index, run in enumerate(runs):
        if run in ("a", "an", "the"):
            runs[index] = " "
    words, word = [], ""
    for char in "".join(runs) + " ":
        if char.isspace():
            words += [word] if word else []
            word = ""
        else:
            word += char
    return words


def slow_f1(predicted, right):
    left, common = list(right), 0
    for word in predicted:
        if word in left:
            left.remove(word)
            common += 1
    if common == 0:
        return 0.0
    precision, recall = common / len(predicted), common / len(right)
    return 2 * precision * recall / (precision + recall)


def slow_metrics(given, predictions):
    """Sums over the questions, as the official script goes."""
    totals = {"em": 0.0, "f1": 0.0, "answered": 0.0}
    for key, question in given:
        if key not in predictions:
            continue
        totals["answered"] += 1
        truths = [*question["NormalizedAliases"], *(question["HumanAnswers"] or [])]
        right = [slow_normalized(truth) for truth in truths]
        words = slow_normalized(predictions[key])
        totals["em"] += max(float(words == truth) for truth in right)
        totals["f1"] += max(slow_f1(words, truth) for truth in right)
    return {name: total / len(given) for name, total in totals.items()}


@hypothesis.settings(max_examples=500)
@hypothesis.given(questions)
def test_scores_are_those_of_the_restatement(drawn):
    gold, given, predictions = [], [], {}
    for number, question in enumerate(drawn):
        names = ("NormalizedAliases", "HumanAnswers")
        answer = {name: question[name] for name in names if question[name] is not None}
        if not any(slow_normalized(text) for texts in answer.values() for text in texts):
            answer["NormalizedAliases"] = question["NormalizedAliases"] = ["the end"]
        raw = {"QuestionId": f"q{number}", "Question": "?", "Answer": answer}
        gold.append(
            examples.parse_example({**raw, "QuestionPartOfVerifiedEval": question["verified"]})
        )
        given.append((f"q{number}", question))
        predicted = question["predicted"]
        if isinstance(predicted, int):
            truths = question["NormalizedAliases"]
            predicted = question["decoration"].replace("{}", truths[predicted % len(truths)])
        if predicted is not None:
            predictions[f"q{number}"] = predicted
    predictions["of no question"] = "red"
    found = metrics.metrics(gold, json.loads(json.dumps(predictions)))
    wanted = slow_metrics(given, predictions)
    if verified := [(key, question) for key, question in given if question["verified"]]:
        part = slow_metrics(verified, predictions)
        wanted |= {f"verified_{name}": value for name, value in part.items()}
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The Beatles", "beatles"),
        ("A_Hard_Day\u2019s_Night", "hard day s night"),
        ("rock'n'roll", "rock n roll"),
        ("U.S.A.", "u s"),  # The last letter is an article now.
        ("the-the", ""),
        ("the\u2013end", "\u2013end"),
        ("theatre_an_", "theatre"),
        ("`\u00b4\u2018", ""),
    ],
)
def test_normalized_answers_by_hand(text, normalized):
    assert examples.normalize_answer(text) == normalized
    assert " ".join(slow_normalized(text)) == normalized


@hypothesis.example("ΟΔΟΣ^theatre", "ΟΔΟΣ theatre")  # Of these sigmas one ends a word.
@hypothesis.example("an ΟΔΟΣ^theatre", "ΟΔΟΣ^theatre")
@hypothesis.given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), texts)
def test_what_is_found_in_a_text_is_right_and_nothing_is_missed(text, answer):
    wanted = examples.normalize_answer(answer)
    found = examples.find_answers(text, [answer, "no such"])
    separators = {*PUNCTUATION} | {char for char in text if char.isspace()}
    # Words are whole, and neither the first nor the last one is an article.
    ends = [0, *(i + 1 for i, char in enumerate(text) if char in separators), len(text) + 1]
    words = [(start, end - 1) for start, end in zip(ends[:-1], ends[1:], strict=True)]
    words = [(start, end) for start, end in words if examples.normalize_answer(text[start:end])]
    slow = [
        (start, end)
        for index, (start, _) in enumerate(words)
        for _, end in words[index:]
        if wanted and examples.normalize_answer(text[start:end]) == wanted
    ]
    assert found == slow


@pytest.mark.parametrize(
    ("answer", "form"), [("Zoë Čapek", "NFD"), ("Zoe\u0308 C\u030capek", "NFC")]
)
def test_accents_may_be_written_in_either_way(answer, form):
    text = unicodedata.normalize(form, "It was the Zoë-Čapek, not Zoe Capek.")
    ((start, end),) = examples.find_answers(text, [answer, "no"])
    assert unicodedata.normalize("NFC", text[start:end]) == "Zoë-Čapek"


def test_a_text_tells_an_answer_in_whatever_spelling():
    text = "At the Battle of the Bulge's end, the battle-of-bulge (BATTLE OF BULGE) was won."
    spans = examples.find_answers(text, ["battle of bulge", "won", "on"])
    assert [text[start:end] for start, end in spans] == [
        "Battle of the Bulge",
        "battle-of-bulge",
        "BATTLE OF BULGE",
        "won",
    ]


def gold(*pages, **fields):
    raw = {"QuestionId": "q", "Question": "?", "Answer": {"NormalizedAliases": ["red"]}}
    return examples.parse_example({**raw, "SearchResults": list(pages), **fields})


def test_by_document_each_document_is_a_question():
    pages = ({"Filename": "1.txt", "DocPartOfVerifiedEval": True}, {"Filename": "2.txt"})
    example = gold(*pages, QuestionPartOfVerifiedEval=True)
    found = metrics.metrics([example], {"q--1.txt": "Red!", "q": "red"}, by_document=True)
    assert found == {
        "em": 0.5,
        "f1": 0.5,
        "answered": 0.5,
        "verified_em": 1.0,
        "verified_f1": 1.0,
        "verified_answered": 1.0,
    }


def test_gold_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="two examples with the id 'q'"):
        metrics.metrics([gold(), gold()], {})
    with pytest.raises(ValueError, match="example 'q': field `Answer` is missing, and evaluation"):
        metrics.metrics([gold(Answer=None)], {})
    with pytest.raises(ValueError, match="no gold example"):
        metrics.metrics([], {})
