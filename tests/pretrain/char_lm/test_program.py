"""run_char_lm: the commands of its page, runs that are killed, and what is refused."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

import etcmodel
from etcmodel.models.longformer_char_lm import PRESETS
from etcmodel.pretrain.char_lm import program
from etcmodel.tools import recipe
from tests import page
from tests.warm import python as warm

pytestmark = pytest.mark.slow

PAGE = page.read("longformer.md#training-a-character-model")
SECONDS = 500  # Other programs may take most of the machine.


def commands(title):
    """The commands of a section of the page, each a list of its words."""
    section = re.search(rf"^### {title}\n(.*?)^###? ", PAGE, re.M | re.S)[1]
    block = re.search(r"```sh\n(.*?)```", section, re.S)[1].replace("\\\n", " ")
    return [line.split() for line in block.splitlines()]


TRAIN, EVALUATE = commands("A small example")


def write_files(folder):
    """The text and the model that the page's commands take."""
    rng = np.random.default_rng(0)
    words = ["a", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "sleeps"]
    (folder / "text.txt").write_text(" ".join(rng.choice(words, 8000)), encoding="utf-8")
    config = re.search(r"```json\n(.*?)```", PAGE, re.S)[1]
    (folder / "small.json").write_text(config, encoding="utf-8")


def start(command, folder, python=None, **options):
    program_name, *arguments = command
    assert program_name == "python"
    return subprocess.Popen(
        [
            python or warm.python(),
            *arguments,
            *(f"--{name}={value}" for name, value in options.items()),
        ],
        cwd=folder,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """What a program printed: (lines of its output, of its messages)."""
    output, messages = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, messages[-3000:]
    return output.splitlines(), messages.splitlines()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(folder, metrics that training printed, its messages), by the page's command."""
    folder = tmp_path_factory.mktemp("char_lm")
    write_files(folder)
    output, messages = finish(start(TRAIN, folder))
    return folder, json.loads(output[-1]), messages


def run_here(command, folder, **options):
    """Runs the program in this process, from the folder."""
    made = program.Program(flags.FlagValues())
    made.define_flags()
    given = [f"--{name}={value}" for name, value in options.items()]
    made.flag_values(["run_char_lm", *command[3:], *given])
    with page.working_in(folder):
        made.main([])


def test_the_page_trains_two_phases_that_learn(trained):
    folder, metrics, messages = trained
    assert metrics["bits_per_character"] < metrics["unigram_bits_per_character"] - 0.3
    for phase, step in ((1, 40), (2, 10)):
        lines = (folder / "run" / f"phase_{phase}" / "eval_metrics.jsonl").read_text()
        assert json.loads(lines.splitlines()[-1])["step"] == step
    told = "\n".join(messages)
    assert "phase 1: 40 steps, sequences of 64 characters, windows of 4 to 16" in told
    assert "phase 2: 10 steps, sequences of 128 characters, windows of 8 to 32" in told
    assert [re.sub(r"characters? [\d.]+", "character N", line) for line in messages[-5:]] == [
        "done    step 10",
        "best    step 10, bits_per_character N: run/phase_2/best/ckpt-10",
        "folder  run/phase_2",
        "next    etcmodel evaluate char_lm --output_dir=run --eval_split=test",
        "        etcmodel report --run=run/phase_2 --output=run/report.html",
    ]
    assert re.search(r"step 10/10  loss \S+  lr 0.0015  \S+ examples/s  time left", told)


def test_the_second_phase_begins_where_the_first_was_best(trained):
    folder, *_ = trained
    kept = json.loads((folder / "run" / "phase_2" / "run_config.json").read_text())
    assert kept["training"]["init_checkpoint"].startswith("run/phase_1/best/ckpt-")
    assert kept["training"]["learning_rate"] == 0.0015
    of_phase = json.loads((folder / "run/phase_2/eval_metrics.jsonl").read_text().splitlines()[0])
    before = json.loads((folder / "run/phase_1/eval_metrics.jsonl").read_text().splitlines()[0])
    assert of_phase["bits_per_character"] < before["bits_per_character"]


def test_the_page_evaluates_by_the_definition_of_overlapping_sequences(trained):
    """One sequence after the other, by the model that a folder of the run is."""
    folder, *_ = trained
    output, messages = finish(start(EVALUATE, folder))
    found = json.loads(output[-1])
    assert any("evaluating run/phase_2/best/ckpt-10 on the test text" in x for x in messages)
    model = etcmodel.from_pretrained(str(folder / "run" / "phase_2"), "ckpt-10")
    content = (folder / "text.txt").read_bytes()
    test = np.frombuffer(content[len(content) - len(content) // 20 :], np.uint8)
    total, last = 0.0, 128 - 32
    while last < len(test) - 1:
        end = min(last + 32, len(test) - 1) if last > 96 else 128
        logits = model(test[np.newaxis, end - 128 : end])[0]
        log_probs = tf.nn.log_softmax(logits).numpy()[last - end :]
        targets = test[last + 1 : end + 1]
        total -= log_probs[np.arange(len(targets)), targets].sum() / np.log(2)
        last = end
    assert found["characters"] == len(test) - 1 - 96
    assert found["bits_per_character"] == pytest.approx(total / found["characters"], rel=1e-5)


def values_of(folder, number, step):
    """Every variable of a phase's checkpoint by name."""
    reader = tf.train.load_checkpoint(str(folder / "run" / f"phase_{number}" / f"ckpt-{step}"))
    skipped = ("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE")
    names = [x for x in reader.get_variable_to_shape_map() if x not in skipped]
    return {name: reader.get_tensor(name) for name in names}


def wait_for(path, process):
    """Waits until the process has written the file."""
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        assert process.poll() is None, process.communicate()[1][-3000:]
        assert time.monotonic() < deadline, f"There is no {path}."
        time.sleep(0.02)


@pytest.mark.exhaustive
def test_a_run_that_is_killed_in_each_phase_comes_to_the_same_result(trained, tmp_path):
    write_files(tmp_path)
    for first in ("phase_1/ckpt-20.index", "phase_2/run_config.json"):
        process = start(TRAIN, tmp_path, python=sys.executable)
        wait_for(tmp_path / "run" / first, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finish(start(TRAIN, tmp_path))
    for number, step in ((1, 40), (2, 10)):
        expected, found = (values_of(x, number, step) for x in (trained[0], tmp_path))
        assert found.keys() == expected.keys()
        for name in expected:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5, err_msg=name)


def test_a_further_phase_goes_on_from_a_run(trained, tmp_path, capsys):
    shutil.copytree(trained[0], tmp_path, dirs_exist_ok=True)
    run_here(TRAIN, tmp_path, steps_per_phase="40,10,2")
    printed = capsys.readouterr()
    assert "phase 3: 2 steps, sequences of 256 characters, windows of 16 to 64" in printed.err
    assert (tmp_path / "run" / "phase_3" / "ckpt-2.index").exists()


@pytest.mark.exhaustive
def test_a_change_holds_for_the_phase_and_those_after_it(trained, tmp_path, capsys):
    shutil.copytree(trained[0], tmp_path, dirs_exist_ok=True)
    run_here(TRAIN, tmp_path, steps_per_phase="40,10,2", change="learning_rate=0.001")
    run_here(TRAIN, tmp_path, steps_per_phase="40,10,2")
    (change,) = json.loads((tmp_path / "run/phase_2/history.json").read_text())["changes"]
    assert (change["step"], change["old"], change["new"]) == (10, 0.0015, 0.0005)
    kept = json.loads((tmp_path / "run/phase_3/run_config.json").read_text())
    assert kept["training"]["learning_rate"] == 0.00025
    assert not (tmp_path / "run/phase_1/history.json").exists()
    capsys.readouterr()
    for rate in ("0.003", "0.001"):  # As the run began, and as it goes on.
        run_here(TRAIN, tmp_path, steps_per_phase="40,10,2", learning_rate=rate)
    with pytest.raises(SystemExit):
        run_here(TRAIN, tmp_path, steps_per_phase="40,10,2", learning_rate="0.002")
    for name in ("num_train_epochs", "stop_at_step"):
        with pytest.raises(SystemExit):
            run_here(TRAIN, tmp_path, change=f"{name}=2")
        assert f"--change={name}: --steps_per_phase says" in capsys.readouterr().err


def test_the_recipes_are_the_paper_s_table():
    small, large = (
        recipe.read_recipes()[name].step("training").options
        for name in ("longformer_enwik8", "longformer_enwik8_large")
    )
    assert small["steps_per_phase"] == (430_000, 50_000, 50_000, 35_000, 5_000)
    assert large["steps_per_phase"] == (350_000, 25_000, 10_000, 5_000, 5_000)
    assert {small["preset"], large["preset"]} == set(PRESETS)
    for found in (small, large):
        assert (found["seq_length"], found["max_seq_length"]) == (2048, 23_040)
        assert (found["learning_rate"], found["train_batch_size"]) == (2.5e-4, 32)
        assert (found["gradient_clip_norm"], found["weight_decay_rate"]) == (0.25, 0.01)
        assert (found["learning_rate_schedule"], found["warmup_proportion"]) == ("constant", 0.1)
    evaluation = recipe.read_recipes()["longformer_enwik8"].step("evaluation").options
    assert (evaluation["eval_length"], evaluation["eval_step"]) == (32_256, 512)


REFUSED = {
    "no text": (TRAIN, {"text_file": ""}, "--run_mode=train also needs --text_file."),
    "no file": (TRAIN, {"text_file": "x"}, "--text_file: no such file: 'x'"),
    "both models": (TRAIN, {"preset": "small"}, "Either --preset or --model_config_file must be"),
    "short text": (TRAIN, {"seq_length": 4000}, "the dev text has 1917 bytes, too few for"),
    "long phase": (
        TRAIN,
        {"seq_length": 30_000, "eval_length": 9, "eval_step": 1},
        "the training text has 34514 bytes, too few for sequences of 60000 characters",
    ),
    "test text": (TRAIN, {"eval_split": "test"}, "training chooses checkpoints by the dev text"),
    "epochs": (TRAIN, {"num_train_epochs": 2}, "--num_train_epochs: --steps_per_phase says"),
    "end": (TRAIN, {"stop_at_step": 2}, "--stop_at_step: --steps_per_phase says how long it is"),
    "other rate": (TRAIN, {"learning_rate": 0.1}, "They differ in training.learning_rate: 0.003"),
    "no run": (EVALUATE, {"output_dir": "none"}, "there is no phase with a checkpoint"),
    "other model": (EVALUATE, {"preset": "small"}, "was made with another config"),
    "other length": (EVALUATE, {"seq_length": 99}, "--seq_length=99: the run in run/phase_"),
    "other text": (EVALUATE, {"text_file": "small.json"}, "was made with another text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_told_in_a_line(trained, capsys, name):
    command, changes, message = REFUSED[name]
    with pytest.raises(SystemExit) as ended:
        run_here(command, trained[0], **changes)
    told = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 1
    assert told[-1].startswith("error: ") and message in told[-1]


def test_models_that_cannot_be_are_refused(trained, capsys):
    folder, *_ = trained
    entries = json.loads((folder / "small.json").read_text())
    for change, message in (
        ({"vocab_size": 99}, "`vocab_size` must be at least 256, for bytes. Received: 99"),
        ({"hidden_size": 65}, "multiple of `num_attention_heads`"),
    ):
        (folder / "other.json").write_text(json.dumps({**entries, **change}))
        with pytest.raises(SystemExit):
            run_here(TRAIN, folder, model_config_file="other.json")
        assert message in capsys.readouterr().err
