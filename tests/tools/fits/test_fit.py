"""`etcmodel fit`: from a table of one's own and a BERT to a classifier, as a user types it."""

import json
import re
import subprocess

import pytest

from tests import page
from tests.tasks.classification import raw_texts
from tests.tasks.test_model_folders import bert_folder
from tests.warm import python as warm


def write_reviews(path, count):
    words, rows = ("it", "is", "very", "."), []
    for n in range(count):
        text = [words[n // 4**k % 4] for k in range(4)]
        text.insert(n % 5, ("good", "bad")[n % 2])
        rows.append(f"{' '.join(text)},{('pos', 'neg')[n % 2]}")
    path.write_text("\n".join(["review,stars", *rows, ",pos", ""]), encoding="utf-8")


def fit(folder, *arguments):
    command = [warm.python(), "-m", "etcmodel", "fit", "classification", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


GIVEN = ("--init_checkpoint=my_bert", "--output_dir=run")
FIELDS = ("--text_field=review", "--label_field=stars")


@pytest.mark.slow
def test_one_command_makes_a_classifier_and_goes_on(tmp_path):
    bert_folder(tmp_path / "my_bert", raw_texts.write_vocab(tmp_path))
    write_reviews(tmp_path / "reviews.csv", 120)
    command = ("reviews.csv", *GIVEN, *FIELDS, "--train_batch_size=32", "--num_train_epochs=1")
    command += ("--", "--learning_rate=0.01")
    done = fit(tmp_path, *command)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "1 rows are left out, the first: reviews.csv: line 122: " in done.stdout
    shown = re.findall(r"^\$ etcmodel (\w+)", done.stdout, re.M)
    assert shown == ["preprocess"] * 3 + ["train", "evaluate", "report"]
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
    counts = json.loads((run / "data" / "dealt.json").read_text())
    assert counts == {"train": 96, "dev": 12, "test": 12}
    test = [json.loads(line) for line in (run / "data" / "test.jsonl").read_text().splitlines()]
    assert [x["stars"] for x in test].count("pos") == 6
    predicted = (run / "test_predictions.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in predicted} == {x["id"] for x in test}
    assert "<html" in (run / "report.html").read_text()[:200]

    done = fit(tmp_path, *command)  # All is there but what is measured anew.
    assert done.returncode == 0, done.stderr[-3000:]
    shown = re.findall(r"^\$ etcmodel (\w+)", done.stdout, re.M)
    assert shown == ["train", "evaluate", "report"]
    other = fit(tmp_path, *command[:-2], "--seed=1")
    assert other.returncode == 1
    assert other.stderr == (
        "error: run/data has results with --seed=0, not 1. Give that, or another --output_dir.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output_dir=run", "x.csv"), "error: --init_checkpoint must be given.\n"),
        (GIVEN, "error: The data are one file, folder or pattern. Received: none\n"),
        (("a.csv", *GIVEN, "b.csv"), "one file, folder or pattern. Received: a.csv, b.csv\n"),
        (("gone.csv", *GIVEN), "gone.csv"),
        (("a.csv", *GIVEN), "error: There is no directory 'my_bert'. "),
    ],
)
def test_what_is_missing_is_named(arguments, message, tmp_path):
    (tmp_path / "a.csv").touch()
    done = fit(tmp_path, *arguments)
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_command_of_the_page(tmp_path):
    bert_folder(tmp_path / "my_bert", raw_texts.write_vocab(tmp_path))
    write_reviews(tmp_path / "reviews.csv", 40)
    page.run_commands("classification.md", tmp_path, having="etcmodel fit")
    assert (tmp_path / "run" / "report.html").exists()
