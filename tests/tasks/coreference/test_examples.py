"""CoNLL-2012's columns and JSON as documents, and what is refused."""

import itertools
from unittest import mock

import hypothesis
import hypothesis.strategies as st
import pytest

from etcmodel.tasks.coreference import examples

# In the columns that Pradhan et al. 2012 describe; words and names are invented.
PART = """#begin document (bc/xx/00/xx_0007); part 003
bc/xx/00/xx_0007   3   0     The    DT  (TOP(S(NP*   -   -   -   Ann#Vale   *   (ARG0*  (5|(0
bc/xx/00/xx_0007   3   1     old    JJ           *   -   -   -   Ann#Vale   *        *      -
bc/xx/00/xx_0007   3   2    ship    NN          *)   -   -   -   Ann#Vale   *       *)     0)
bc/xx/00/xx_0007   3   3      's   POS           *   -   -   -   Ann#Vale   *        *      -
bc/xx/00/xx_0007   3   4    crew    NN         *))   -   -   -   Ann#Vale   *        *     5)

bc/xx/00/xx_0007   3   0      It   PRP  (TOP(S(NP*)  -   -   -          -   *    (0)
bc/xx/00/xx_0007   3   1    left   VBD           *   -   -   -          -   *      -
bc/xx/00/xx_0007   3   2    them   PRP        (NP*)  -   -   -          -   *    (5)

#end document
"""


def write(folder, text, name="a.conll"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_columns_are_read_with_nested_mentions_and_speakers(tmp_path):
    (document,) = examples.example_reader()(write(tmp_path, PART))
    assert document == examples.Document(
        "bc/xx/00/xx_0007_3",
        (("The", "old", "ship", "'s", "crew"), ("It", "left", "them")),
        (("Ann#Vale",) * 5, ("-",) * 3),
        (((0, 2), (5, 5)), ((0, 4), (7, 7))),
    )


SPANS = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda x: (min(x), max(x)))


@hypothesis.given(st.lists(st.lists(SPANS, min_size=1, max_size=4, unique=True), max_size=4))
def test_what_is_written_is_read_again_but_for_what_is_told(tmp_path_factory, clusters):
    raw = {"sentences": [list("abcdefg")], "clusters": [list(map(list, x)) for x in clusters]}
    document = examples.parse_example(raw, "x/y_2")
    with mock.patch.object(examples.logging, "warning") as warning:
        lines = examples.conll_lines(
            "x/y_2", document.sentences, document.speakers, document.clusters
        )
        path = write(tmp_path_factory.mktemp("written"), "".join(lines))
    (read,) = examples.example_reader()(path)
    assert read.example_id == "x/y_2" and read.sentences == document.sentences
    left_out = [*itertools.chain(*document.clusters)]
    for span in itertools.chain(*read.clusters):
        left_out.remove(span)
    assert read.clusters == tuple(
        tuple(x for x in cluster if x not in left_out) for cluster in document.clusters
    )
    for start, end in left_out:  # Only what crosses an earlier one of its cluster.
        (cluster,) = (x for x in document.clusters if (start, end) in x)
        assert any(x < start < y < end for x, y in cluster)
    told = [call.args for call in warning.call_args_list]
    assert [args[1:3] for args in told] == ([("x/y_2", len(left_out))] if left_out else [])


def test_a_mention_that_is_left_out_is_named_with_what_it_crosses():
    with mock.patch.object(examples.logging, "warning") as warning:
        lines = [
            *examples.conll_lines("x", [list("abcde")], [[""] * 5], [[(0, 2), (1, 3), (2, 4)]])
        ]
    assert [line.split()[-1] for line in lines[1:6]] == ["(0", "-", "0)|(0", "-", "0)"]
    message, *values = warning.call_args.args
    assert (message % tuple(values)).endswith("The first: words 1 to 3, which cross 0 to 2")


def test_clusters_with_a_common_span_are_one():
    raw = {"doc_key": "a", "sentences": [["a", "b", "c"]]}
    found = examples.parse_example({**raw, "clusters": [[[0, 0], [1, 1]], [[2, 2], [1, 1]]]})
    assert found.clusters == (((0, 0), (1, 1), (2, 2)),)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    5)\n\n", "    -\n\n", r"line 2 opens '\(5', which its sentence never closes"),
        ("    (0)\n", "    0)\n", r"line 8 closes '0\)', which is not open in its sentence"),
        ("    (0)\n", "    0\n", r"line 8 must end in brackets such as .*: '0'"),
        (PART.splitlines()[1], "bc 3", "line 2 must have the columns of CoNLL-2012, 5 at least"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, old, new, problem):
    assert old in PART
    text = PART.replace(old, new, 1)
    (row,) = examples.read_rows(write(tmp_path, text))
    with pytest.raises(ValueError, match=problem):
        examples.parse_row(row)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (PART.replace("#end document\n", ""), "line 1 begins a document that has no `#end"),
        (PART.partition("\n")[2], r"line 1 must be `#begin document \(name\); part 000`"),
        (PART.replace("#end document\n", "") + PART, "line 12 must be `#end document`"),
        ('{"sentences": []}', r"line 1 must be .* JSON lines need a name that ends in .jsonl"),
    ],
)
def test_a_file_of_another_form_is_refused_by_name_and_line(tmp_path, text, problem):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=f"{path}: {problem}"):
        list(examples.read_rows(path))
