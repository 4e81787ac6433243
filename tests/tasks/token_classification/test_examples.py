"""Raw files: CoNLL's columns and JSON give the same examples; what is wrong is told."""

import gzip

import pytest

from etcmodel.tasks.token_classification import config, examples
from tests.tasks.token_classification import small

OPTIONS = config.TokenClassificationFeatureOptions()


def read(path, options=OPTIONS):
    return list(examples.example_reader(options)(str(path)))


def plain(found):
    return [(x.words, x.tags) for x in found]


def test_documents_are_the_same_in_both_formats(tmp_path):
    made = small.documents(5, seed=0)
    (tmp_path / "eng.train").write_text(small.conll(made), encoding="utf-8")
    (tmp_path / "a.jsonl").write_text(small.json_lines(made), encoding="utf-8")
    (tmp_path / "b.conll.gz").write_bytes(gzip.compress(small.conll(made).encode()))
    found = plain(read(tmp_path / "eng.train"))
    wanted = [
        (tuple(tuple(x) for x, _ in document), tuple(tuple(x) for _, x in document))
        for document in made
    ]
    assert (
        found == wanted == plain(read(tmp_path / "a.jsonl")) == plain(read(tmp_path / "b.conll.gz"))
    )


def test_without_documents_each_sentence_is_an_example(tmp_path):
    path = tmp_path / "wnut.txt"
    path.write_text("\n1 a\tO\n2 b\tB-X\n \n1 c\tO", encoding="utf-8")
    options = config.TokenClassificationFeatureOptions(word_column=1)
    first, second = read(path, options)
    assert first == examples.TaggedText("wnut.txt:2", (("a", "b"),), (("O", "B-X"),))
    assert second == examples.TaggedText("wnut.txt:5", (("c",),), (("O",),))


def test_columns_that_a_line_lacks_are_told(tmp_path, caplog):
    path = tmp_path / "a.conll"
    path.write_text("a O\nb\n\nc O\n", encoding="utf-8")
    (only,) = read(path)
    assert only.words == (("c",),)
    assert "a.conll: line 1: line 2 has 1 column, which is too few: 'b'" in caplog.text
    path.write_text("a\nb\n", encoding="utf-8")  # To be tagged.
    assert plain(read(path)) == [((("a", "b"),), None)]
    options = config.TokenClassificationFeatureOptions(word_column=2)
    with pytest.raises(ValueError, match="line 1 has 1 column, which is too few: 'a'"):
        read(path, options)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"tags": ["O"]}, "field `words` is missing"),
        ({"words": ["a"]}, "field `tags` is missing, and records need it"),
        ({"words": "a b", "tags": ["O"]}, "`words` must be a list of strings, or of lists"),
        ({"words": ["a", ["b"]], "tags": ["O"]}, "`words` must be a list of strings, or of lists"),
        ({"words": [], "tags": []}, "`words` must not be empty"),
        ({"words": [["a"], []], "tags": [["O"], []]}, "`words` must not be empty"),
        ({"words": ["a", " "], "tags": ["O", "O"]}, "`words` must not be empty"),
        ({"words": ["a", "b"], "tags": ["O"]}, r"`tags` must .* Words: \[2\]; tags: \[1\]"),
        ({"words": [["a"], ["b"]], "tags": [["O", "O"]]}, r"Words: \[1, 1\]; tags: \[2\]"),
        ({"words": ["\ud800"], "tags": ["O"]}, "half of a surrogate pair"),
    ],
)
def test_what_is_wrong_is_named(raw, message):
    with pytest.raises(ValueError, match=f"^example '7': field .*{message.removeprefix('field ')}"):
        examples.parse_example({"id": "7", **raw}, OPTIONS, needs_tags=True)


def test_labels_are_gathered_with_outside_first(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(small.conll(small.documents(9, seed=1)), encoding="utf-8")
    assert examples.gather_labels(str(path), OPTIONS) == small.LABELS
    path.write_text("a\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match="no example has tags, the first: .*: line 1: .*`tags` is missing"
    ):
        examples.gather_labels(str(path), OPTIONS)
