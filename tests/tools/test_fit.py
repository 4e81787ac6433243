"""`etcmodel fit`: from raw data and a BERT to a trained model; how rows are dealt to parts."""

import collections
import gzip
import itertools
import json
import math
import pathlib
import re
import shlex
import shutil
import subprocess
import tracemalloc

import pytest
from absl import flags
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel import checkpoints
from etcmodel.cli.commands import COMMANDS
from etcmodel.options import ProgramFlags, option_fields
from etcmodel.tools import fit as fit_lib
from etcmodel.tools import make_demo_data
from tests import page
from tests.models.led import models as led
from tests.tasks.classification import raw_texts
from tests.tasks.summarization import raw_documents
from tests.tasks.test_model_folders import bert_folder
from tests.warm import python as warm

SHARES = {"dev": 0.1, "test": 0.2}
GIVEN = ("--init_checkpoint=my_bert", "--output_dir=run")
FIELDS = ("--text_field=review", "--label_field=stars")
LENGTHS = ("--long_seq_length=96", "--global_seq_length=64")
# Of the demo's rows: by what one is known, and without what nothing is learned from it.
NAMES = {
    "classification": ("text", "label"),
    "coreference": ("sentences", "clusters"),
    "hotpotqa": ("question", "supporting_facts"),
    "nq": ("question_text", "annotations"),
    "openkp": ("url", "KeyPhrases"),
    "squad": ("context", "answers"),
    "summarization": ("article_id", "abstract_text"),
    "token_classification": ("words", "tags"),
    "triviaqa": ("Question", "Answer"),
    "wikihop": ("query", "answer"),
}

# What the pages call the raw files, and where a page is of several data sets.
PAGES = {
    "coreference": "classification.md",
    "squad": "triviaqa.md",
    "token_classification": "classification.md",
}
PAGE_FILES = {
    "coreference": {"train": "train.jsonl", "dev": "dev.jsonl"},
    "hotpotqa": {
        "train": "data/hotpot_train_v1.1.json",
        "dev": "data/hotpot_dev_distractor_v1.json",
    },
    "squad": {"train": "train-v2.0.json", "dev": "dev-v2.0.json"},
    "summarization": {"train": "documents.jsonl"},
    "token_classification": {"train": "eng.train", "dev": "eng.testa"},
    "triviaqa": {"train": "qa/wikipedia-train.json", "dev": "qa/wikipedia-dev.json"},
    "wikihop": {"train": "data/train.json", "dev": "data/dev.json"},
}


def write_reviews(path, count):
    words, rows = ("it", "is", "very", "."), []
    for n in range(count):
        text = [words[n // 4**k % 4] for k in range(4)]
        text.insert(n % 5, ("good", "bad")[n % 2])
        rows.append(f"{' '.join(text)},{('pos', 'neg')[n % 2]}")
    path.write_text("\n".join(["review,stars", *rows, ",pos", ""]), encoding="utf-8")


def started_fit(folder, *arguments):
    command = [warm.python(), "-m", "etcmodel", "fit", "classification", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, text=True, **pipes)


def ended(process, before=""):
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess([], process.returncode, before + stdout, stderr)


def fit(folder, *arguments):
    return ended(started_fit(folder, *arguments))


def stopped_fit(folder, *arguments, at):
    """A `fit` that is asked to end when it begins a command."""
    process, told = started_fit(folder, *arguments), [""]
    while not told[-1].startswith(at):
        told.append(process.stdout.readline())
        assert told[-1], process.stderr.read()
    process.terminate()
    return ended(process, "".join(told))


def shown(done, status=0):
    """The commands that a `fit` began, without their flags."""
    assert done.returncode == status, done.stderr[-3000:]
    return re.findall(r"^\$ etcmodel (\w+)", done.stdout, re.M)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def demo_data(folder, data_set, num_train=20, num_dev=3):
    return make_demo_data.make_demo_data(
        dataset=data_set, output_dir=str(folder), num_train=num_train, num_dev=num_dev, seed=0
    )


def raw_rows(path):
    """The raw examples of a file of `make_demo_data`."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    found = [*map(json.loads, text.splitlines())] if path.endswith("l") else json.loads(text)
    if "data" in found:  # SQuAD's articles.
        parts = [part for article in found["data"] for part in article["paragraphs"]]
        return [{"context": x["context"], **question} for x in parts for question in x["qas"]]
    return found["Data"] if isinstance(found, dict) else found


def options(folder, data_set, **given):
    made = {"init_checkpoint": "none", "output_dir": str(folder / "run"), "data_set": data_set}
    return fit_lib.options_class(data_set)(**{**made, **given})


# Parts.


def counts_of(parts, labels):
    return collections.Counter((labels[key], part) for key, part in parts.items())


def test_each_label_has_its_share_in_each_part():
    labels = {f"{label}{n}": label for label in "ab" for n in range({"a": 200, "b": 50}[label])}
    counts = counts_of(fit_lib.parts_of(labels, SHARES, seed=0), labels)
    assert counts == {
        ("a", "train"): 140,
        ("a", "dev"): 20,
        ("a", "test"): 40,
        ("b", "train"): 35,
        ("b", "dev"): 5,
        ("b", "test"): 10,
    }


def test_the_seed_decides_and_nothing_else():
    labels = {f"{n}": n % 2 for n in range(100)}
    first = fit_lib.parts_of(labels, SHARES, seed=1)
    assert first == fit_lib.parts_of(dict(labels), SHARES, seed=1)
    assert first != fit_lib.parts_of(labels, SHARES, seed=2)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=300), st.integers(0, 5))
def test_whatever_the_labels_all_are_trained_on_and_shares_are_kept(of_groups, seed):
    labels = dict(enumerate(of_groups))
    parts = fit_lib.parts_of(labels, SHARES, seed)
    assert parts.keys() == labels.keys()
    assert {labels[key] for key, part in parts.items() if part == "train"} == set(of_groups)
    counts = collections.Counter(parts.values())
    # A label that has one group only leaves its share to nobody.
    for part, share in SHARES.items():
        assert counts[part] <= share * len(labels) + 0.5
        assert counts[part] >= share * (len(labels) - 4 * len(set(of_groups))) - 1


def test_equal_texts_are_in_one_part():
    rows = [((f"text {n % 40}",), n % 3) for n in range(400)]
    part_of = fit_lib.deal(rows, SHARES, seed=0)
    found = collections.Counter(part_of((f"text {n}",)) for n in range(40))
    assert found == {"train": 28, "dev": 4, "test": 8}


def slow_groups(rows):
    """Sets of the rows' numbers: any two groups with a key in common are joined, until none are."""
    groups = [({n}, set(keys)) for n, keys in enumerate(rows)]
    while pair := next((x for x in itertools.combinations(groups, 2) if x[0][1] & x[1][1]), None):
        groups = [x for x in groups if x not in pair]
        groups.append(tuple(a | b for a, b in zip(*pair, strict=True)))
    return [numbers for numbers, _ in groups]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=60))
@settings(max_examples=50)
def test_rows_that_share_a_text_or_a_document_are_in_one_part(pairs):
    rows = [(f"text {a}", f"document {b}") if b < 30 else (f"text {a}",) for a, b in pairs]
    rows += [(f"alone {n}",) for n in range(20)]
    part_of = fit_lib.deal([(keys, None) for keys in rows], SHARES, seed=0)
    groups = slow_groups(rows)
    parts = [{part_of(rows[n]) for n in group} for group in groups]
    assert all(len(x) == 1 for x in parts)
    counts = collections.Counter(part for (part,) in parts)
    assert counts["dev"] == math.floor(0.1 * len(groups) + 0.5)
    assert counts["test"] == math.floor(0.2 * len(groups) + 0.5)


def test_too_few_texts_are_refused():
    with pytest.raises(ValueError, match="2 different rows with labels are too few .* dev, test"):
        fit_lib.deal([(("a",), 0), (("a",), 0), (("b",), 1)], SHARES, seed=0)


# Rows.


def test_parts_are_json_lines(tmp_path):
    rows = [("train", {"text": "é"}), ("test", {"text": "b\nc"}), ("train", {"half": "\ud800"})]
    counts = fit_lib.write(options(tmp_path, "nq", data="x"), rows)
    assert counts == {"train": 2, "dev": 0, "test": 1}
    data = tmp_path / "run" / "data"
    assert lines(data / "train.jsonl") == [{"text": "é"}, {"half": "\ud800"}]
    assert '"é"' in (data / "train.jsonl").read_text(encoding="utf-8")
    assert sorted(path.name for path in data.iterdir()) == [
        "dev.jsonl",
        "test.jsonl",
        "train.jsonl",
    ]


def test_what_is_half_written_has_no_name(tmp_path):
    def rows():
        yield "train", {"text": "a"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_lib.write(options(tmp_path, "nq", data="x"), rows())
    assert not [*(tmp_path / "run" / "data").iterdir()]


@pytest.mark.parametrize("data_set", sorted(NAMES))
def test_each_row_of_each_layout_is_in_one_part(data_set, tmp_path, capsys):
    name, label = NAMES[data_set]
    raws = raw_rows(demo_data(tmp_path, data_set)["train"])
    raws += [raws[0], {**raws[1], label: None}]
    content = json.dumps(raws)
    if data_set == "triviaqa":
        content = f'{{"Domain": "demo", "Data": {content}}}'
    with gzip.open(tmp_path / "raw.json.gz", "wt") as file:
        file.write(content)
    fit_lib.keep_rows(options(tmp_path, data_set, data=str(tmp_path / "raw.json.gz")))
    left_out, told = capsys.readouterr().out.splitlines()
    assert left_out.startswith("1 rows are left out, the first: ")
    assert "raw.json.gz: element 21: " in left_out
    parts = [lines(tmp_path / "run/data" / f"{part}.jsonl") for part in ("train", "dev", "test")]
    found = [collections.Counter(json.dumps(row[name]) for row in part) for part in parts]
    wanted = collections.Counter(json.dumps(row[name]) for row in raws[:-1])
    assert sum(found, collections.Counter()) == wanted
    assert [json.dumps(raws[0][name]) in part for part in found].count(True) == 1
    sizes = [f"{x}: {len(part)} rows" for x, part in zip(fit_lib.PARTS, parts, strict=True)]
    assert told == f"{tmp_path}/run/data: {', '.join(sizes)}"
    assert len(found[0]) > len(found[1]) >= len(found[2]) > 0
    if not fit_lib.DATA_SETS[data_set].fields:  # Else rows have what is read of them.
        assert all(row in raws for part in parts for row in part)


def test_a_second_file_is_dev_and_all_of_the_first_is_trained_on(tmp_path):
    paths = demo_data(tmp_path, "wikihop")
    given = options(tmp_path, "wikihop", data=paths["train"], eval_data=paths["dev"])
    fit_lib.keep_rows(given)
    data = tmp_path / "run" / "data"
    assert lines(data / "train.jsonl") == raw_rows(paths["train"])
    assert lines(data / "dev.jsonl") == raw_rows(paths["dev"])
    assert not (data / "test.jsonl").exists()


def test_rows_whose_scores_or_labels_mislead_are_told(tmp_path, capsys):
    rows = [f"text {n},{'ab'[n % 2]}" for n in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows, "text 3,a", "text 4,a"]))
    fit_lib.keep_rows(options(tmp_path, "classification", data=str(tmp_path / "a.csv")))
    told = capsys.readouterr().out.splitlines()
    assert told[0] == (
        "1 rows have the text of an earlier row, but another label; no model gets both right. "
        "The first text: 'text 3'"
    )
    assert len(told) == 2
    (tmp_path / "b.csv").write_text("text,label\ntext 5,b\nnew,a\ntext 6,a\n")
    both = {"data": str(tmp_path / "a.csv"), "eval_data": str(tmp_path / "b.csv")}
    fit_lib.keep_rows(options(tmp_path / "both", "classification", **both))
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 3 and told[1] == (
        f"{tmp_path}/b.csv: 2 of 3 rows have the text of a row of "
        f"{tmp_path}/a.csv. The scores on them say nothing about new ones."
    )


def test_several_labels_are_the_same_in_any_order(tmp_path, capsys):
    rows = [f"text {n},{'ab'[n % 2]}|c" for n in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows, "text 3,c|b"]))
    given = {"data": str(tmp_path / "a.csv"), "problem_type": "multi_label_classification"}
    fit_lib.keep_rows(options(tmp_path, "classification", **given))
    assert len(capsys.readouterr().out.splitlines()) == 1


def squad_parts(folder, articles):
    """The rows of each part, of questions about numbers: (title or None, numbers) of articles."""

    def paragraph(number):
        text = f"It is {number}."
        answer = {"text": str(number), "answer_start": 6}
        kinds = {"told": [answer], "not": []}
        qas = [{"id": f"{x} {number}", "question": "?", "answers": y} for x, y in kinds.items()]
        return {"context": text, "qas": qas}

    data = [
        {**({"title": title} if title else {}), "paragraphs": list(map(paragraph, numbers))}
        for title, numbers in articles
    ]
    (folder / "a.json").write_text(json.dumps({"version": "v2.0", "data": data}))
    fit_lib.keep_rows(options(folder, "squad", data=str(folder / "a.json")))
    return [lines(folder / f"run/data/{part}.jsonl") for part in fit_lib.PARTS]


def test_questions_about_a_paragraph_are_in_one_part_and_may_have_no_answer(tmp_path):
    parts = squad_parts(tmp_path, [(None, range(20))])
    assert [len(part) for part in parts] == [32, 4, 4]
    for part in parts:
        assert {x["id"] for x in part} == {f"{x} {y['context'][6:-1]}" for x in ("told", "not")
                                           for y in part}  # fmt: skip


def test_questions_about_an_article_are_in_one_part(tmp_path):
    tens = [(f"From {x}0", range(10 * x, 10 * x + 10)) for x in range(1, 11)]
    parts = squad_parts(tmp_path, tens)
    assert [len(part) for part in parts] == [160, 20, 20]
    assert [len({row["title"] for row in part}) for part in parts] == [8, 1, 1]


def test_parts_of_a_document_are_in_one_part(tmp_path):
    """The same people are in all of them. `own_1` and `own_2` are two documents."""

    def deal(name, text):
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        (folder / name).write_text(text)
        fit_lib.keep_rows(options(folder, "coreference", data=str(folder / name)))
        parts = [lines(folder / f"run/data/{part}.jsonl") for part in fit_lib.PARTS]
        return [sorted({x["doc_key"].rpartition("_")[0] for x in part}) for part in parts], parts

    ids = [(document, part) for document in range(10) for part in range(3)]
    columns = "".join(
        f"#begin document (a{x}); part {y:03d}\na{x} {y} 0 no{x}{y} - (0)\n\n#end document\n"
        for x, y in ids
    )
    rows = [
        {"doc_key": f"nw/a{x}_{y}", "sentences": [[f"no{x}{y}"]], "clusters": [[[0, 0]]]}
        for x, y in ids
    ]
    for name, text in (("a.conll", columns), ("a.jsonl", "\n".join(map(json.dumps, rows)))):
        documents, parts = deal(name, text)
        assert [len(x) for x in documents] == [8, 1, 1] and len(set(sum(documents, []))) == 10
        assert [len(part) for part in parts] == [24, 3, 3]
    rows = [{**row, "doc_key": f"own_{n}"} for n, row in enumerate(rows)]
    _, parts = deal("b.jsonl", "\n".join(map(json.dumps, rows)))
    assert [len(part) for part in parts] == [24, 3, 3]


def test_what_is_left_out_of_triviaqa_is_named_by_its_line(tmp_path, capsys):
    rows = raw_rows(demo_data(tmp_path, "triviaqa")["train"])
    texts = [json.dumps(row) for row in rows]
    texts.insert(2, '{"Question": ')
    (tmp_path / "a.jsonl").write_text("\n".join(texts))
    fit_lib.keep_rows(options(tmp_path, "triviaqa", data=str(tmp_path / "a.jsonl")))
    assert "1 rows are left out, the first: " in (told := capsys.readouterr().out)
    assert "a.jsonl: line 3: malformed JSON" in told


def test_the_first_rows_that_are_left_out_are_named_with_their_problems(tmp_path, capsys):
    rows = [f"text {x},{'ab'[x % 2]}" for x in range(30)] + [" ,a"] * 24 + ["text,"]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows]))
    fit_lib.keep_rows(options(tmp_path, "classification", data=str(tmp_path / "a.csv")))
    first, *others = capsys.readouterr().out.splitlines()[:-1]
    assert first.startswith("25 rows are left out, the first: ") and "a.csv: line 32: " in first
    assert others[0] == "  then:" and len(others) == 20
    assert all(f"a.csv: line {x}: example" in line for x, line in enumerate(others[1:], 33))
    assert others[-1].endswith("field `text` must not be empty. Received: ' '")


@pytest.mark.parametrize(
    ("data_set", "text", "rows"),
    [
        (
            "token_classification",
            "".join(f"Ann B-PER\nran O\n\nto O\nno{x} B-LOC\n\n" for x in range(10)),
            {("Ann", "ran"): ["B-PER", "O"], ("to", "no7"): ["O", "B-LOC"]},
        ),
        (
            "coreference",
            "".join(
                f"#begin document (nw/a{x}); part 000\n"
                f"nw/a{x} 0 0 no{x} - (0)\nnw/a{x} 0 1 it - (0)\n\n#end document\n"
                for x in range(20)
            ),
            {("no7", "it"): [[[0, 0], [1, 1]]]},
        ),
    ],
)
def test_rows_of_columns_become_json_lines(data_set, text, rows, tmp_path):
    (tmp_path / "a.conll").write_text(text)
    fit_lib.keep_rows(options(tmp_path, data_set, data=str(tmp_path / "a.conll")))
    parts = [lines(tmp_path / f"run/data/{part}.jsonl") for part in fit_lib.PARTS]
    words, told = NAMES[data_set]
    found = {}
    for row in (row for part in parts for row in part):
        of_row = row[words] if isinstance(row[words][0], str) else sum(row[words], [])
        found[tuple(of_row)] = row[told] if data_set == "coreference" else sum(row[told], [])
    assert len(parts[1]) == len(parts[2]) == len(text.split("no")) // 10
    assert {key: found[key] for key in rows} == rows


def test_numbers_to_tell_are_dealt_all_alike(tmp_path):
    rows = "".join(f"text {n},{n}.5\n" for n in range(40))
    (tmp_path / "a.csv").write_text(f"text,label\n{rows}")
    given = {"data": str(tmp_path / "a.csv"), "problem_type": "regression"}
    fit_lib.keep_rows(options(tmp_path, "classification", **given))
    test = lines(tmp_path / "run/data/test.jsonl")
    assert len(test) == 4 and all(row["text"] == f"text {row['label'] - 0.5:g}" for row in test)


def test_a_file_is_dealt_row_by_row(tmp_path):
    """However large it is: memory holds some rows, and a few bytes of each."""
    row = {"id": "0", "query": "0", "candidates": ["a"], "answer": "a", "supports": ["a " * 20_000]}
    rows = ({**row, "id": str(n), "query": str(n)} for n in range(400))
    content = ",\n".join(map(json.dumps, rows))
    (tmp_path / "a.json").write_text(f"[{content}]")
    given = options(tmp_path, "wikihop", data=str(tmp_path / "a.json"))
    tracemalloc.start()
    try:
        fit_lib.keep_rows(given)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "a.json").stat().st_size > 15e6 and most < 7e6


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "there are no rows."),
        ('{"id": 1}\n', "none of the 1 rows can be learned from, the first: "),
    ],
)
def test_data_of_which_nothing_is_left_are_refused_and_nothing_is_kept(content, told, tmp_path):
    (tmp_path / "a.jsonl").write_text(content)
    given = options(tmp_path, "wikihop", data=str(tmp_path / "a.jsonl"))
    with pytest.raises(ValueError, match=f"a.jsonl: {told}"):
        fit_lib.keep_rows(given)
    assert not (tmp_path / "run/data/options.json").exists()


def test_other_contents_of_the_same_size_are_refused_and_other_names_are_not(tmp_path):
    paths = demo_data(tmp_path, "wikihop")
    given = {"data": paths["train"], "eval_data": paths["dev"]}
    fit_lib.keep_rows(options(tmp_path, "wikihop", **given))
    kept = (tmp_path / "run/data/train.jsonl").read_bytes()
    copy = shutil.copy(paths["train"], tmp_path / "copy.json")
    fit_lib.keep_rows(options(tmp_path, "wikihop", **{**given, "data": str(copy)}))
    copy.write_bytes(copy.read_bytes().replace(b'"id"', b'"iD"', 1))
    for changed, told in (
        ({"data": str(copy)}, f"of other data than those of --data={copy}. Give those"),
        ({"eval_data": ""}, "with --eval_data, which is left out now. Give it"),
    ):
        with pytest.raises(ValueError) as error:
            fit_lib.keep_rows(options(tmp_path, "wikihop", **{**given, **changed}))
        assert str(error.value) == (
            f"{tmp_path / 'run' / 'data'} has results {told}, or another --output_dir."
        )
    with pytest.raises(ValueError, match="has results with --data_set=wikihop, not hotpotqa"):
        hotpotqa = demo_data(tmp_path, "hotpotqa")["train"]
        fit_lib.keep_rows(options(tmp_path, "hotpotqa", data=hotpotqa))
    assert (tmp_path / "run/data/train.jsonl").read_bytes() == kept


def test_a_folder_is_known_by_its_texts_and_where_they_lie(tmp_path):
    folder = tmp_path / "texts"
    for label in ("neg", "pos"):
        (folder / label).mkdir(parents=True)
        for number in range(10):
            (folder / label / f"{number}.txt").write_text(f"{label} {number}")
    given = options(tmp_path, "classification", data=str(folder))
    fit_lib.keep_rows(given)
    rows = [row for path in (tmp_path / "run/data").glob("*.jsonl") for row in lines(path)]
    assert {row["id"]: row["label"] for row in rows}["neg/3.txt"] == "neg" and len(rows) == 20
    (folder / "notes.md").write_text("No text of the data.")
    fit_lib.keep_rows(given)
    (folder / "neg/3.txt").rename(folder / "pos/30.txt")
    with pytest.raises(ValueError, match=f"other data than those of --data={folder}"):
        fit_lib.keep_rows(given)
    (folder / "pos/30.txt").rename(folder / "neg/3.txt")
    fit_lib.keep_rows(given)
    (folder / "neg/3.txt").write_text("neg 4")
    with pytest.raises(ValueError, match="other data"):
        fit_lib.keep_rows(given)


# Flags, and what is refused before anything is written.


def test_the_command_has_all_data_sets_of_the_table():
    assert COMMANDS["fit"].names() == sorted(fit_lib.DATA_SETS)


@pytest.mark.parametrize(
    ("data_set", "flags"),
    [
        ("hotpotqa", {"answer_encoding_method": "span", "long_seq_length": 2048}),
        ("nq", {"include_unknown_rate": 1.0, "stride": 2048, "long_seq_length": 4096}),
        ("triviaqa", {"evidence_dir": None, "global_seq_length": 430}),
        ("summarization", {"target_length": 512, "delimiter": None}),
        ("classification", {"long_seq_length": None, "label_field": "label", "quoting": None}),
        ("squad", {"doc_stride": 128, "version_2_with_negative": None}),
        ("token_classification", {"tag_column": -1, "labels": (), "train_batch_size": 16}),
        ("coreference", {"train_batch_size": 1}),  # As in its evaluations.
    ],
)
def test_flags_of_features_are_those_of_preprocess(data_set, flags):
    found = {x.name: x.default for x in option_fields(fit_lib.options_class(data_set))}
    assert found.items() >= flags.items()
    assert not found.keys() & {"is_training", "debug", "vocab_file", "input_pattern", "data_set"}


@pytest.mark.parametrize("data_set", sorted(fit_lib.DATA_SETS))
def test_the_flags_on_the_page_are_flags_of_the_program(data_set):
    text = page.read(PAGES.get(data_set, f"{data_set}.md")).replace("\\\n", " ")
    (command,) = re.findall(rf"^etcmodel fit {data_set} (.*)$", text, re.M)
    values, found = flags.FlagValues(), fit_lib.options_class(data_set)
    program = ProgramFlags({"fit": found}, values)
    program.define()
    values.set_gnu_getopt(True)
    values(["fit", *shlex.split(command)])
    assert found(**program.values("fit")).init_checkpoint.startswith("my_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output_dir=run", "x.csv"), "error: --init_checkpoint must be given.\n"),
        (GIVEN, "and perhaps a second one to evaluate on. Received: none\n"),
        (("a.csv", *GIVEN, "b.csv", "c.csv"), "Received: a.csv, b.csv, c.csv\n"),
        (("gone.csv", *GIVEN), "gone.csv"),
        (("a.csv", "gone.csv", *GIVEN), "gone.csv"),
        (("a.csv", *GIVEN), "error: There is no directory 'my_bert'. "),
    ],
)
def test_what_is_missing_is_named(arguments, message, tmp_path):
    (tmp_path / "a.csv").touch()
    done = fit(tmp_path, *arguments)
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("data_set", "given", "message"),
    [
        ("nq", {"question_len": 93, "long_seq_length": 96}, "`long_seq_length` must leave room"),
        ("wikihop", {}, "`do_lower_case` must be true with word pieces"),
        ("triviaqa", {"evidence_dir": "gone"}, "--evidence_dir: no such folder: 'gone'"),
    ],
)
def test_what_preprocess_would_refuse_is_refused_before_rows_are_dealt(
    data_set, given, message, tmp_path
):
    paths = demo_data(tmp_path, data_set)
    bert = bert_folder(tmp_path / "my_bert", paths["vocab"])
    (bert / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    given = {"data": paths["train"], "init_checkpoint": str(bert), **given}
    with pytest.raises(ValueError, match=message):
        fit_lib.fit(options(tmp_path, data_set, **given))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("separators", "length"), [(1, 32), (2, 64)])
def test_lengths_are_those_of_texts_as_they_are_arranged(separators, length, tmp_path):
    bert = bert_folder(tmp_path / "my_bert", raw_texts.write_vocab(tmp_path))
    # [CLS], 14 words, [SEP], 15 words, [SEP], and perhaps another [SEP] in between.
    row = {"text": " ".join(["it"] * 14), "other": " ".join(["is"] * 15)}
    rows = [{**row, "label": x % 2, "id": x} for x in range(40)]
    rows = [{**x, "text": x["text"][:-2] + ["it", "is"][x["id"] > 19]} for x in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "b.jsonl").write_text(json.dumps(rows[0]))
    given = options(
        tmp_path,
        "classification",
        data=str(tmp_path / "a.jsonl"),
        eval_data=str(tmp_path / "b.jsonl"),
        init_checkpoint=str(bert),
        second_text_field="other",
        question_separators=separators,
    )
    fit_lib.keep_rows(given)
    assert fit_lib._lengths(given)["long_seq_length"] == length


# The whole way.


@pytest.mark.slow
def test_one_command_makes_a_classifier_and_goes_on(tmp_path):
    bert_folder(tmp_path / "my_bert", raw_texts.write_vocab(tmp_path))
    write_reviews(tmp_path / "reviews.csv", 120)
    command = ("reviews.csv", *GIVEN, *FIELDS, "--train_batch_size=32", "--num_train_epochs=1")
    command += ("--", "--learning_rate=0.01")
    stopped = stopped_fit(tmp_path, *command, at="$ etcmodel train ")
    assert shown(stopped, status=143) == ["preprocess"] * 3 + ["train"]
    assert stopped.stderr.endswith("interrupted: The same command continues\n")
    assert "1 rows are left out, the first: reviews.csv: line 122: " in stopped.stdout
    assert "\nrun/data: train: 96 rows, dev: 12 rows, test: 12 rows\n" in stopped.stdout
    done = fit(tmp_path, *command)
    assert shown(done) == ["train", "evaluate", "report"]
    assert done.stdout.splitlines()[-5:] == [
        "  etcmodel export classification --output_dir=run",
        "  etcmodel predict classification --output_dir=run --input_file=new.csv "
        "--predictions_file=answers.jsonl",
        "Or, for texts in a browser and over HTTP:",
        "  etcmodel export classification --output_dir=run --export_texts=true "
        "--export_dir=run/served",
        "  etcmodel serve --model_dir=run/served",
    ]
    run = tmp_path / "run"
    kept = json.loads((run / "run_config.json").read_text())
    assert kept["training"]["learning_rate"] == 0.01 and kept["task"]["labels"] == ["neg", "pos"]
    assert kept["task"]["max_long_seq_length"] == 32  # Of texts of seven tokens, rounded up.
    test = lines(run / "data" / "test.jsonl")
    assert [x["stars"] for x in test].count("pos") == 6
    assert {x["id"] for x in lines(run / "test_predictions.jsonl")} == {x["id"] for x in test}
    assert "<html" in (run / "report.html").read_text()[:200]

    # All is there but what is measured anew.
    assert shown(fit(tmp_path, *command)) == ["train", "evaluate", "report"]
    other = fit(tmp_path, *command[:-2], "--seed=1")
    assert other.returncode == 1
    assert other.stderr == (
        "error: run/data has results with --seed=0, not 1. Give that, or another --output_dir.\n"
    )


def write_page_data(folder, data_set):
    """What the command of a data set's page names: raw files, and a model that knows the words."""
    if data_set == "classification":
        bert_folder(folder / "my_bert", raw_texts.write_vocab(folder))
        write_reviews(folder / "reviews.csv", 40)
        return
    # A step of coreference has one document.
    paths = demo_data(folder, data_set, num_train=3 if data_set == "coreference" else 20)
    for part, name in PAGE_FILES[data_set].items():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(paths[part], folder / name)
        if data_set == "token_classification":
            write_columns(folder / name)
    if data_set == "summarization":
        tokens = raw_documents.tokenizer(folder)
        lengths = ("max_encoder_position_embeddings", "max_decoder_position_embeddings")
        sizes = {"vocab_size": len(tokens.vocab), **dict(zip(lengths, (1024, 128), strict=True))}
        checkpoints.save_pretrained(led.model(**sizes), str(folder / "my_led"))
        tokens.own.save_pretrained(folder / "my_led")
    else:
        bert_folder(folder / "my_bert", paths["vocab"])


def write_columns(path):
    """Makes CoNLL's columns of JSON lines with words and tags."""
    texts = []
    for row in lines(path):
        for words, tags in zip(row["words"], row["tags"], strict=True):
            texts += [f"{word} {tag}\n" for word, tag in zip(words, tags, strict=True)] + ["\n"]
    path.write_text("".join(texts), encoding="utf-8")


@pytest.mark.slow_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("data_set", ["classification", *PAGE_FILES])
def test_the_command_of_the_page(data_set, tmp_path):
    write_page_data(tmp_path, data_set)
    place = PAGES.get(data_set, f"{data_set}.md")
    told = page.run_commands(place, tmp_path, having=f"etcmodel fit {data_set} ")
    (run,) = re.findall(r"^The model is in (\S+)\. ", told, re.M)
    assert (tmp_path / run / "report.html").exists()
    (export,) = re.findall(rf"^  etcmodel (export {data_set} --output_dir=\S+)$", told, re.M)
    command = [warm.python(), "-m", "etcmodel", *export.split()]
    assert not subprocess.run(command, cwd=tmp_path, capture_output=True).returncode
