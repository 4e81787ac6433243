"""Which encoders each program takes: the page's table, and what really starts."""

import importlib
import json
import re

import pytest

from etcmodel.models import encoders, systems
from etcmodel.pretrain import config as pretrain_config
from etcmodel.pretrain import task as pretrain_task
from etcmodel.tasks.hotpotqa import config as hotpotqa_config
from etcmodel.tasks.wikihop import config as wikihop_config
from etcmodel.tools import make_demo_data
from tests import page
from tests.tasks import programs, record_sets, small_encoders
from tests.tasks.test_skip_padding_of_texts import VOCAB

LENGTH, GLOBAL_LENGTH = 128, 64
KINDS = {
    "ETC": "etc",
    "ETC in ModernBERT": "etc_modernbert",
    "Longformer": "longformer",
    "BigBird": "big_bird",
    "ModernBERT": "modernbert",
    "GMAT": "gmat",
}
OTHERS = {
    "LongT5's encoder": "longt5",
    "LED": "led",
    "LongT5": "longt5",
    "PEGASUS-X": "pegasus_x",
    "BigBird-Pegasus": "bigbird_pegasus",
    "GMAT with a decoder": "gmat_seq2seq",
}
MARKS = {
    "hotpotqa --evidence_as=marks": hotpotqa_config.MARKS,
    "wikihop --candidates_as=marks": wikihop_config.MARKS,
}
# Options of records, and of runs, that are as small as the rest.
OF_RECORDS = {
    "hotpotqa": {"debug": False},
    "nq": {"question_len": 16, "stride": 48},
    "triviaqa": {"stride": 32},
    "wikihop --candidates_as=marks": {"max_num_chunks": 2},
}
NO_GOLD = ("classification", "coreference", "token_classification")  # The records have it.
OF_RUNS = {"coreference": {"max_span_width": 3, "ffnn_size": 8, "feature_size": 4}}


def read_table():
    """The page's table: dict from a program's words to the set of `model_type`s."""
    text = page.read("programs.md#which-model-for-which-data-set")
    header, _, *rows = re.findall(r"^\| (.*) \|$", text, re.M)
    names = header.split(" | ")[1:-1]
    table = {}
    for row in rows:
        words, *cells, others = (cell.strip() for cell in row.split("|"))
        taken = {KINDS[name] for name, cell in zip(names, cells, strict=True) if cell == "yes"}
        taken |= {OTHERS[name] for name in filter(None, others.split(", "))}
        table[words.strip("`")] = taken
    return table


TABLE = read_table()


def task_and_options(words):
    """The data set, and the options in its words: "wikihop --candidates_as=marks"."""
    name, *flags = words.split()
    return name, dict(flag.removeprefix("--").split("=") for flag in flags)


def make_model(words, encoder_config, folder):
    """The model that a program makes with its defaults for a system."""
    name, options = task_and_options(words)
    if name == "pretraining":
        defaults = pretrain_config.defaults_of(encoder_config.model_type)
        known = pretrain_task.PretrainConfig.__dataclass_fields__
        options |= {key: value for key, value in defaults.items() if key in known}
        task_class = pretrain_task.PretrainTask
    else:
        module = importlib.import_module(f"etcmodel.tasks.{name}.task")
        (task_class,) = (x for x in vars(module).values() if getattr(x, "name", None) == name)
    if name in ("classification", "token_classification"):
        options["labels"] = ("O", "B-x")
    if name == "numerical_reasoning":
        options["vocab_file"] = str(folder / "vocab.txt")
        (folder / "vocab.txt").write_text("\n".join(VOCAB), encoding="utf-8")
    lengths = {"long_seq_length": LENGTH}
    made = task_class.config_class(encoder_config=encoder_config, **lengths, **options)
    return task_class(made).make_model()


@pytest.mark.parametrize("words", TABLE)
def test_the_table_of_the_page_is_that_of_the_programs(words, tmp_path):
    taken = set()
    for kind in {*KINDS.values(), *OTHERS.values(), "longformer_char_lm"}:
        sizes = systems.find(kind).small
        if kind in KINDS.values():
            sizes = small_encoders.entries(kind, 64, LENGTH)
        try:
            config = encoders.config_from_dict({**sizes, "model_type": kind})
            make_model(words, config, tmp_path)
            taken.add(kind)
        except ValueError as error:
            assert "\n" not in str(error) and repr(kind) in str(error), error
    assert taken == TABLE[words]


# Programs that really start: one step, and an evaluation.


def make_records(words, folder):
    """The raw files and vocabulary that were made, by name; and the patterns of both sets."""
    name, options = task_and_options(words)
    paths = make_demo_data.make_demo_data(
        dataset=name, output_dir=str(folder), num_train=2, num_dev=2, seed=0
    )
    with open(paths["vocab"], "a", encoding="utf-8") as file:
        file.writelines(f"{mark}\n" for mark in MARKS.get(words, ()))
    given = {"long_seq_length": LENGTH, "global_seq_length": GLOBAL_LENGTH, **options}
    record_sets.make(name, folder, paths, **given, **OF_RECORDS.get(words, {}))
    return paths, record_sets.patterns(name, folder)


def has_program_for(words, kind):
    """Whether a test below starts this one: those of other pages have tests of their own."""
    elsewhere = ("pretraining", "majority_tagging", "numerical_reasoning", "summarization")
    return kind in KINDS.values() and words not in elsewhere


@pytest.mark.slow_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (words, kind)
        for words in TABLE
        for kind in sorted(TABLE[words])
        if has_program_for(words, kind)
    ],
)
def test_a_program_trains_and_evaluates_each_model_of_the_table(words, kind, tmp_path, capsys):
    name, _ = task_and_options(words)
    paths, (train, dev) = make_records(words, tmp_path)
    with open(paths["vocab"], encoding="utf-8") as file:
        size = len(file.readlines())
    config = tmp_path / "config.json"
    config.write_text(json.dumps(small_encoders.entries(kind, size, LENGTH)), encoding="utf-8")
    given = {"model_config_file": config, "vocab_file": paths["vocab"], "train_data": train}
    given |= {"train_batch_size": 2, "num_train_epochs": 1, "output_dir": tmp_path / "run"}
    programs.fine_tune(name, run_mode="train", **given, **OF_RUNS.get(name, {}))
    gold = {} if name in NO_GOLD else {"eval_gold": paths["dev"]}
    evaluated = {"run_mode": "evaluate", "output_dir": tmp_path / "run", "eval_data": dev}
    programs.fine_tune(name, **evaluated, **gold)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found and all(isinstance(x, float | int) for x in found.values())
