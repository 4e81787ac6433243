"""Where candidates are found in a sentence, and which of several wins."""

import pathlib

import hypothesis
import pytest
from hypothesis import strategies

from etcmodel.tasks.wikihop import features
from etcmodel.text import tokenization
from tests import vocabularies
from tests.tasks.wikihop import tokenizers

SMALL_REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "reference" / "small"
SENTENCEPIECE_MODEL = str(SMALL_REFERENCE / "vocab" / "gpt2_sentencepiece.model")


@pytest.fixture(scope="module", params=["wordpiece", "sentence_pieces"])
def tokenizer(request, tmp_path_factory):
    return getattr(tokenizers, request.param)(tmp_path_factory.mktemp("vocab"))


def found(sentence, candidates, tokenizer, **options):
    """(candidate number, the text of the tokens), of each mention."""
    tokens = tokenizer.tokenize(sentence)
    find = features.mention_finder(candidates, tokenizer, **options)
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


def test_candidates_with_marks_are_found_in_text_that_is_split_at_them():
    tokenizer = tokenization.FullTokenizer(
        None, spm_model_file=SENTENCEPIECE_MODEL, split_punctuation=True
    )
    text = "It's in the U.S. (St. John's), not the U.S.A., or John"
    mentioned = found(text, ["u.s.", "st. john's", "john"], tokenizer)
    expected = [(0, "U.S."), (1, "St.John's"), (0, "U.S."), (2, "John")]
    assert [(number, spelled.replace(" ", "")) for number, spelled in mentioned] == expected


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


# A tokenizer for which "walkable" is walk ##able, and "unaffable" una ##ffa ##ble.
WALKING = [
    *("[PAD]", "[UNK]", "walk", "##able", "walked"),
    *("una", "##ffa", "##ble", "the", "old", "mill"),
]
walking = vocabularies.fixture(WALKING, name="walking")


class TestReleaseCompatibleSpans:
    """Spans are (candidate number, first token, last token)."""

    def spans(self, sentence, candidates, tokenizer, compatible=True):
        find = features.mention_finder(candidates, tokenizer, release_compatible=compatible)
        return find(sentence, tokenizer.tokenize(sentence))

    @pytest.mark.parametrize(
        ("sentence", "candidate", "released", "corrected"),
        [
            ("walk walkable walked", "walk", [(0, 0), (1, 1)], [(0, 0)]),
            ("Walkable", "walk", [(0, 0)], []),
            ("walkable", "walkable", [(0, 1)], [(0, 1)]),
            ("the unaffable mill", "una", [(1, 1)], []),
            ("walk walk walkable", "walk walk", [(0, 1), (1, 2)], [(0, 1)]),
            ("the old walkable mill", "old walk", [(1, 2)], []),
        ],
    )
    def test_a_piece_of_the_same_word_may_follow(
        self, walking, sentence, candidate, released, corrected
    ):
        for compatible, spans in ((True, released), (False, corrected)):
            found_spans = self.spans(sentence, [candidate], walking, compatible)
            assert found_spans == [(0, *span) for span in spans]

    @pytest.mark.parametrize(
        ("sentence", "is_mention"),
        [
            ("the old mill", True),
            ("The OLD Mill", True),
            ("the old  mill", False),
            ("the old\tmill", False),
            ("the old\u00a0mill", False),
        ],
    )
    def test_the_sentence_spells_the_candidate(self, walking, tmp_path, sentence, is_mention):
        assert self.spans(sentence, ["old mill"], walking) == ([(0, 1, 2)] if is_mention else [])
        assert self.spans(sentence, ["old mill"], walking, compatible=False) == [(0, 1, 2)]
        pieces = tokenizers.sentence_pieces(tmp_path)
        assert pieces.tokenize("the old mill") == pieces.tokenize("the old  mill")
        expected = is_mention and sentence == sentence.lower()  # Pieces differ by case.
        assert bool(self.spans(sentence, ["old mill"], pieces)) == expected

    @hypothesis.given(
        words=strategies.lists(
            strategies.sampled_from(["walk", "Walkable", "walked", "unaffable", "the", "old"])
        ),
        blanks=strategies.sampled_from([" ", "  "]),
        candidate=strategies.sampled_from(["walk", "walkable", "una", "the old", "old walk"]),
    )
    def test_every_place_of_the_tokens(self, walking, words, blanks, candidate):
        sentence = blanks.join(words)
        tokens, wanted = walking.tokenize(sentence), walking.tokenize(candidate)
        expected = []
        for first in range(len(tokens)):
            last = first + len(wanted) - 1
            if candidate in sentence.lower() and tokens[first : last + 1] == wanted:
                expected.append((0, first, last))
        assert self.spans(sentence, [candidate], walking) == expected


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
