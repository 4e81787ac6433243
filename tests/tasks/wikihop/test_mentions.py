"""Where candidates are found in a sentence, and which of several wins."""

import pytest

from etcmodel.tasks.wikihop import mentions
from tests.tasks.wikihop import tokenizers


@pytest.fixture(scope="module", params=["wordpiece", "sentence_pieces"])
def tokenizer(request, tmp_path_factory):
    return getattr(tokenizers, request.param)(tmp_path_factory.mktemp("vocab"))


def found(sentence, candidates, tokenizer, **options):
    """(candidate number, the text of the tokens), of each mention."""
    tokens = tokenizer.tokenize(sentence)
    find = mentions.mention_finder(candidates, tokenizer, **options)
    spelled = []
    for number, first, last in find(sentence, tokens):
        text = "".join(tokens[first : last + 1])
        spelled.append((number, text.replace("##", "").replace("▁", " ").strip()))
    return spelled


def letters(mentions_found):
    """Word pieces are in lower case, and joined without spaces."""
    return [(number, text.replace(" ", "").lower()) for number, text in mentions_found]


class TestLongestMention:
    def test_candidates_are_found_in_any_case_and_beside_punctuation(self, tokenizer):
        text = "Avaria, (belmark) and BELMARK."
        expected = [(0, "avaria"), (1, "belmark"), (1, "belmark")]
        assert letters(found(text, ["avaria", "belmark"], tokenizer)) == expected

    def test_the_longest_of_overlapping_candidates_is_taken(self, tokenizer):
        text = "New Belmark or Belmark"
        for candidates in (["belmark", "new belmark"], ["new belmark", "belmark"]):
            mentioned = [candidates[number] for number, _ in found(text, candidates, tokenizer)]
            assert mentioned == ["new belmark", "belmark"]

    def test_the_first_of_equal_candidates_is_taken(self, tokenizer):
        assert letters(found("Belmark", ["avaria", "belmark", "belmark"], tokenizer)) == [
            (1, "belmark")
        ]

    def test_parts_of_words_are_no_mentions(self, tokenizer):
        assert found("sandy towns, Newtown and unsan", ["san", "town"], tokenizer) == []

    def test_nothing_is_found_in_nothing(self, tokenizer):
        assert found("", ["avaria"], tokenizer) == []
        assert found("avaria", [""], tokenizer) == []


class TestReleaseCompatible:
    def test_the_last_of_overlapping_candidates_comes_last(self, tmp_path):
        tokenizer = tokenizers.wordpiece(tmp_path)
        candidates = ["new belmark", "belmark", "belmark"]
        numbers = [
            n for n, _ in found("New Belmark", candidates, tokenizer, release_compatible=True)
        ]
        assert numbers == [0, 1, 2]

    def test_sentence_pieces_are_only_found_as_they_are(self, tmp_path):
        tokenizer = tokenizers.sentence_pieces(tmp_path)
        text = "Belmark (belmark) belmark"
        both = [
            found(text, ["belmark"], tokenizer, release_compatible=flag) for flag in (False, True)
        ]
        assert [len(mentioned) for mentioned in both] == [3, 1]


class TestWordPieces:
    def test_accents_do_not_matter_unless_compatible(self, tmp_path):
        tokenizer = tokenizers.wordpiece(tmp_path)
        assert letters(found("Ávaria", ["avaria"], tokenizer)) == [(0, "avaria")]
        assert found("Ávaria", ["avaria"], tokenizer, release_compatible=True) == []

    def test_unknown_tokens_match_nothing_unless_compatible(self, tmp_path):
        tokenizer = tokenizers.wordpiece(tmp_path)
        assert tokenizer.tokenize("語") == ["[UNK]"]
        assert found("語", ["語"], tokenizer) == []
        assert len(found("語", ["語"], tokenizer, release_compatible=True)) == 1
