"""Features of any shape and type come out of the records as they went in, or are refused."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import finetuning, preprocessing, training
from etcmodel.text import tokenization
from tests.finetuning import toy
from tests.records import write

pytestmark = pytest.mark.usefixtures("eagerly")

GOOD = {
    "long_token_ids": [2, 3],
    "sizes": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "label": [21.0],
    "document": [toy.BIG_ID],
    "name": ["document 0"],
}


def record_config(**fields):
    return toy.RecordConfig(
        **{"long_seq_length": 2, "global_seq_length": 4, "vocab_size": len(toy.VOCAB), **fields}
    )


def test_evaluation_has_every_record_in_order_with_what_decoding_needs(toy_data):
    documents = json.loads(toy_data.dev_json.read_text())
    expected = [
        features
        for document in documents
        for features in toy.make_features(document, toy_data.tokenizer)
    ]
    dataset = finetuning.make_eval_dataset(str(toy_data.dev), record_config(), batch_size=4)
    batches = list(dataset.as_numpy_iterator())
    assert [len(batch["name"]) for batch in batches] == [4, 4, 4, 1]
    rows = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    assert set(rows) == {"long_token_ids", "sizes", "document", "name"}
    assert rows["long_token_ids"].dtype == np.int32 and rows["document"].dtype == np.int64
    for row, features in enumerate(expected):
        assert rows["long_token_ids"][row].tolist() == features["long_token_ids"]
        np.testing.assert_allclose(rows["sizes"][row], np.reshape(features["sizes"], [2, 3]))
        assert rows["document"][row] == features["document"][0]
        assert rows["name"][row].decode() == features["name"][0]


def test_training_has_labels_and_endless_batches(tmp_path):
    path = write(tmp_path / "a", GOOD, {**GOOD, "label": [-1.0]})
    request = training.TrainDataRequest(global_batch_size=2, seed=3)
    batches = finetuning.make_train_dataset(path, record_config(), request)
    for batch in batches.take(3):
        assert set(batch) == {"long_token_ids", "sizes", "label"}
        assert sorted(batch["label"].numpy()) == [-1, 21]
        assert batch["sizes"].shape == [2, 2, 3]


def test_a_record_that_is_no_example_is_named(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        writer.write(b"\xff\xfegarbage")
    with pytest.raises(ValueError, match="/a: the first record is no `tf.train.Example`"):
        finetuning.check_records(str(tmp_path / "a"), record_config(), need_labels=True)


def test_a_later_record_of_another_vocabulary_stops_the_reading(tmp_path):
    path = write(tmp_path / "a", GOOD, {**GOOD, "long_token_ids": [2, 6]})
    finetuning.check_records(path, record_config(), need_labels=True)
    dataset = finetuning.make_eval_dataset(path, record_config(), batch_size=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`long_token_ids` has the value 6"):
        list(dataset)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"long_token_ids": [2]}, r"`long_token_ids` has 1 values, the model's length is 2\. .*"),
        ({"sizes": [1.0] * 4}, r"`sizes` has 4 values, the model's length is 6\."),
        ({"sizes": [1] * 6}, r"`sizes` is a int64_list, the model needs a float_list\."),
        ({"label": None}, r"no feature `label`\. .* see --is_training and --debug of preprocess"),
        (
            {"long_token_ids": [2, 6]},
            r"`long_token_ids` has the value 6; .* another vocabulary",
        ),
    ],
)
def test_records_that_do_not_fit_are_refused_with_file_and_feature(tmp_path, changes, message):
    features = {name: values for name, values in {**GOOD, **changes}.items() if values}
    path = write(tmp_path / "bad", features)
    with pytest.raises(ValueError, match=f"{path}: .*{message}"):
        finetuning.check_records(path, record_config(), need_labels=True)


def test_records_of_another_vocabulary_are_refused(toy_data, tmp_path):
    pattern = write(tmp_path / "dev-00000-of-00001.tfrecord", GOOD)
    finetuning.check_vocabulary(pattern, toy_data.tokenizer)  # Unknown without settings.
    settings_file = tmp_path / "dev.config.json"
    settings_file.write_text("{}")
    finetuning.check_vocabulary(pattern, toy_data.tokenizer)
    settings_file.write_text(json.dumps({"vocab_sha256": toy_data.tokenizer.source_sha256()}))
    finetuning.check_vocabulary(pattern, toy_data.tokenizer)
    other = tmp_path / "vocab.txt"
    other.write_text("\n".join(reversed(toy.VOCAB)))
    with pytest.raises(ValueError, match=f"{settings_file}: .* another vocabulary than '{other}'"):
        finetuning.check_vocabulary(pattern, tokenization.FullTokenizer(str(other)))


def test_records_of_text_that_was_split_otherwise_are_refused(toy_data, tmp_path):
    pattern = write(tmp_path / "dev-00000-of-00001.tfrecord", GOOD)
    settings_file = tmp_path / "dev.config.json"
    for made in (None, False, True):
        settings_file.write_text(json.dumps({} if made is None else {"split_punctuation": made}))
        finetuning.check_punctuation(pattern, bool(made))
        word, advice = ("with", "Give it") if made else ("without", "Leave it out")
        message = f"{settings_file}: the records were made {word} --split_punctuation. {advice}, or"
        with pytest.raises(ValueError, match=message):
            finetuning.check_punctuation(pattern, not made)
    with pytest.raises(ValueError, match="were made with --split_punctuation"):
        finetuning.check_vocabulary(pattern, toy_data.tokenizer)


def test_only_what_the_mode_needs_is_checked(tmp_path):
    no_label = {name: values for name, values in GOOD.items() if name != "label"}
    finetuning.check_records(write(tmp_path / "a", no_label), record_config(), need_labels=False)
    no_name = {name: values for name, values in GOOD.items() if name != "name"}
    path = write(tmp_path / "b", no_name)
    finetuning.check_records(path, record_config(), need_labels=True)
    with pytest.raises(ValueError, match="no feature `name`"):
        finetuning.check_records(path, record_config(), need_labels=False)


def test_empty_files_are_passed_over_and_nothing_but_empty_files_is_an_error(tmp_path):
    write(tmp_path / "a-0")
    with pytest.raises(ValueError, match="hold no records"):
        finetuning.check_records(str(tmp_path / "a-*"), record_config(), need_labels=True)
    write(tmp_path / "a-1", GOOD)
    finetuning.check_records(str(tmp_path / "a-*"), record_config(), need_labels=True)


def test_a_run_of_empty_files_tells_of_them(tmp_path):
    path = write(tmp_path / "a")
    task = toy.ToyTask(toy.ToyConfig(encoder_config=toy.etc_config(), train_data=path))
    with pytest.raises(ValueError, match=f"The files that match '{path}' hold no records"):
        training.train(task, training.TrainingConfig(output_dir=str(tmp_path / "run")))


def set_of(folder, name, **noted):
    """The pattern of a set of one shard, with these settings."""
    write(folder / f"{name}-00000-of-00001.tfrecord", GOOD)
    (folder / f"{name}.config.json").write_text(json.dumps(noted))
    return str(folder / f"{name}-*")


def test_without_a_vocabulary_all_records_of_a_run_must_have_the_same(tmp_path):
    same = [set_of(tmp_path, name, vocab_sha256="1") for name in ("a", "b")]
    other, unknown = set_of(tmp_path, "c", vocab_sha256="2"), set_of(tmp_path, "d")
    request = training.TrainDataRequest(global_batch_size=1)

    def read(train, evaluated):
        patterns = {"train_data": ",".join(train), "eval_data": ",".join(evaluated)}
        task = toy.ToyTask(toy.ToyConfig(encoder_config=toy.etc_config(), **patterns))
        return task.train_dataset(request), task.eval_dataset(1)

    read([*same, unknown], [*same, unknown])
    message = f"{tmp_path}/c.config.json: .* another vocabulary than those of {tmp_path}/a.config"
    for patterns in (([same[0], other], same), (same, [other]), ([unknown], [same[0], other])):
        with pytest.raises(ValueError, match=message):
            read(*patterns)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnRecordConfig(toy.RecordConfig):
    task = "toy"


def test_records_of_another_task_are_refused_where_the_format_names_its_own(tmp_path):
    sizes = {"long_seq_length": 2, "global_seq_length": 4, "vocab_size": len(toy.VOCAB)}
    own, other = (set_of(tmp_path, name, task=name) for name in ("toy", "other"))
    for pattern in (own, set_of(tmp_path, "unknown"), write(tmp_path / "alone", GOOD)):
        finetuning.check_records(pattern, OwnRecordConfig(**sizes), need_labels=True)
    finetuning.check_records(other, toy.RecordConfig(**sizes), need_labels=True)
    for pattern in (other, f"{own},{other}"):
        message = f"{tmp_path}/other.config.json: the records are of the task 'other', .* 'toy'"
        with pytest.raises(ValueError, match=message):
            finetuning.check_records(pattern, OwnRecordConfig(**sizes), need_labels=True)


def cut(path):
    content = path.read_bytes()
    path.write_bytes(content[:-5])


def no_example(path):
    """Its last record is not even text."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(2):
            writer.write(preprocessing.to_tf_example(GOOD).SerializeToString())
        writer.write(b"\xff\xfegarbage")


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) * 4 // 5] ^= 1
    path.write_bytes(content)


BAD_RECORDS = {
    "a feature is missing": ({**GOOD, "sizes": None}, None, "sizes"),
    "another length": ({**GOOD, "sizes": [0.5]}, None, "sizes"),
    "another type": ({**GOOD, "sizes": [1, 2, 3, 4, 5, 6]}, None, "sizes"),
    "out of range": ({**GOOD, "long_token_ids": [2, 99]}, None, "`long_token_ids`.* 99"),
    "cut off": (GOOD, cut, "truncated record|corrupted record"),
    "another byte": (GOOD, flipped, "corrupted record"),
    "no example": (GOOD, no_example, "is no `tf.train.Example`"),
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("bad", "damage", "problem"), BAD_RECORDS.values(), ids=BAD_RECORDS)
@pytest.mark.parametrize("mode", ["train", "evaluate"])
def test_a_bad_record_after_the_first_is_named_with_its_file(
    toy_data, tmp_path, bad, damage, problem, mode
):
    bad = {name: value for name, value in bad.items() if value is not None}
    write(tmp_path / "a-0", *[GOOD] * 3)
    path = write(tmp_path / "a-1", GOOD, GOOD, bad)
    if damage is not None:
        damage(tmp_path / "a-1")
    patterns = {"train_data": str(tmp_path / "a-?")}
    if mode == "evaluate":
        patterns = {"eval_data": str(tmp_path / "a-?"), "eval_gold": str(toy_data.dev_json)}
    task = toy.ToyTask(
        toy.ToyConfig(encoder_config=toy.etc_config(), num_train_examples=6, **patterns)
    )
    config = training.TrainingConfig(
        output_dir=str(tmp_path / "run"), train_batch_size=2, num_train_epochs=1.0
    )
    with pytest.raises(ValueError, match=f"^{path}: record 3.*({problem})") as error:
        if mode == "train":
            training.train(task, config)
        else:
            model = task.build_model()
            tf.train.Checkpoint(model=model).save(str(tmp_path / "ckpt"))
            training.evaluate(task, config, str(tmp_path / "ckpt-1"))
    assert len(str(error.value).splitlines()) == 1 and "{{" not in str(error.value)
