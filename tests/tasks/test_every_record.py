"""What holds for the records of every task: what is written, counted, named and read back."""

import importlib
import json
import pathlib

import pytest
import tensorflow as tf

from etcmodel import finetuning, preprocessing
from etcmodel.models import encoders, systems
from etcmodel.preprocessing import program
from etcmodel.tools import make_demo_data
from tests.tasks import record_sets, small_encoders
from tests.tasks.test_every_raw_file import TASKS as RAWS

# Options of the records, beside their lengths and what they are made of.
TASKS = {
    "classification": {"global_seq_length": 64},
    "coreference": {"global_seq_length": 64},
    "hotpotqa": {"global_seq_length": 96, "debug": False},
    "majority_tagging": {},
    "nq": {"global_seq_length": 64, "question_len": 16, "stride": 48},
    "numerical_reasoning": {},
    "openkp": {"global_seq_length": 64},
    "squad": {"global_seq_length": 64},
    "summarization": {"target_length": 8},
    "token_classification": {"global_seq_length": 64},
    "triviaqa": {"global_seq_length": 64, "stride": 32},
    "wikihop": {"global_seq_length": 64},
}
LENGTH = 320
OF_DATA = {"summarization": {"distance": 8}}
GENERATED = dict.fromkeys(("majority_tagging", "numerical_reasoning"), "gmat")


@pytest.fixture(scope="module", params=TASKS)
def data(request, tmp_path_factory):
    """(task, folder, paths of generated data, the training set's raw examples)."""
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    paths = make_demo_data.make_demo_data(
        dataset=name,
        output_dir=str(folder),
        num_train=4,
        num_dev=2,
        seed=0,
        **OF_DATA.get(name, {}),
    )
    return name, folder, paths, flat(record_sets.read_raws(paths["train"]))


def flat(raws):
    """SQuAD's articles as questions."""
    if "paragraphs" not in raws[0]:
        return raws
    parts = [part for article in raws for part in article["paragraphs"]]
    return [{"context": x["context"], **question} for x in parts for question in x["qas"]]


def run(data, raws, folder, **options):
    """(statistics, prefix) of a training set."""
    name, made, paths, _ = data
    folder.mkdir(exist_ok=True)
    path = record_sets.write_raws(folder / pathlib.Path(paths["train"]).name, raws)
    (of_set, *_) = record_sets.options(name, folder, {"train": str(path), "dev": ""})
    given = {**record_sets.vocabulary(paths), "num_shards": 2, "long_seq_length": LENGTH}
    given |= {**TASKS[name], **of_set, "dev_input_pattern": "", **options}
    if name == "triviaqa":
        given["evidence_dir"] = str(made / "evidence")
    module = importlib.import_module(f"etcmodel.tasks.{name}.preprocess")
    known = module.PreprocessOptions.__dataclass_fields__
    chosen = module.PreprocessOptions(**{key: x for key, x in given.items() if key in known})
    ((prefix, statistics),) = program.run(chosen, module.load_parts)
    return statistics, pathlib.Path(prefix)


def records(prefix):
    files = sorted(map(str, prefix.parent.glob(f"{prefix.name}-*-of-00002*")))
    assert len(files) == 2
    return sorted(x.numpy() for x in tf.data.TFRecordDataset(files))


def with_bad(data):
    """An example without an id that can be, behind the first."""
    name, _, _, raws = data
    return [raws[0], {**raws[0], RAWS[name].id_field: 7.5}, *raws[1:]]


def written(folder):
    return [path for path in folder.rglob("*") if "record" in path.name or "config" in path.name]


def test_bad_examples_are_counted_and_named_and_the_others_written(data, tmp_path):
    name, _, paths, raws = data
    clean, prefix = run(data, raws, tmp_path / "clean")
    found, of_bad = run(data, with_bad(data), tmp_path / "bad")
    (told,) = found.pop("bad_examples")
    assert f"{pathlib.Path(paths['train']).name}: " in told
    assert "must be a string or a whole number. Received: 7.5" in told
    assert found.pop("examples_bad") == 1 and clean.pop("examples_bad") == 0
    assert found.pop("examples_read") == clean.pop("examples_read") + 1 == len(raws) + 1
    same = {key: x for key, x in found.items() if "seconds" not in key}
    assert same.items() <= {**clean, **same}.items() and same["examples_written"] >= 1
    assert records(of_bad) == records(prefix) and len(records(prefix)) == same["examples_written"]
    settings = json.loads(pathlib.Path(f"{of_bad}.config.json").read_text(encoding="utf-8"))
    assert (settings["task"], settings["long_seq_length"]) == (name, LENGTH)
    assert (
        settings.items() >= {key: settings[key] for key in TASKS[name] if key in settings}.items()
    )
    kept = json.loads(pathlib.Path(f"{of_bad}.stats.json").read_text(encoding="utf-8"))
    assert kept["examples_bad"] == 1 and kept["bad_examples"] == [told]


def test_the_first_bad_example_fails_a_strict_run_which_leaves_nothing(data, tmp_path):
    with pytest.raises(preprocessing.BadExampleError, match="Received: 7.5"):
        run(data, with_bad(data), tmp_path, strict=True)
    assert not written(tmp_path)


def test_nothing_but_bad_examples_is_an_error_which_leaves_nothing(data, tmp_path):
    name = data[0]
    options = {"labels": ("O", "B-x")} if "classification" in name else {}
    message = "no example is left to write.*1 are malformed, the first: .*Received: 7.5"
    with pytest.raises(ValueError, match=message):
        run(data, with_bad(data)[1:2], tmp_path, **options)
    assert not written(tmp_path)


def config_of(name, paths, **fields):
    """The options of a run of the smallest model."""
    module = importlib.import_module(f"etcmodel.tasks.{name}.task")
    (task_class,) = (x for x in vars(module).values() if getattr(x, "name", None) == name)
    vocab = pathlib.Path(paths["vocab"]).read_text(encoding="utf-8")
    size = len(vocab.splitlines())
    if name == "summarization":
        small = {"model_type": "longt5", **systems.find("longt5").small, "vocab_size": 2000}
        encoder_config = encoders.config_from_dict(small)
    else:
        encoder_config = small_encoders.config(GENERATED.get(name, "etc"), size, LENGTH + 8)
    if name in GENERATED:
        fields = {"vocab_file": paths["vocab"], **fields}
    known = task_class.config_class.__dataclass_fields__
    given = {key: x for key, x in {**TASKS[name], **fields}.items() if key in known}
    return task_class.config_class(encoder_config=encoder_config, **given)


def test_records_are_what_a_run_reads_and_not_one_of_other_lengths_or_tasks(data, tmp_path):
    name, _, paths, raws = data
    _, prefix = run(data, raws, tmp_path)
    settings = json.loads(pathlib.Path(f"{prefix}.config.json").read_text(encoding="utf-8"))
    labels = {"labels": tuple(settings["labels"])} if "labels" in settings else {}
    pattern = f"{prefix}-*-of-00002*"
    found = config_of(name, paths, long_seq_length=LENGTH, **labels).records()
    finetuning.check_records(pattern, found, need_labels=True)
    longer = config_of(name, paths, long_seq_length=LENGTH + 1, **labels).records()
    with pytest.raises(ValueError, match=f"has {LENGTH} values.*--long_seq_length"):
        finetuning.check_records(pattern, longer, need_labels=True)
    run(data, raws, tmp_path, is_training=False)
    finetuning.check_records(pattern, found, need_labels=False)
    settings_file = pathlib.Path(f"{prefix}.config.json")
    of_other = settings_file.read_text(encoding="utf-8").replace(f'"{name}"', '"other"', 1)
    dataset = finetuning.make_eval_dataset(pattern, found, batch_size=100)
    (batch,) = dataset.as_numpy_iterator()
    assert {len(x) for x in batch.values()} == {len(records(prefix))}
    settings_file.write_text(of_other, encoding="utf-8")
    for need_labels in (True, False):
        with pytest.raises(ValueError, match=f"are of the task 'other', and this is '{name}'"):
            finetuning.check_records(pattern, found, need_labels=need_labels)
