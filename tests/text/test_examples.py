"""Examples come from whatever people have, the same from all of it."""

import gzip
import json
import types

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from etcmodel.text import documents
from etcmodel.text import examples as examples_lib
from etcmodel.text.examples import Columns, Examples
from etcmodel.text.labels import Labels

ROWS = [
    {"review": "Great fun.", "stars": "pos", "day": 3},
    {"review": "Dull.", "stars": "neg", "day": 4},
    {"review": "Fine, really.", "stars": "pos", "day": 5},
]
COLUMNS = Columns(text="review", label="stars")
LABELS = Labels(["neg", "pos"])


class DataSet:
    """What Hugging Face's `Dataset` shows of itself: columns by name, features, rows as dicts."""

    column_names = ["review", "stars", "day"]
    features = {"stars": types.SimpleNamespace(names=["neg", "pos"])}

    def __len__(self):
        return len(ROWS)

    def __iter__(self):
        return ({**row, "stars": LABELS.target(row["stars"])} for row in ROWS)


def write_table(delimiter):
    def write(path):
        lines = [delimiter.join(ROWS[0])]
        lines += [
            delimiter.join(f'"{x}"' if delimiter == "," else str(x) for x in row.values())
            for row in ROWS
        ]
        path.write_text("\n".join(lines))

    return write


def write_packed(path):
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, ROWS)).encode()))


FILES = {
    "a.csv": write_table(","),
    "a.tsv": write_table("\t"),
    "a.json": lambda path: path.write_text(json.dumps(ROWS)),
    "a.jsonl.gz": write_packed,
    "a.parquet": lambda path: pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path),
}
OBJECTS = {
    "list": lambda: ROWS,
    "function": lambda: lambda: iter(ROWS),
    "frame": lambda: pandas.DataFrame(ROWS, index=[7, 8, 9]),
    "data set": DataSet,
}


def read(given, columns=COLUMNS, **kwargs):
    return [x for _, x in Examples(given, columns).read(**kwargs)]


def told(examples):
    return [(x["text"], x["extra"]["stars"]) for x in examples]


@pytest.mark.parametrize("name", [*FILES, *OBJECTS])
def test_all_say_the_same(name, tmp_path):
    given = OBJECTS[name]() if name in OBJECTS else tmp_path / name
    if name in FILES:
        FILES[name](given)
    source = Examples(given, COLUMNS)
    for _ in range(2):
        found = [x for _, x in source.read(LABELS, "stars")]
        assert told(found) == [("Great fun.", 1), ("Dull.", 0), ("Fine, really.", 1)]
        assert [int(x["extra"]["day"]) for x in found] == [3, 4, 5]
    assert source.size == (None if name in FILES or name == "function" else 3)
    assert source.class_names("stars") == (("neg", "pos") if name == "data set" else ())


def test_a_folder_has_its_labels_by_folder(tmp_path):
    for label, text in (("pos", "Great."), ("neg", "Dull.")):
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.txt").write_text(text)
    found = read(tmp_path, Columns(), labels=LABELS, target="label")
    assert [(x["id"], x["text"], x["extra"]) for x in found] == [
        ("neg/1.txt", "Dull.", {"label": 0}),
        ("pos/1.txt", "Great.", {"label": 1}),
    ]


def test_texts_alone_and_pairs_with_labels():
    assert read(pandas.Series(["a", "b"]), Columns()) == ["a", "b"]
    assert read(np.array(["a", "b"]), Columns()) == ["a", "b"]
    pairs = read([("a", "pos"), ({"text": "b"}, "neg")], Columns(), labels=LABELS, target="label")
    assert pairs == [{"text": t, "extra": {"label": n}} for t, n in (("a", 1), ("b", 0))]


def test_columns_are_fields_and_what_is_none_is_extra():
    row = {"question": "Who?", "text": "A.", "id": 7, "label": "x", "day": 1, "extra": {"n": 2}}
    (found,) = read([row], Columns())
    assert found == {
        "question": "Who?",
        "text": "A.",
        "id": 7,
        "extra": {"label": "x", "day": 1, "n": 2},
    }
    (found,) = read([{"a": "A.", "b": "B.", "text": "not this"}], Columns("a", second_text="b"))
    assert found == {"question": "A.", "documents": ["B."], "extra": {"text": "not this"}}
    for row in ({"a": None, "b": "B."}, {"a": float("nan"), "b": "B."}):
        with pytest.raises(ValueError, match=r"examples\[0\]: `a`, the first text, is missing"):
            read([row], Columns("a", second_text="b"))  # Not the second one alone.
    row = {"a": "A.", "b": float("nan")}  # As pandas reads an empty cell.
    with pytest.raises(ValueError, match=r"\]: `b`, the second text, is missing \(None or NaN\)"):
        read([row], Columns("a", second_text="b"))
    with pytest.raises(ValueError, match=r"examples\[0\]: `b`, the text, is missing \(None or NaN"):
        read([row], Columns("b"))
    named, usual = Columns("text", second_text="b"), Columns(second_text="b")
    assert read([{"text": "A.", "b": "B."}], usual) == read([{"text": "A.", "b": "B."}], named)
    (found,) = read([{"q": "Who?", "text": "A.", "n": 3}], Columns(question="q", id="n"))
    assert found == {"question": "Who?", "text": "A.", "id": 3, "extra": {}}


def test_the_numbers_of_a_data_set_are_its_own_and_not_the_models():
    class Other(DataSet):
        features = {"stars": types.SimpleNamespace(names=["pos", "2", "neg"])}

        def __iter__(self):
            return iter([{"review": "A.", "stars": number} for number in (0, 2, 1, -1)])

    source = Examples(Other(), COLUMNS).read(Labels(["neg", "pos", "2"]), "stars")
    assert [next(source)[1]["extra"]["stars"] for _ in range(3)] == [1, 0, 2]
    with pytest.raises(ValueError, match=r"examples\[3\]: the label `stars` is missing"):
        next(source)


def test_where_a_text_is_named_other_columns_are_no_text():
    row = {"review": "A.", "title": "T", "html": 3, "id": "x", "question": "Q?"}
    (found,) = read([row], Columns(text="review"))
    extra = {"title": "T", "html": 3}
    assert found == {"text": "A.", "id": "x", "question": "Q?", "extra": extra}


def test_where_no_label_is_wanted_none_is_missed():
    assert read([{"text": "A.", "labels": "x"}], Columns()) == [
        {"text": "A.", "extra": {"labels": "x"}}
    ]
    with pytest.raises(ValueError, match=r"is no field. .* such as `label='labels'`"):
        read([{"text": "A.", "labels": "x"}], Columns(), labels=LABELS, target="label")


def test_a_document_may_have_a_label_beside_it():
    document = documents.Document(("A.",), ("a",), ())
    (found,) = read([(document, "pos")], Columns(), labels=LABELS, target="label")
    assert found.extra == {"label": 1}


def test_blank_cells_and_missing_numbers_are_nothing():
    (found,) = read([{"text": "A.", "id": "", "question": ""}], Columns())
    assert found == {"text": "A.", "extra": {}}
    frame = pandas.DataFrame({"text": ["A.", None], "n": pandas.Series([None, 2], dtype="Int64")})
    assert [x["extra"]["n"] for x in read(frame, Columns())] == [None, 2]


@pytest.mark.parametrize(
    ("given", "columns", "message"),
    [
        (
            iter(ROWS),
            COLUMNS,
            "must be readable more than once: a list, or the path of a file, or a",
        ),
        (3, COLUMNS, "must be readable more than once"),
        (
            pandas.DataFrame([["a", "b", 1, 2]], columns=["review", "review", 1, "1"]),
            COLUMNS,
            "`examples` has several columns of one name, 1, review: give each its own",
        ),
        ({"train": DataSet()}, COLUMNS, "has several data sets, 'train': give one of them"),
        (ROWS, Columns(text="body"), r"examples\[0\] has no `body`, the `text`. It has: `review`"),
        (
            [{"texts": "a"}],
            Columns(),
            r"examples\[0\] has `texts`, .* the `text`, call it so; else",
        ),
        (["a"], Columns(text="body"), r"examples\[0\] is no row with columns: it is of str"),
        ([{"text": "a"}], Columns(), r"examples\[0\] has no label `label`. Nothing is told of it"),
        ([{"text": "a", "label": ""}], Columns(), r"examples\[0\]: the label `label` is missing"),
        (
            [{"text": "a", "label": "great"}],
            Columns(),
            r"examples\[0\]: `label` 'great' is none of the 2 labels: 'neg', 'pos'",
        ),
    ],
)
def test_what_cannot_be_is_told_by_its_name(given, columns, message):
    with pytest.raises(ValueError, match=message):
        read(given, columns, labels=LABELS, target=columns.label or "label")


def test_errors_name_the_line_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\nA.,pos\nB.,great\n")
    with pytest.raises(
        ValueError, match=r"a.csv, line 3: `label` 'great' is none of the 2 labels: 'neg', 'pos'$"
    ):
        read(path, Columns(), labels=LABELS, target="label")


def test_words_need_names_and_numbers_of_tables_do_not():
    with pytest.raises(ValueError, match="`label` is a word, 'pos': give all of them in the order"):
        read([{"text": "a", "label": "pos"}], Columns(), target="label")
    with pytest.raises(ValueError, match="`label` is a word, 'nan'"):
        read([{"text": "a", "label": "nan"}], Columns(), target="label")
    rows = [{"text": "a", "label": x} for x in ("2", "0.5", 3, [1, 0])]
    assert [x["extra"]["label"] for x in read(rows, Columns(), target="label")] == [
        2,
        0.5,
        3,
        [1, 0],
    ]
    with pytest.raises(ValueError, match="`text` must be the name of a column. Received: 3"):
        Columns(text=3)
    with pytest.raises(ValueError, match="cannot both be"):
        Columns(second_text="a", question="b")


@pytest.mark.parametrize("memory", [1 << 30, 2000])
def test_shuffled_they_are_the_same_in_an_order_of_its_own(monkeypatch, memory, caplog):
    monkeypatch.setattr(examples_lib, "_MEMORY", memory)
    texts = [f"{number:03d}" for number in range(100)]
    source, rng = Examples(texts), np.random.default_rng(1)
    orders = [[x for _, x in source.read(rng=rng)] for _ in range(2)]
    assert orders[0] != orders[1] and all(sorted(x) == texts for x in orders)
    again = [x for _, x in source.read(rng=np.random.default_rng(1))]
    assert again == orders[0]
    distance = np.abs(np.array(orders[0], int) - np.arange(100)).mean()
    if memory > 2000:
        assert 25 < distance < 42  # A third of all, on average.
    else:
        assert 10 < distance < 25 and "too large to be shuffled as a whole: each" in caplog.text


@pytest.mark.parametrize(
    ("given", "is_path"),
    [
        ("reviews.csv", True),
        ("data/reviews.JSONL.gz", True),
        ("gs://bucket/folder", True),
        ("I read reviews.csv", False),
        ("See https://example.org for it.", False),
        ("Great", False),
        ("", False),
        ("A.\nB.csv", False),
    ],
)
def test_a_text_is_no_path(given, is_path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert examples_lib.is_path(given) is is_path
    assert examples_lib.is_path(tmp_path) and examples_lib.is_path(str(tmp_path))
