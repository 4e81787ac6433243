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
    path.write_text("\n1\ta\tO\n2\tb\tB-X\n \n1\tc\tO", encoding="utf-8")
    options = config.TokenClassificationFeatureOptions(word_column=1)
    first, second = read(path, options)
    assert first == examples.TaggedText("wnut.txt:2", (("a", "b"),), (("O", "B-X"),))
    assert second == examples.TaggedText("wnut.txt:5", (("c",),), (("O",),))


def test_columns_are_those_of_the_first_line(tmp_path, caplog):
    path = tmp_path / "a.conll"
    path.write_text("a O\nb\n\nc O\n\nd X O\n", encoding="utf-8")
    (only,) = read(path)
    assert only.words == (("c",),)
    assert "a.conll: line 1: line 2 must have 2 columns, as the first one has" in caplog.text
    assert "line 6: line 6 must have 2 columns" in caplog.text
    path.write_text("a\nb\n", encoding="utf-8")  # To be tagged.
    assert plain(read(path)) == [((("a", "b"),), None)]
    path.write_text("a O\n", encoding="utf-8")
    options = config.TokenClassificationFeatureOptions(word_column=2)
    with pytest.raises(ValueError, match="too few for --word_column=2 and --tag_column=-1"):
        read(path, options)


def test_tabs_keep_spaces_and_comments_are_left_out(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("# id 7\tdomain=en\nNew York\tB-X\r\n#\tO\r\n\n# text = b\nb\tO\n")
    first, second = read(path)
    assert first.words == (("New York", "#"),) and first.tags == (("B-X", "O"),)
    assert second.words == (("b",),)
    path.write_text("10\u00a0000 O\n", encoding="utf-8")
    assert read(path)[0].words == (("10\u00a0000",),)


@pytest.mark.parametrize("word", ["#id", "#a=b", "#id=7"])
def test_a_word_with_a_number_sign_in_front_is_no_comment(tmp_path, word):
    path = tmp_path / "tweets.conll"
    path.write_text(f"b\tO\n\n{word}\tB-X\nc\tO\n", encoding="utf-8")
    assert read(path)[1] == examples.TaggedText("tweets.conll:3", ((word, "c"),), (("B-X", "O"),))


def test_json_by_another_name_is_told(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text('{"words": ["a"], "tags": ["O"]}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"train.txt: line 1 seems to be JSON. Name .* \.jsonl"):
        read(path)


def test_labels_are_gathered_with_outside_first(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(small.conll(small.documents(9, seed=1)), encoding="utf-8")
    assert examples.gather_labels(str(path), OPTIONS) == small.LABELS
    path.write_text("a\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match="no example has tags, the first: .*: line 1: .*`tags` is missing"
    ):
        examples.gather_labels(str(path), OPTIONS)
