"""`etcmodel recipe`: what the recipes say, what is refused, and runs from raw files to a result."""

import json
import math
import pathlib
import re
import subprocess

import pytest

from etcmodel.models import downloads
from etcmodel.tools import fit, recipe
from tests import page
from tests.warm import python as warm

RECIPES = recipe.read_recipes()
PROGRAMS = {name: found.step("training").command for name, found in RECIPES.items()}
# The first recipe of each program; the others are more of the same.
OF_PROGRAMS = {program: name for name, program in reversed(PROGRAMS.items())}

# The flags of the authors' commands for the base models, by our names: of preprocessing, of
# training, and of the evaluation. Paths, TPUs, and what has no effect are left out.
AUTHORS = {
    "nq_base_2x_pretraining": {
        "training": {"grad_checkpointing_period": 1},
    },
    "hotpotqa_base": {
        "train_records": {
            "num_shards": 100,
            "global_seq_length": 256,
            "long_seq_length": 4096,
            "is_training": True,
            "answer_encoding_method": "span",
        },
        "dev_records": {
            "num_shards": 10,
            "global_seq_length": 256,
            "long_seq_length": 4096,
            "is_training": False,
            "answer_encoding_method": "span",
        },
        "training": {
            "learning_rate": 5e-5,
            "num_train_epochs": 9,
            "train_batch_size": 64,
            "predict_batch_size": 16,
            "flat_sequence": False,
            "grad_checkpointing_period": None,  # 0 there.
        },
    },
    "wikihop_base": {
        "records": {"long_seq_length": 4096, "global_seq_length": 430, "max_num_sentences": 200},
        "training": {
            "candidate_ignore_hard_g2l": True,
            "query_ignore_hard_g2l": True,
            "enable_l2g_linking": True,
            "optimizer": "adamw",
            "learning_rate": 4e-5,
            "train_batch_size": 32,
            "eval_batch_size": 8,
            "grad_checkpointing_period": None,
        },
    },
    "openkp_base": {
        "train_records": {"num_shards": 100, "long_seq_length": 4096, "global_seq_length": 512},
        "dev_records": {"num_shards": 100, "long_seq_length": 4096, "global_seq_length": 512},
        "training": {"train_batch_size": 64, "grad_checkpointing_period": 1},
    },
}
# Options of these steps that the authors' commands do not have, each with its reason.
OURS = {
    "is_training": "the authors' programs tell the sets apart by their names or labels",
    "long_seq_length": "the default of the authors' program for NQ, and the paper's",
    "global_seq_length": "the same",
    "stride": "the same",
    "num_shards": "the authors' program for NQ has no such flag",
    "optimizer": "the paper's Adam, as the authors' programs do it",
    "adam_bias_correction": "off in the authors' optimizer, which has no flag for it",
    "max_short_answer_len": "the paper's; see the recipe's note",
    "learning_rate": "where the command has none: the paper's sweep; see the recipe's note",
    "num_train_epochs": "likewise",
    "train_batch_size": "the paper's, where the command has none",
    "weight_decay_rate": "the default of the authors' program; see the recipe's note",
}
KNOWN_STARTS = {*RECIPES, *downloads.RELEASED_CHECKPOINTS}
PATHS = {"input_pattern", "dev_input_pattern", "output_prefix", "output_dir", "init_checkpoint"}
PATHS |= {"train_data", "eval_data", "eval_gold"}


@pytest.mark.parametrize("name", AUTHORS)
def test_options_are_those_of_the_authors_commands(name):
    for step_name, flags in AUTHORS[name].items():
        options = RECIPES[name].step(step_name).options
        assert {key: options.get(key) for key in flags} == flags, step_name
        assert set(options) - set(flags) - PATHS <= set(OURS), step_name


# What the paper's appendix C says, against what the recipes have.
@pytest.mark.parametrize(
    ("name", "rate", "epochs", "batch_size", "others"),
    [
        ("nq_large", 3e-5, 2, 64, {}),
        ("hotpotqa_large", 3e-5, 5, 32, {"supporting_fact_threshold": 0.4}),
        ("wikihop_large", 5e-5, 10, 64, {}),
        ("openkp_large", 3e-5, 2, 64, {"label_occurrences": "max"}),
        ("pretraining_base", math.sqrt(8) * 1e-3, 33, 512, {"optimizer": "lamb"}),
        ("pretraining_large", math.sqrt(8) * 1e-3, 66, 1024, {"mlm_share": 0.15}),
        ("longformer_imdb", 3e-5, 15, 32, {"warmup_proportion": 0.1}),
        ("longformer_triviaqa", 3e-5, 5, 32, {"warmup_steps": 1000}),
        ("longformer_wikihop_5_epochs", 3e-5, 5, 32, {"warmup_steps": 200}),
        ("longformer_triviaqa", 3e-5, 5, 32, {}),
        ("longformer_wikihop", 3e-5, 15, 32, {}),
        ("gmat_majority_512", 2e-6, 2, 80, {"warmup_proportion": 0.01}),
        ("gmat_majority_8192", 2e-6, 1, 4, {"warmup_proportion": 0.01}),
        ("gmat_numbers", 3e-5, 15, 68, {"warmup_proportion": 0.1, "optimizer": "bert_adam"}),
        ("gmat_mlm_512", 5e-5, 9, 60, {"warmup_proportion": 0.1, "stop_at_step": 431_000}),
        ("gmat_wikipedia_512x4_memory", 2e-5, 5, 4, {"warmup_proportion": 0.001}),
        ("gmat_wikipedia_compression_3", 5e-5, 5, 24, {"stop_at_step": 440_000}),
    ],
)
def test_the_papers_best_models_have_the_papers_options(name, rate, epochs, batch_size, others):
    options = RECIPES[name].step("training").options
    expected = {"num_train_epochs": epochs, "train_batch_size": batch_size, **others}
    assert options["learning_rate"] == pytest.approx(rate)
    assert {key: options[key] for key in expected} == expected


def test_global_lengths_and_strides_are_those_of_each_input_length():
    lengths = {
        name: [found.step("train_records").options[x] for x in recipe_lengths]
        for name, found in RECIPES.items()
        for recipe_lengths in [("long_seq_length", "global_seq_length", "stride")]
        if name in ("nq_512", "nq_base", "nq_8192")
    }
    assert lengths == {
        "nq_512": [512, 128, 128],
        "nq_base": [4096, 230, 2048],
        "nq_8192": [8192, 460, 4096],
    }


def test_every_recipe_says_what_it_starts_from_and_whence():
    titles = [found.title for found in RECIPES.values()]
    assert len(set(titles)) == len(titles) > 80
    for name, found in RECIPES.items():
        assert re.search(r"20\d\d, (table|figure|section)", found.source), name
        start = found.starts_from
        assert (
            not start or found.where_model or start in {*RECIPES, *downloads.RELEASED_CHECKPOINTS}
        )
        if start.startswith("pretraining"):
            assert RECIPES[start].preset == found.preset, name


def test_large_models_are_larger_and_ablations_have_their_masks():
    assert RECIPES["hotpotqa_large"].config().num_hidden_layers == 24
    assert not RECIPES["wikihop_no_hard_g2l"].config().use_hard_g2l_mask
    assert RECIPES["openkp_shared"].config().share_qkv_projections
    assert RECIPES["longformer_enwik8_large"].config().num_hidden_layers == 30
    assert RECIPES["gmat_numbers_no_memory"].step("training").options["num_memory_tokens"] == 0


# What is refused.

BASE = """mine:
  title: Mine
  source: nowhere
  generated: wikihop
  steps:
    training:
      run: train wikihop
      learning_rate: 1.0e-5
    evaluation:
      run: evaluate wikihop
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        (
            "learning_rate",
            "lerning_rate",
            8,
            "no option `lerning_rate`. The nearest is",
        ),
        ("1.0e-5", "fast", 8, "`learning_rate` must be a number. Received: 'fast'"),
        ("1.0e-5", "-1", 8, "`learning_rate` must be at least 0. Received: -1"),
        ("train wikihop", "train wikihopp", 7, "`run` must be one of demo, prepare,"),
        ("run: train wikihop", "run: train wikihop\n      stage: two", 8, "a stage is an integer"),
        ("source:", "sauce:", 3, "mine has no `sauce`. It may have"),
        ("title: Mine", "title: [Mine]", 2, "`title` must be a str. Received: ['Mine']"),
        ("title: Mine", "like: yours", 2, "`like` must name another recipe."),
        ("  title: Mine\n", "", 1, "mine has no `title`."),
        ("wikihop\n  steps", "wikihopp\n  steps", 4, "there is no generated 'wikihopp'."),
        ("nowhere", "nowhere\n  preset: etc_bas", 4, "there is no preset 'etc_bas'."),
        ("nowhere", "nowhere\n  published: {f1: high}", 4, "a published score is a number."),
        ("nowhere", "nowhere\n  raw_files: {x: test}", 4, "a raw file is one of train, dev, text,"),
        ("    evaluation:", "    measuring:", 1, "mine has no `evaluation`."),
        ("      run: evaluate wikihop", "      - 1", 9, "must be a mapping. Received: [1]"),
    ],
)
def test_what_a_recipe_must_not_have_is_told_with_file_and_line(old, new, line, told, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(BASE.replace(old, new, 1))
    with pytest.raises(ValueError) as caught:
        recipe.read_recipes(str(file))
    message = str(caught.value)
    assert message.startswith(f"{file}, line {line}: ")
    assert told in message and "\n" not in message


def test_the_recipe_of_the_page_is_like_another_with_changes(tmp_path):
    (text,) = re.findall(r"```yaml\n(.*?)```", page.read("programs.md#recipes"), re.S)
    file = tmp_path / "mine.yaml"
    file.write_text(text + "    evaluation: {supporting_fact_threshold: null}\n")
    own = recipe.read_recipes(str(file))["hotpotqa_large_small_batch"]
    theirs = RECIPES["hotpotqa_large"]
    changed = {"train_batch_size": 8, "learning_rate": 1e-5}
    assert own.step("training").options == {**theirs.step("training").options, **changed}
    assert own.step("train_records") == theirs.step("train_records")
    assert own.published == theirs.published


# Runs, with commands that only write down that they ran.

SEEDS = """mine:
  title: Mine
  source: nowhere
  published: {accuracy: 0.5}
  generated: wikihop
  model: {model_type: etc, vocab_size: 50, hidden_size: 12, num_hidden_layers: 1}
  starts_from: a_model
  where_model: Somebody has it as FOLDER
  raw_files: {train.json: train}
  where: the library
  train_examples: 640
  seeds: 2
  steps:
    records:
      run: preprocess wikihop
      input_pattern: "{data}/train.json"
      output_dir: "{output}/records"
    training:
      run: train wikihop
      train_batch_size: 64
      num_train_epochs: 2.0
      output_dir: "{output}/run_{seed}"
    evaluation:
      run: evaluate wikihop
      output_dir: "{output}/run_{seed}"
"""


@pytest.fixture
def commands(monkeypatch):
    """The commands that ran; the one named in `fails` ends with status 3."""

    class Commands(list):
        fails = ""

        def run(self, *words, reads, **flags):
            line = fit.line(*words, **flags)
            if self.fails and self.fails in line:
                raise SystemExit(3)
            self.append(line)
            return f'told\n{{"accuracy": 0.{4 + 2 * len(self)}}}\n' if reads else None

    found = Commands()
    monkeypatch.setattr(fit, "run", found.run)
    return found


def a_run(folder, *others, **given):
    (folder / "own.yaml").write_text(SEEDS)
    options = recipe.RecipeOptions(
        **{"data": str(folder / "data"), "output_dir": str(folder / "out"), **given}
    )
    own = recipe.read_recipes(str(folder / "own.yaml"))["mine"]
    return recipe.run(own, options, others)


@pytest.fixture
def raw(tmp_path):
    """A folder with what the recipe needs."""
    (tmp_path / "data" / "a_model").mkdir(parents=True)
    (tmp_path / "data" / "train.json").write_text("[]")
    return tmp_path


def test_a_run_writes_the_mean_of_its_seeds_beside_the_published_score(raw, commands, capsys):
    result = a_run(raw, "--learning_rate=3e-5", "--skip_padding")
    steps = [line.split()[1] for line in commands]
    assert steps == ["preprocess", "train", "train", "evaluate", "evaluate"]
    assert "--learning_rate=3e-05 --skip_padding=true --random_seed=1" in commands[2]
    assert f"--output_dir={raw}/out/run_1" in commands[2]
    assert result["compared"] == {"accuracy": {"published": 0.5, "measured": pytest.approx(0.13)}}
    assert json.loads((raw / "out" / "result.json").read_text()) == result
    printed = capsys.readouterr().out
    assert printed.endswith(f"mine: accuracy 0.13 (published 0.5): {raw}/out/result.json\n")
    plan = printed.partition("cost")
    assert plan[0].count("etcmodel train wikihop") == 2
    assert re.search(r"for 20 steps; [\d.]+ GB on each\n", plan[2])


def test_a_stopped_run_goes_on_and_does_nothing_twice(raw, commands, capsys):
    commands.fails = "run_1"
    with pytest.raises(SystemExit):
        a_run(raw)
    before, commands.fails = list(commands), ""
    assert len(before) == 2
    a_run(raw, "--num_gpus=1")  # Another machine changes no result.
    assert [line.split()[1] for line in commands[2:]] == ["train", "evaluate", "evaluate"]
    assert "--num_gpus=1" in commands[2]
    assert "records is done" in capsys.readouterr().out


def test_what_contradicts_the_run_before_is_refused(raw, commands):
    a_run(raw)
    with pytest.raises(ValueError, match=r"training_0 has --train_batch_size=64, not 8\. Give"):
        a_run(raw, "--train_batch_size=8")
    with pytest.raises(ValueError, match=r"records has --input_pattern=.*, not elsewhere/train"):
        a_run(raw, data="elsewhere")
    (raw / "data" / "train.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"train\.json has changed since .*recipe\.json"):
        a_run(raw)
    assert len(commands) == 5


def test_what_is_missing_is_told_with_where_to_get_it(tmp_path, commands):
    with pytest.raises(ValueError, match=r"train\.json: no such file\. Get it from the library"):
        a_run(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.json").write_text("[]")
    with pytest.raises(ValueError, match=r"Somebody has it as .*/data/a_model; or give --init_"):
        a_run(tmp_path)
    assert not commands and not (tmp_path / "out" / "recipe.json").exists()


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--lerning_rate=1", "--lerning_rate: there is no option `lerning_rate`. The nearest"),
        ("--learning_rate=fast", "--learning_rate: `learning_rate` must be a number."),
        ("--learning_rate=-1", "--learning_rate: `learning_rate` must be at least 0."),
        ("-x", "-x: flags of the training follow `--`, as --name=value."),
    ],
)
def test_flags_of_the_training_are_checked_before_anything_runs(flag, told, raw, commands):
    with pytest.raises(ValueError, match=re.escape(told)):
        a_run(raw, flag)
    assert not commands and not (raw / "out").exists()


def test_a_name_that_is_no_recipe_is_told_the_nearest():
    options = recipe.RecipeOptions(action="show")
    with pytest.raises(ValueError, match=r"Received: hotpot_base\. The nearest: hotpotqa_base"):
        recipe.main(options, ["hotpot_base"])
    with pytest.raises(ValueError, match=r"Give the name of one recipe.* Received: none\.$"):
        recipe.main(options, [])


def test_steps_of_a_second_stage_run_after_all_of_the_first():
    steps = RECIPES["longformer_hotpotqa"].steps
    assert [step.stage for step in steps] == [1] * 6 + [2] * 4
    names = [step.name for step in steps]
    assert names.index("first_train_scores") < names.index("train_records")
    written = next(x for x in steps if x.name == "first_train_scores").options["predictions_file"]
    read = next(x for x in steps if x.name == "train_records").options["first_stage"]
    assert read == written.replace(".json", "_paragraphs.jsonl")


# Whole runs.


# One of the data sets, one of windows of text, and one of phases.
SLOW = ("nq_base_2x_pretraining", "gmat_mlm_512", "longformer_text8")


def marked(name):
    kind = [pytest.mark.slow] if name in SLOW else [pytest.mark.exhaustive]
    return pytest.param(name, marks=kind)


@pytest.mark.parametrize("name", [marked(name) for name in RECIPES])
def test_the_whole_recipe_runs_on_generated_data(name, tmp_path):
    command = [warm.python(), "-m", "etcmodel", "recipe", "run", name, "--tiny"]
    done = subprocess.run(
        [*command, f"--output_dir={tmp_path}"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = json.loads(pathlib.Path(tmp_path, "result.json").read_text())
    assert result["tiny"]
    measured = {name: x["measured"] for name, x in result["compared"].items()}
    assert measured.keys() == RECIPES[name].published.keys()
    assert all(map(math.isfinite, measured.values()))
    assert f"{name}, on generated data: " in done.stdout
