"""Words as slots, mentions by slots, and what becomes of both in windows."""

import json
import pathlib

from etcmodel.tasks.coreference import config, examples, features
from etcmodel.text import vocabulary_files
from tests import vocabularies

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "she", "saw", "mara", "##s", "."]
SENTENCE_PIECES = (
    pathlib.Path(__file__).parents[2] / "reference" / "small" / "vocab" / "gpt2_sentencepiece.model"
)


tokenizer = vocabularies.fixture(PIECES)


def document(key="bn/x_1"):
    """A word without tokens, a zero-width space, and one of two."""
    return examples.parse_example(
        {
            "doc_key": key,
            "sentences": [
                ["Maras", "saw", "\u200bx".replace("x", ""), "Mara", "."],
                ["She", "saw"],
            ],
            "speakers": [["-"] * 5, ["B", "A"]],
            "clusters": [[[0, 0], [5, 5]], [[3, 4], [2, 3]]],
        }
    )


def make(tokenizer, example, **options):
    made = config.CoreferenceInputConfig(
        **{"long_seq_length": 12, "global_seq_length": 4, **options}
    )
    return features.make_features(example, made, made.make_processor(tokenizer))


def test_each_word_that_has_tokens_has_a_slot(tokenizer):
    (found,), cut = make(tokenizer, document())
    assert found["word_ids"] == [-1, 0, 0, 1, 2, 3, 4, 5, -1, -1, -1, -1] and not cut
    assert found["words"] == [0, 1, 3, 4, 5, 6, *[-1] * 6]
    assert found["speaker_ids"] == [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0]
    assert found["genres"] == [features.GENRES.index("bn")]
    names = ("mention_starts", "mention_ends", "mention_clusters")
    # The mention that begins with the word without tokens is none.
    mentions = list(zip(*(found[name] for name in names), strict=True))
    assert mentions == [(0, 0, 0), (4, 4, 0), (2, 3, 1), *[(-1, -1, -1)] * 9]
    assert json.loads(found["document"][0])["clusters"] == [[[0, 0], [5, 5]], [[2, 3], [3, 4]]]


def test_a_piece_of_the_space_alone_is_of_no_word():
    opened = vocabulary_files.open_tokenizer(None, str(SENTENCE_PIECES))
    assert opened.tokenize("saw `` ran") == ["▁sa", "w", "▁", "``", "▁ran"]
    raw = {"doc_key": "x", "sentences": [["saw", "``", "ran"], ["``", "saw"]], "clusters": []}
    (found,), _ = make(opened, examples.parse_example(raw))
    tokens = opened.convert_ids_to_tokens(found["token_ids"][:11])
    assert [*zip(tokens, found["word_ids"], strict=False)] == [
        *(("[CLS]", -1), ("▁sa", 0), ("w", 0), ("▁", -1), ("<unk>", 1), ("▁ran", 2)),
        *(("▁", -1), ("<unk>", 3), ("▁sa", 4), ("w", 4), ("[SEP]", -1)),
    ]


def test_windows_have_whole_words_and_their_own_slots(tokenizer):
    windows, _ = make(tokenizer, document("x"), long_seq_length=6, stride=2)
    slots = [[word for word in window["words"] if word >= 0] for window in windows]
    assert len(windows) > 1 and set().union(*slots) == {0, 1, 3, 4, 5, 6}
    assert [bool(window["document"][0]) for window in windows] == [True] + [False] * (
        len(windows) - 1
    )
    for window, words in zip(windows, slots, strict=True):
        assert {x for x in window["word_ids"] if x >= 0} == set(range(len(words)))
        told = {
            (words[start], words[end], cluster)
            for start, end, cluster in zip(
                *(window[f"mention_{x}"] for x in ("starts", "ends", "clusters")), strict=True
            )
            if cluster >= 0
        }
        wanted = {(0, 0, 0), (5, 5, 0), (3, 4, 1)}
        assert told == {x for x in wanted if x[0] in words and x[1] in words}
