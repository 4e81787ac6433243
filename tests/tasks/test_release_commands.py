"""The commands of the release's documentation, with small data and without a TPU."""

import json
import pathlib
import shutil

import pytest
from absl import flags

from etcmodel import finetuning, training
from etcmodel.finetuning import program as program_lib
from etcmodel.preprocessing import program
from etcmodel.tasks.hotpotqa import preprocess as hotpotqa_preprocess
from etcmodel.tasks.nq import gold as nq_gold
from etcmodel.tasks.nq import preprocess as nq_preprocess
from etcmodel.tasks.openkp import preprocess as openkp_preprocess
from etcmodel.tasks.wikihop import preprocess as wikihop_preprocess
from etcmodel.tools import make_demo_data
from tests.tasks import programs

pytestmark = pytest.mark.slow

STEPS = [1, 2, 3]
ETC_CONFIG = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "local_radius": 8,
    "relative_pos_max_distance": 4,
    "relative_vocab_size": 12,
}
LENGTHS = {"hotpotqa": (320, 96), "nq": (128, 48), "wikihop": (160, 56), "openkp": (104, 16)}

# As the release's documentation has it; {} is a folder. A program's second job takes the flags of
# `both` and `evaluation`.
TPU = {
    "use_tpu": "true",
    "tpu_name": "a-tpu",
    "tpu_zone": "a-zone",
    "gcp_project": "a-project",
}
COMMANDS = {
    "nq": {
        "both": {
            "etc_config_file": "{}/etc_config.json",
            "output_dir": "{}/model",
            "gold_cache_path": "{}/cache",
            "train_precomputed_file": "{}/nq-train*",
            "predict_precomputed_file": "{}/nq-dev*",
            "train_num_precomputed": "12",
            "init_checkpoint": "{}/model.ckpt",
            **TPU,
            "grad_checkpointing_period": "1",
        },
        "training": {"do_train": "true"},
        "evaluation": {"do_predict": "true"},
        "sizes": {
            "max_seq_length": "128",
            "max_global_seq_length": "48",
            "train_batch_size": "4",
            "num_train_epochs": "1",
        },
    },
    "hotpotqa": {
        "both": {
            "etc_config_file": "{}/etc_config.json",
            "init_checkpoint": "{}/model.ckpt",
            "output_dir": "{}/model",
            "train_tf_examples_filepattern": "{}/tf_examples_train-*-of-00002",
            "num_train_tf_examples": "12",
            "predict_tf_examples_filepattern": "{}/tf_examples_dev_distractor-*-of-00002",
            "predict_gold_json_file": "{}/dev.json",
            "spm_model_file": "",
            "vocab_file": "{}/vocab.txt",
            "max_long_seq_length": "320",
            "max_global_seq_length": "96",
            "learning_rate": "5e-5",
            "num_train_epochs": "1",
            "train_batch_size": "4",
            "predict_batch_size": "2",
            "flat_sequence": "False",
            **TPU,
            "grad_checkpointing_period": "0",
            "num_tpu_cores": "32",
        },
        "training": {"run_mode": "train"},
        "evaluation": {"run_mode": "predict"},
        "sizes": {},
    },
    "wikihop": {
        "both": {
            "source_model_config_file": "{}/etc_config.json",
            "output_dir": "{}/model",
            "init_checkpoint": "{}/model.ckpt",
            "candidate_ignore_hard_g2l": "True",
            "query_ignore_hard_g2l": "True",
            "enable_l2g_linking": "True",
            "long_seq_len": "160",
            "global_seq_len": "56",
            "optimizer": "adamw",
            "learning_rate": "4e-5",
            "train_batch_size": "4",
            "num_train_examples": "12",
            **TPU,
            "grad_checkpointing_period": "0",
            "num_tpu_cores": "32",
            "local_radius": "-1.0",
        },
        "training": {"do_train": "True", "input_tf_records_path": "{}/train/tf_examples*"},
        "evaluation": {
            "do_eval": "True",
            "eval_batch_size": "8",
            "input_tf_records_path": "{}/dev/tf_examples*",
        },
        "sizes": {"num_train_epochs": "1"},
    },
    "openkp": {
        "both": {
            "etc_config_file": "{}/etc_config.json",
            "output_dir": "{}/model",
            "init_checkpoint": "{}/model.ckpt",
            "batch_size": "4",
            "num_train_examples": "12",
            **TPU,
            "grad_checkpointing_period": "1",
        },
        "training": {"do_train": "true", "input_tfrecord": "{}/OpenKPTrain.tfrecord*"},
        "evaluation": {
            "do_eval": "true",
            "input_tfrecord": "{}/OpenKPDev.tfrecord*",
            "eval_text_example_path": "{}/dev.jsonl",
            "eval_fraction_of_removed_examples": "0.25",
        },
        "sizes": {"long_max_length": "104", "global_max_length": "16", "num_train_epochs": "1"},
    },
}
TASKS = sorted(COMMANDS)


def command(task, job, folder):
    """The flags of a job: dict."""
    parts = COMMANDS[task]
    arguments = {**parts["both"], **parts[job], **parts["sizes"]}
    return {name: value.format(folder) for name, value in arguments.items()}


def here(task, job, folder):
    """The flags of a job without TPU and initial weights, with a checkpoint a step."""
    arguments = command(task, job, folder)
    del arguments["init_checkpoint"]
    return {**arguments, "use_tpu": "False", "save_checkpoints_steps": "1"}


def parsed(task, monkeypatch, **arguments):
    """A task's program with these flags, resolved, and the lines that it tells."""
    found = []

    def run_program(task_class, predictor_class, *, defaults=None, release=None):
        made = program_lib.Program(task_class, predictor_class, flags.FlagValues(), release)
        made.define_flags(defaults or {})
        made.flag_values(["run_finetuning", *programs.flag_list(arguments)])
        found.append((made, release.resolve(made.flag_values)))

    monkeypatch.setattr(finetuning, "run_program", run_program)
    programs.run_module(task)
    return found[0]


def evaluations(folder):
    lines = (folder / "model" / "eval_metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module", params=TASKS)
def made(request, tmp_path_factory):
    """A task and a folder with its data, under the names of the release."""
    task = request.param
    folder = tmp_path_factory.mktemp(task)
    paths = make_demo_data.make_demo_data(
        dataset=task, output_dir=str(folder / "raw"), num_train=12, num_dev=4, seed=3
    )
    shutil.copy(paths["vocab"], folder / "vocab.txt")
    shutil.copy(paths["dev"], folder / f"dev{pathlib.Path(paths['dev']).suffix}")
    vocab_size = len((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    config = {**ETC_CONFIG, "vocab_size": vocab_size}
    (folder / "etc_config.json").write_text(json.dumps(config))
    MAKERS[task](folder, paths, *LENGTHS[task])
    return task, folder


def make(module, **options):
    options = module.PreprocessOptions(num_shards=2, strict=True, **options)
    list(program.run(options, module.load_parts))


def make_hotpotqa(folder, paths, long_length, global_length):
    for split, name in (("train", "tf_examples_train"), ("dev", "tf_examples_dev_distractor")):
        make(
            hotpotqa_preprocess,
            input_pattern=paths[split],
            output_prefix=str(folder / name),
            vocab_file=paths["vocab"],
            long_seq_length=long_length,
            global_seq_length=global_length,
            is_training=split == "train",
        )


def make_nq(folder, paths, long_length, global_length):
    for split in ("train", "dev"):
        make(
            nq_preprocess,
            input_pattern=paths[split],
            output_prefix=str(folder / f"nq-{split}"),
            vocab_file=paths["vocab"],
            is_training=split == "train",
            long_seq_length=long_length,
            global_seq_length=global_length,
            question_len=16,
            stride=64,
        )
    nq_gold.write_gold_cache(paths["dev"], str(folder / "cache"))


def make_wikihop(folder, paths, long_length, global_length):
    make(
        wikihop_preprocess,
        input_pattern=paths["train"],
        dev_input_pattern=paths["dev"],
        output_prefix=str(folder / "records"),
        vocab_file=paths["vocab"],
        tokenizer_type="BERT",
        long_seq_length=long_length,
        global_seq_length=global_length,
    )
    for split in ("train", "dev"):
        (folder / split).mkdir()
        shards = (folder / "records").rglob("*.tfrecord")
        for path in [p for p in shards if split in str(p.relative_to(folder))]:
            number = path.name.rpartition("-of-")[0][-5:]
            total = path.name.rpartition("-of-")[2]
            path.rename(folder / split / f"tf_examples-{number}-of-{total}")


def make_openkp(folder, paths, long_length, global_length):
    for split, name in (("train", "OpenKPTrain"), ("dev", "OpenKPDev")):
        raw = folder / "raw" / f"{name}.jsonl"
        shutil.copy(paths[split], raw)
        make(
            openkp_preprocess,
            input_pattern=str(raw),
            output_dir=str(folder),
            vocab_file=paths["vocab"],
            is_training=split == "train",
            long_seq_length=long_length,
            global_seq_length=global_length,
        )


MAKERS = {
    "hotpotqa": make_hotpotqa,
    "nq": make_nq,
    "wikihop": make_wikihop,
    "openkp": make_openkp,
}


def test_training_and_then_the_second_job_evaluate_every_checkpoint(made, capsys):
    task, folder = made
    shutil.rmtree(folder / "model", ignore_errors=True)
    if task == "wikihop":  # As documented, the jobs run beside each other.
        evaluation = programs.start(task, "run_finetuning", **here(task, "evaluation", folder))
        programs.fine_tune(task, **here(task, "training", folder))
        printed, told = programs.finish(evaluation)
    else:
        if task == "hotpotqa":
            programs.finish(
                programs.start(task, "run_finetuning", **here(task, "training", folder))
            )
        else:
            programs.fine_tune(task, **here(task, "training", folder))
        capsys.readouterr()
        programs.fine_tune(task, **here(task, "evaluation", folder))
        printed, told = capsys.readouterr()
    found = evaluations(folder)
    steps = sorted(line.pop("step") for line in found)
    last = int(told.rpartition("step ")[2].partition("/")[0]) if "  evaluated in" in told else None
    assert steps == list(range(1, steps[-1] + 1)) and len(steps) >= 2
    assert json.loads(printed.splitlines()[-1]) == found[-1]
    # NQ's and HotpotQA's training has the evaluation's flags and has done it.
    assert last == (steps[-1] if task in ("wikihop", "openkp") else None)
    assert (folder / "model" / "best" / "best_metric.json").exists()


@pytest.mark.parametrize("task", TASKS)
def test_the_commands_ask_for_what_they_say(task, monkeypatch, tmp_path):
    made_program, lines = parsed(task, monkeypatch, **command(task, "training", tmp_path))
    config = training.training_config_from_flags(made_program.flag_values)
    assert made_program.flag_values.run_mode == "train"
    assert config.distribution_strategy == "tpu"
    assert (config.tpu_name, config.tpu_zone, config.gcp_project) == tuple(TPU.values())[1:]
    assert config.train_batch_size == 4 and config.init_checkpoint == f"{tmp_path}/model.ckpt"
    assert "--use_tpu=true is read as --distribution_strategy=tpu." in lines

    made_program, lines = parsed(task, monkeypatch, **command(task, "evaluation", tmp_path))
    values = made_program.flag_values
    assert values.run_mode == "continuous_eval"
    config_class = made_program.task_class.config_class
    pattern = values[config_class.flag_name("eval_pattern")].value
    asked = COMMANDS[task]["both"] | COMMANDS[task]["evaluation"]
    names = ("predict_precomputed_file", "predict_tf_examples_filepattern")
    names += ("input_tf_records_path", "input_tfrecord")
    (expected,) = {asked[name] for name in names if name in asked}
    assert pattern == expected.format(tmp_path)
    assert all(line.endswith(".") and "\n" not in line for line in lines)


# The flags of the release that neither the commands above nor ours of the same name have.
OTHER_FLAGS = {
    "nq": [
        "--do_inference=false",
        "--inference_output_name=x",
        "--iterations_per_loop=1000",
        "--master=x",
        "--verbose_logging=true",
        "--tpu_job_name=x",
        "--sep_tok_id=102",
        "--cls_tok_id=101",
        "--max_short_answer_len=32",
    ],
    "hotpotqa": [
        "--tpu_job_name=x",
        "--iterations_per_loop=500",
        "--master=x",
        "--save_raw_predictions=false",
        "--export_ckpts=x",
    ],
    "wikihop": [
        "--predict_ckpt=x",
        "--predict_output_file_path=x",
        "--hidden_dropout_prob=-1",
        "--attention_probs_dropout_prob=-1",
        "--do_predict=false",
        "--do_export=false",
        "--max_eval_steps=600",
        "--iterations_per_loop=1000",
        "--keep_checkpoint_max=100",
        "--use_one_hot_embeddings=false",
        "--add_final_layer=true",
        "--master=x",
        "--tpu_job_name=x",
        "--num_dev_examples=5129",
    ],
    "openkp": [
        "--predict_text_example_path=x",
        "--predict_checkpoint_path=x",
        "--predict_output_name=inference",
        "--num_labels=3",
        "--iterations_per_loop=200",
        "--master=x",
        "--verbose_logging=true",
        "--tpu_job_name=x",
        "--x_coords_min=-50",
        "--indicators_to_cross=global_block_indicator,global_bold_indicator",
    ],
}


@pytest.mark.parametrize("task", TASKS)
def test_all_other_flags_are_taken(task, monkeypatch, tmp_path):
    others = dict(argument.removeprefix("--").split("=", 1) for argument in OTHER_FLAGS[task])
    arguments = {**command(task, "training", tmp_path), **others}
    _, lines = parsed(task, monkeypatch, **arguments)
    without_effect = {line.split(" ")[0] for line in lines if "has no effect" in line}
    assert {"--iterations_per_loop", "--master", "--tpu_job_name"} <= without_effect
