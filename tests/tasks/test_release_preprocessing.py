"""The commands of the release's documentation that prepare data, run as programs."""

import gzip
import json
import pathlib

import pytest
import tensorflow as tf

from etcmodel import record_files
from etcmodel.tasks.nq import examples
from etcmodel.tools import make_demo_data
from tests.tasks import programs

pytestmark = pytest.mark.slow

JSON = (".config.json", ".stats.json")
SPM_MODEL = (
    pathlib.Path(__file__).parents[1] / "reference/small/tokenization/tiny_digit_comma.model"
)


@pytest.fixture
def data(tmp_path):
    """A function of a data set to its generated raw files, beside which the programs write."""

    def make(dataset):
        return make_demo_data.make_demo_data(
            dataset=dataset, output_dir=str(tmp_path), num_train=6, num_dev=3, seed=1
        )

    return make


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def count(pattern):
    return sum(1 for _ in tf.data.TFRecordDataset(record_files.matching_files(str(pattern))))


def shards(prefix, total, suffix=".tfrecord"):
    return [f"{prefix}-{number:05d}-of-{total:05d}{suffix}" for number in range(total)]


def test_hotpotqa(data, tmp_path):
    paths = data("hotpotqa")
    out = tmp_path / "X"
    for prefix, split, num_shards in (
        ("tf_examples_train", "train", 100),
        ("tf_examples_dev_distractor", "dev", 10),
    ):
        programs.run(
            "hotpotqa",
            "preprocess",
            input_json_filename=paths[split],
            output_tf_examples_file_path_prefix=out / prefix,
            num_shards=num_shards,
            output_tf_examples_stat_filename=out / f"{prefix}_stats.txt",
            vocab_file=paths["vocab"],
            spm_model_file="",
            global_seq_length=256,
            long_seq_length=4096,
            is_training="true" if split == "train" else "false",
            answer_encoding_method="span",
            direct_num_workers=1,
        )
        assert set(names(out)) >= {
            f"{prefix}_stats.txt",
            f"{prefix}.config.json",
            *shards(prefix, num_shards),
        }
    assert count(out / "tf_examples_train-*-of-00100") == 6
    assert count(out / "tf_examples_dev_distractor-*-of-00010") == 3


def test_wikihop(data, tmp_path):
    paths = data("wikihop")
    out = tmp_path / "X"
    programs.run(
        "wikihop",
        "preprocess",
        vocab_file=paths["vocab"],
        spm_model_path="",
        input_train_json_filepath=paths["train"],
        input_dev_json_filepath=paths["dev"],
        long_seq_len=4096,
        global_seq_len=430,
        max_num_sentences=200,
        tokenizer_type="BERT",
        output_dir_path=out,
        init_checkpoint="uncased_L-12_H-768_A-12/bert_model.ckpt",
        do_lower_case="True",
    )
    assert names(out) == sorted(
        [
            *(f"{split}/tf_examples{end}" for split in ("train", "dev") for end in JSON),
            *shards("train/tf_examples", 100),
            *shards("dev/tf_examples", 1),
        ]
    )
    assert count(out / "train" / "tf_examples*") == 6
    assert count(out / "dev" / "tf_examples*") == 3


@pytest.fixture
def nq_download(data, tmp_path):
    """Files laid out as in the official download."""
    paths = data("nq")
    for split, number in (("train", "00"), ("dev", "00")):
        file = tmp_path / "v1.0" / split / f"nq-{split}-{number}.jsonl.gz"
        file.parent.mkdir(parents=True)
        file.write_bytes(gzip.compress(pathlib.Path(paths[split]).read_bytes()))
    return tmp_path / "v1.0", paths


@pytest.mark.parametrize("tokenizer", ["word pieces", "sentence pieces"])
def test_nq(nq_download, tmp_path, tokenizer):
    download, paths = nq_download
    vocabulary = {"vocab_file": paths["vocab"]}
    if tokenizer == "sentence pieces":
        vocabulary = {"tokenizer_type": "ALBERT", "spm_model_path": SPM_MODEL}
    out = tmp_path / "X"
    programs.run("nq", "preprocess", input_dir=download, output_dir=out, **vocabulary)
    assert names(out) == sorted(
        name
        for split in ("train", "dev")
        for name in (*(f"nq-{split}{end}" for end in JSON), *shards(f"nq-{split}", 256))
    )
    assert count(out / "nq-train*") >= 6 and count(out / "nq-dev*") >= 3


def test_nqs_gold_cache_lies_beside_the_gold_files(nq_download):
    download, paths = nq_download
    printed, log = programs.run(
        "nq", "make_gold_cache", gold_path=download / "dev" / "nq-dev-??.jsonl.gz", num_threads=3
    )
    cache = download / "dev" / "cache"
    assert printed == f"3 examples: {cache}\n"
    assert "--num_threads has no effect here: one thread reads the files.\n" in log
    assert examples.read_gold(str(cache)) == examples.read_gold(paths["dev"])
    assert names(download / "dev") == ["cache", "nq-dev-00.jsonl.gz"]


def test_openkp(data, tmp_path):
    paths = data("openkp")
    out = tmp_path / "X"
    raw = {split: pathlib.Path(paths[split]).read_text().splitlines() for split in ("train", "dev")}
    without_labels = [json.loads(line) for line in raw["dev"][:2]]
    for page in without_labels:
        del page["KeyPhrases"]
    unseen = {**json.loads(raw["dev"][2]), "KeyPhrases": [["not", "there"]]}
    (tmp_path / "OpenKPTrain_raw.jsonl").write_text("\n".join(raw["train"] + raw["train"][:1]))
    (tmp_path / "OpenKPEval_raw.jsonl").write_text("\n".join(map(json.dumps, without_labels)))
    for name, flags in (("OpenKPTrain", {}), ("OpenKPEval", {"is_eval": "true"})):
        programs.run(
            "openkp",
            "input_validate_and_dedup",
            input_file=tmp_path / f"{name}_raw.jsonl",
            output_file=tmp_path / f"{name}.jsonl",
            **flags,
        )
    (tmp_path / "OpenKPDev.jsonl").write_text("\n".join([*raw["dev"][:2], json.dumps(unseen)]))
    sets = ("OpenKPTrain", "OpenKPDev", "OpenKPEval")
    programs.run(
        "openkp",
        "preprocess",
        input_patterns=",".join(str(tmp_path / f"{name}.jsonl") for name in sets),
        output_dir=out,
        output_num_shards=100,
        long_max_length=4096,
        global_max_length=512,
        bert_vocab_path=paths["vocab"],
        do_lower_case="true",
    )
    expected = ["example_gen_stats.txt"]
    for name in sets:
        expected += shards(f"{name}.tfrecord", 100, "")
        expected += [f"{name}.tfrecord{end}" for end in JSON]
        expected += [f"{name}_text_examples.jsonl", f"{name}_parse_failures.jsonl"]
    assert names(out) == sorted(expected)
    numbers = {"OpenKPTrain": (6, 0), "OpenKPDev": (2, 1), "OpenKPEval": (2, 0)}
    for name, (num_written, num_failed) in numbers.items():
        assert count(out / f"{name}.tfrecord*") == num_written
        texts = [json.loads(line) for line in (out / f"{name}_text_examples.jsonl").open()]
        failures = (out / f"{name}_parse_failures.jsonl").read_text().splitlines()
        assert (len(texts), len(failures)) == (num_written, num_failed)
        given = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").open()]
        for text, page in zip(texts, given, strict=False):
            assert text == {key: value for key, value in page.items() if key != "VDOM"}
        assert [json.loads(line) for line in failures] == [unseen] * num_failed
    assert json.loads((out / "example_gen_stats.txt").read_text()) == {
        f"{name}.jsonl": {"parse_success_count": good, "parse_fail_count": bad}
        for name, (good, bad) in numbers.items()
    }
