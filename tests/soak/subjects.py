"""Which programs read which files, and what is certainly wrong with these."""

import dataclasses
import functools
import json
from collections.abc import Callable

from tests.soak import malformed, wrong
from tests.soak.whole_files import EVALUATION, PIECES, same_answers, same_metrics, same_weights


@dataclasses.dataclass(frozen=True)
class Subject:
    """A file, damaged, and a program that reads it.

    Attributes:
        module: str. The program.
        flags: dict of str. Paths are relative to the folder of a case.
        files: tuple of str. One of them is damaged.
        wrong: tuple of functions of `wrong`.
        skips: bool. Whether the program may leave out a bad part of the file, and tell so.
        is_same: function of the folder and the program's output: whether what was made is what the
            undamaged file gives. None: what was accepted may be anything.
        tells_entries: bool. Whether an error may name options or entries of a config instead, such
            as one that the damage took out of the file.
        part: int. One case where other subjects have so many.
    """

    module: str
    flags: dict
    files: tuple
    wrong: tuple
    skips: bool = False
    is_same: Callable | None = None
    tells_entries: bool = False
    part: int = 1


def _raw_data(module, file, fields, **flags):
    """The subject of a program that reads a file of JSON objects and leaves out bad ones."""
    return Subject(module, flags, (file,), wrong.json_lines(*fields), skips=True)


def _preprocessing(module, file, fields, **flags):
    """The subject of a preprocessing program: its raw file."""
    flags = {"input_pattern": file, "num_shards": 1, "direct_num_workers": 1, **flags}
    return _raw_data(module, file, fields, **flags)


_TASKS = "etcmodel.tasks."
_OUTPUT = {"output_prefix": "made/x"}
PREPROCESSING = {
    "raw data of hotpotqa": _preprocessing(
        f"{_TASKS}hotpotqa.preprocess",
        "hotpotqa/hotpotqa_train.json",
        ("question", "context", "answer"),
        is_training="true",
        vocab_file="hotpotqa/vocab.txt",
        **_OUTPUT,
    ),
    "raw data of nq": _preprocessing(
        f"{_TASKS}nq.preprocess",
        "nq/nq_train.jsonl",
        ("question_text", "long_answer_candidates", "annotations"),
        is_training="true",
        vocab_file="nq/vocab.txt",
        **_OUTPUT,
    ),
    "raw data of wikihop": _preprocessing(
        f"{_TASKS}wikihop.preprocess",
        "wikihop/wikihop_train.json",
        ("query", "supports", "candidates", "answer"),
        vocab_file="wikihop/vocab.txt",
        output_dir="made",
    ),
    "raw data of openkp": _preprocessing(
        f"{_TASKS}openkp.preprocess",
        "openkp/openkp_train.jsonl",
        ("text", "VDOM", "KeyPhrases"),
        is_training="true",
        vocab_file="openkp/vocab.txt",
        **_OUTPUT,
    ),
    "raw data of pre-training": _preprocessing(
        "etcmodel.pretrain.preprocess",
        "texts.jsonl",
        ("text",),
        vocab_file="hotpotqa/vocab.txt",
        long_seq_length=128,
        **_OUTPUT,
    ),
    "a vocabulary": Subject(
        f"{_TASKS}hotpotqa.preprocess",
        PREPROCESSING_FLAGS := {
            "input_pattern": "hotpotqa/hotpotqa_train.json",
            "vocab_file": "hotpotqa/vocab.txt",
            "direct_num_workers": 1,
            "num_shards": 1,
            **_OUTPUT,
        },
        ("hotpotqa/vocab.txt",),
        (wrong.empty, wrong.no_vocabulary, wrong.utf16),
    ),
    "a SentencePiece model": Subject(
        f"{_TASKS}hotpotqa.preprocess",
        {**PREPROCESSING_FLAGS, "vocab_file": "", "spm_model_file": PIECES},
        (PIECES,),
        (wrong.empty, wrong.noise),
    ),
    "gold of nq": _raw_data(
        f"{_TASKS}nq.make_gold_cache",
        "nq/nq_dev.jsonl",
        ("annotations",),
        input_pattern="nq/nq_dev.jsonl",
        output_file="made/gold.jsonl.gz",
    ),
    "pages to clean": _raw_data(
        f"{_TASKS}openkp.input_validate_and_dedup",
        "openkp/openkp_dev.jsonl",
        ("text", "VDOM", "url"),
        input_file="openkp/openkp_dev.jsonl",
        output_file="made/clean.jsonl",
    ),
}
_CONVERT = {"output_dir": "converted", "output_format": "safetensors"}
_NUMBERS = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")


def _checkpoint(path):
    """The subject of a checkpoint of TensorFlow: its files."""
    prefix = f"checkpoints/{path}"
    return Subject(
        "etcmodel.tools.convert_checkpoint",
        {**_CONVERT, "input": prefix},
        _bundle(prefix),
        (wrong.cut_file, wrong.empty),
        is_same=same_weights,
    )


def _bundle(prefix):
    return tuple(f"{prefix}.{end}" for end in ("index", "data-00000-of-00001"))


CONVERSION = {
    "a checkpoint by names": _checkpoint("released/model.ckpt"),
    "a checkpoint by objects": _checkpoint("tf2/ckpt"),
    "safetensors": Subject(
        "etcmodel.tools.convert_checkpoint",
        {**_CONVERT, "input": "checkpoints/safetensors/model.safetensors"},
        ("checkpoints/safetensors/model.safetensors",),
        (wrong.cut_file, wrong.empty, wrong.safetensors_header, wrong.other_weights),
    ),
    "a model's config": Subject(
        "etcmodel.tools.convert_checkpoint",
        {**_CONVERT, "input": "checkpoints/safetensors", "output_format": "tf2"},
        ("checkpoints/safetensors/etc_config.json",),
        (*wrong.json_object(*_NUMBERS), wrong.endless_integer, wrong.empty),
        tells_entries=True,
    ),
}
_EVALUATE = {"run_mode": "evaluate", "output_dir": "hotpotqa/run", **EVALUATION}
_TRAIN = {
    **_EVALUATE,
    "run_mode": "train",
    "train_data": "hotpotqa/records/train-*.tfrecord",
    "eval_data": "",
    "eval_gold": "",
    "train_batch_size": 2,
    "num_train_epochs": 1,
    "learning_rate": 0.01,
    "save_checkpoints_steps": 2,
    "steps_per_summary": 1,
    "model_config_file": "hotpotqa/etc_config.json",
}
_FINE_TUNING = f"{_TASKS}hotpotqa.run_finetuning"
_RECORDS = "hotpotqa/records/dev-00000-of-00001.tfrecord"
_RUN = "hotpotqa/run"
_EXPORT = "hotpotqa/export/2"
_PREDICT = {
    "run_mode": "predict",
    "export_dir": "hotpotqa/export",
    "input_file": "hotpotqa/hotpotqa_dev.json",
    "predictions_file": "answers.json",
}


_evaluated = functools.partial(Subject, _FINE_TUNING, _EVALUATE)
_predicted = functools.partial(Subject, _FINE_TUNING, _PREDICT)


def fine_tuning():
    """The subjects of the program that trains and evaluates."""
    record_damage = (wrong.cut_records, wrong.flipped_bit)
    features = tuple(
        wrong.features(name) for name in ("long_token_ids", "global_token_ids", "long_sentence_ids")
    )
    return {
        "records": _evaluated((_RECORDS,), (*record_damage, *features), is_same=same_metrics),
        "settings of records": _evaluated(
            ("hotpotqa/records/dev.config.json",), wrong.WRONG_JSON, part=2
        ),
        "gold to evaluate": _evaluated(
            ("hotpotqa/hotpotqa_dev.json",),
            (wrong.cut_text, wrong.no_utf8, wrong.utf16, wrong.too_deep, wrong.empty),
            part=2,
        ),
        "a run's checkpoint": _evaluated(
            _bundle(f"{_RUN}/ckpt-2"), (wrong.empty,), is_same=same_metrics
        ),
        "a run's files": _evaluated(
            (f"{_RUN}/run_config.json",),
            (
                *wrong.WRONG_JSON,
                *wrong.json_object("task", "training", "notes", values=(None, -3, "x", []))[-1:],
            ),
            part=2,
        ),
        "a run's list of checkpoints": _evaluated(
            (f"{_RUN}/checkpoint",),
            (wrong.empty, wrong.noise, wrong.other_json),
            is_same=same_metrics,
            part=2,
        ),
        "a run's metrics": Subject(
            _FINE_TUNING, _TRAIN, (f"{_RUN}/train_metrics.jsonl",), (_foreign_line,), part=3
        ),
        "a config to train": Subject(
            _FINE_TUNING,
            {**_TRAIN, "output_dir": "new"},
            ("hotpotqa/etc_config.json",),
            (*wrong.json_object(*_NUMBERS), wrong.endless_integer, wrong.empty),
            tells_entries=True,
            part=3,
        ),
        "options": Subject(
            _FINE_TUNING,
            {"config": "options.yaml"},
            ("options.yaml",),
            (wrong.yaml_options,),
            tells_entries=True,
            part=2,
        ),
        "an export": _predicted(
            _bundle(f"{_EXPORT}/variables/variables"),
            (wrong.cut_file, wrong.empty),
            is_same=same_answers,
        ),
        "an export's graph": _predicted(
            (f"{_EXPORT}/saved_model.pb",),
            (wrong.cut_file, wrong.empty, wrong.noise),
            is_same=same_answers,
        ),
        "an export's files": _predicted(
            (f"{_EXPORT}/assets/etc_config.json", f"{_EXPORT}/assets/hotpotqa_config.json"),
            wrong.WRONG_JSON,
        ),
        "examples to predict": _raw_data(
            _FINE_TUNING, "hotpotqa/hotpotqa_dev.json", ("question", "context"), **_PREDICT
        ),
    }


def _foreign_line(random, content):
    line = random.choice((b"3", b"[]", b'{"loss": 2}', b'{"step": "2"}', b'{"step": true}'))
    return content + line + b"\n"


def damage(random, subject, content):
    """(damaged bytes, whether they are certainly wrong) of a file of the subject."""
    if random.random() < 0.6:
        return random.choice(subject.wrong)(random, content), True
    try:
        value = json.loads(content)
    except ValueError:
        return malformed.damaged(random, content), False
    if random.random() < 0.5:
        return malformed.damaged(random, content), False
    return json.dumps(malformed.mutated(random, value)).encode(), False
