"""Finding phrases among words, against slow references."""

from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tasks.openkp import phrases

WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)
ODD_WORDS = st.lists(st.sampled_from(["", "a", "B", "a\u00a0b", "\t", "\u3000", "\n"]), min_size=1)


def test_a_single_blank_separates_words_and_nothing_else_does():
    words = ["", "red\u00a0fox", "", "den\tand", "\u3000", "tree\n", ""]
    assert phrases.split(" red\u00a0fox  den\tand \u3000 tree\n ") == words
    assert phrases.normalized(["RED\u00a0Fox", "", "Den"]) == "red\u00a0fox  den"


@given(ODD_WORDS)
@settings(max_examples=200)
def test_joining_and_splitting_undo_each_other(words):
    assert phrases.split(phrases.joined(words)) == words


@given(ODD_WORDS, ODD_WORDS)
@settings(max_examples=200)
def test_a_phrase_occurs_where_its_words_stand_in_the_text(words, phrase):
    phrase = phrase[:2]
    place = slow_find([word.lower() for word in phrase], [word.lower() for word in words])
    found = phrases.occurs_in(phrases.joined(words), phrases.joined(phrase))
    assert found == (place is not None)


def slow_find(phrase, words):
    size = len(phrase)
    places = (i for i in range(len(words) - size + 1) if words[i : i + size] == phrase)
    return next(places, None)


@given(WORDS, WORDS)
@settings(max_examples=200)
def test_find_matches_slow_reference(phrase, words):
    phrase = phrase[:3]
    assert phrases.find(phrase, words) == slow_find(phrase, words)


def test_find_within_a_range():
    words = list("abcab")
    assert phrases.find(["a", "b"], words, begin=1) == 3
    assert phrases.find(["a", "b"], words, begin=1, end=4) is None
    assert phrases.find(["b", "c"], words, end=2) is None


@given(WORDS, st.sets(st.integers(1, 11), max_size=3))
@settings(max_examples=200)
def test_first_occurrences_match_slow_reference(words, breaks):
    def is_whole(place, size):
        return place + size <= len(words) and not any(place < b < place + size for b in breaks)

    for size, row in enumerate(phrases.first_occurrences(words, 4, breaks), 1):
        for place, first in enumerate(row):
            same = [
                i
                for i in range(place)
                if is_whole(i, size)
                and is_whole(place, size)
                and words[i : i + size] == words[place : place + size]
            ]
            assert first == min([*same, place])


def test_more_words_than_the_text_has():
    assert phrases.first_occurrences(["a"], 3) == [[0], [0], [0]]
