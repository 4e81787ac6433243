"""Generated malformed inputs: each is refused in one line, or what is made of it is sound.

Few of them run with all tests; `make soak` runs as many as it is asked to (`make soak COUNT=2000`).
"""

import json
import math
import os
import random
import resource
import shutil

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import finetuning, record_files, training
from etcmodel.checkpoints import sources, writing
from etcmodel.models import modeling
from etcmodel.preprocessing import program, records
from etcmodel.pretrain import preprocess as pretrain_preprocess
from etcmodel.tasks.hotpotqa import preprocess as hotpotqa_preprocess
from etcmodel.tasks.nq import metrics as nq_predictions
from etcmodel.tasks.nq import preprocess as nq_preprocess
from etcmodel.tasks.openkp import preprocess as openkp_preprocess
from etcmodel.tasks.wikihop import preprocess as wikihop_preprocess
from etcmodel.text import tokenization
from etcmodel.training import progress, run_directory
from tests.finetuning import toy
from tests.soak import malformed
from tests.tasks.hotpotqa.raw_examples import raw_example as hotpotqa_example
from tests.tasks.nq import raw_examples as nq
from tests.tasks.openkp import pages
from tests.tasks.wikihop.raw_examples import raw_example as wikihop_example

COUNT = int(os.environ.get("SOAK_COUNT", "150"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
MAX_MEMORY = 2 << 30


def nq_original():
    return nq.original_layout(nq.raw_example())


def openkp_page():
    return pages.page("red rose", "blue")


def openkp_page_with_list():
    page = openkp_page()
    return {**page, "VDOM": json.loads(page["VDOM"])}


def text():
    return {"id": "x", "text": "The song sings . It is red . " * 10}


# Name: (a good example, the preprocessing program).
TASKS = {
    "nq simplified": (nq.raw_example, nq_preprocess),
    "nq original": (nq_original, nq_preprocess),
    "hotpotqa": (hotpotqa_example, hotpotqa_preprocess),
    "wikihop": (wikihop_example, wikihop_preprocess),
    "openkp": (openkp_page, openkp_preprocess),
    "openkp with a list": (openkp_page_with_list, openkp_preprocess),
    "pre-training": (text, pretrain_preprocess),
}


@pytest.fixture(autouse=True)
def bounded_memory():
    """Other tests of this process may have needed more before: what counts is what is added."""
    before = peak_memory()
    yield
    assert peak_memory() - before < MAX_MEMORY


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10  # From KiB.


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join([*nq.vocabulary(), "red", "rose", "song"][: len(nq.vocabulary())]))
    return str(path)


def cases(name, part):
    """`random.Random`s, of which each makes one case; they are the same in every run."""
    return [random.Random(f"{SEED} {name} {number}") for number in range(-(-COUNT // part))]


def attempt(action, rng):
    """What an action returns; None if it refuses its input, in one line."""
    state = rng.getstate()
    try:
        return action()
    except (ValueError, OSError, tf.errors.OpError) as error:
        line = training.error_line(error)
        assert line and "\n" not in line and "Traceback" not in line, (state[1][:2], line)
        return None


def check_record(serialized):
    """The features of a record are finite."""
    example = tf.train.Example.FromString(serialized)
    for feature in example.features.feature.values():
        assert all(map(math.isfinite, feature.float_list.value))


@pytest.mark.parametrize("name", TASKS)
def test_raw_examples(name, tmp_path, vocab_file):
    make_example, module = TASKS[name]
    path = tmp_path / "raw.jsonl"
    options = module.PreprocessOptions(
        input_pattern=str(path),
        output_prefix=str(tmp_path / "out"),
        vocab_file=vocab_file,
        long_seq_length=128,
        global_seq_length=64,
    )
    job = program.make_job(options, *module.load_parts())
    convert = job.make_converter()
    good = json.dumps(make_example())

    def read_and_convert():
        problems = 0
        for raw in job.read(str(path)):
            converted, serialized = records.convert_example(convert, raw)
            assert "\n" not in converted.problem
            assert not (converted.problem and serialized)
            problems += bool(converted.problem)
            for record in serialized:
                check_record(record)
        return problems

    for rng in cases(name, 2):
        odd = json.dumps(malformed.mutated(rng, make_example()))
        content = f"{good}\n{odd}\n{good}\n".encode()
        path.write_bytes(malformed.damaged(rng, content) if rng.random() < 0.4 else content)
        attempt(read_and_convert, rng)


def test_predictions_of_natural_questions():
    good = {"predictions": [nq.prediction()]}
    for rng in cases("predictions", 1):
        odd = malformed.mutated(rng, good)
        parsed = attempt(lambda odd=odd: nq_predictions.parse_predictions(odd), rng)
        for prediction in (parsed or {}).values():
            assert not math.isnan(prediction.long_score)


def test_model_configs():
    good = modeling.EtcConfig(vocab_size=9).to_dict()
    for rng in cases("config", 1):
        content = json.dumps(malformed.mutated(rng, good)).encode()
        if rng.random() < 0.5:
            content = malformed.damaged(rng, content)
        config = attempt(lambda content=content: modeling.EtcConfig.from_json_string(content), rng)
        if config is not None and attempt(lambda config=config: config.check() or True, rng):
            assert modeling.EtcConfig.from_json_string(config.to_json_string()) == config


@pytest.mark.parametrize("output_format", [sources.RELEASED, sources.SAFETENSORS])
def test_checkpoints(tmp_path, output_format):
    values = {"a/w": np.arange(30, dtype=np.float32), "b": np.ones([2, 3], np.float32)}
    writing.write(values, str(tmp_path / "good"), output_format)
    files = sorted(path for path in (tmp_path / "good").iterdir())
    for rng in cases(output_format, 2):
        folder = tmp_path / "odd"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "good", folder)
        file = folder / rng.choice(files).name
        file.write_bytes(malformed.damaged(rng, file.read_bytes()))

        def read(folder=folder):
            source = sources.open_source(str(folder))
            return {name: source.read(name) for name in source.shapes}

        attempt(read, rng)


RUN_FILES = {
    "run_config.json": json.dumps({"training": {"a": 1}, "task": {"b": [2]}, "notes": {}}),
    "history.json": json.dumps(
        {
            "changes": [
                {"step": 1, "option": "poly_power", "old": 1, "new": 2.0, "num_train_steps": 9}
            ]
        }
    ),
    "train_metrics.jsonl": '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n',
    "checkpoint": 'model_checkpoint_path: "ckpt-2"\nall_model_checkpoint_paths: "ckpt-2"\n',
}


def test_run_directories(tmp_path):
    directory = str(tmp_path)
    for rng in cases("run", 1):
        for name, content in RUN_FILES.items():
            damaged = malformed.damaged(rng, content.encode())
            (tmp_path / name).write_bytes(damaged if rng.random() < 0.6 else content.encode())
        attempt(lambda: training.read_run_config(directory), rng)
        attempt(lambda: run_directory.checkpoint_paths(directory), rng)
        log = progress.MetricsLog(str(tmp_path / "train_metrics.jsonl"))
        for line in attempt(log.read, rng) or ():
            assert type(line["step"]) is int


def test_records_and_their_settings(tmp_path, toy_records):
    config = toy.RecordConfig(
        long_seq_length=toy.WINDOW, global_seq_length=4, vocab_size=len(toy.VOCAB)
    )
    settings = {"records_per_shard": [3], "bytes_per_shard": [len(toy_records)]}
    pattern = str(tmp_path / "a-*")
    for rng in cases("records", 40):  # Each compiles several graphs.
        shard = malformed.damaged(rng, toy_records) if rng.random() < 0.7 else toy_records
        (tmp_path / "a-00000-of-00001.tfrecord").write_bytes(shard)
        manifest = json.dumps(malformed.mutated(rng, settings))
        (tmp_path / "a.config.json").write_text(manifest)
        files = record_files.matching_files(pattern)
        attempt(lambda files=files: record_files.known_num_records(files), rng)
        (tmp_path / "a.config.json").unlink()
        attempt(lambda: finetuning.check_records(pattern, config, need_labels=True), rng)
        attempt(lambda: finetuning.find_bad_record(pattern, config, need_labels=True), rng)
        attempt(lambda: training.count_examples(pattern), rng)


@pytest.fixture(scope="module")
def toy_records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy_records")
    (folder / "vocab.txt").write_text("\n".join(toy.VOCAB))
    tokenizer = tokenization.FullTokenizer(str(folder / "vocab.txt"))
    toy.write_records(folder / "a", toy.make_documents(3), tokenizer)
    return (folder / "a").read_bytes()


def test_vocabularies(tmp_path):
    good = "\n".join(nq.vocabulary()).encode()
    path = tmp_path / "vocab.txt"
    for rng in cases("vocabulary", 2):
        path.write_bytes(malformed.damaged(rng, good))
        attempt(lambda: tokenize(str(path)), rng)


def tokenize(vocab_file):
    tokenizer = tokenization.FullTokenizer(vocab_file)
    tokenizer.require_tokens(["[UNK]"])
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize("the mill"))
    assert all(0 <= index < len(tokenizer.vocab) for index in ids)
