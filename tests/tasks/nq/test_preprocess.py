"""The preprocessing: streamed, in order, with counted skips and nothing half-written."""

import gzip
import json
import pathlib

import pytest
import tensorflow as tf

from etcmodel.preprocessing import program
from etcmodel.tasks.nq import preprocess
from tests.tasks.nq import raw_examples
from tests.tasks.nq.raw_examples import raw_example

SHARED = pathlib.Path(__file__).parents[4] / "shared"
REAL_EXAMPLE = SHARED / "real" / "nq_simplified_1.jsonl"
BAD = raw_example(example_id=99, annotations=[raw_examples.annotation((3, 300))])


@pytest.fixture
def options(tmp_path):
    """A function of raw lines (and options) to `PreprocessOptions` over a file of them."""
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(raw_examples.vocabulary()) + "\n")

    def make(*lines, **changes):
        path = tmp_path / "in.jsonl"
        lines = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        fields = {
            "input_pattern": str(path),
            "output_prefix": str(tmp_path / "out" / "dev"),
            "vocab_file": str(vocab),
            "num_shards": 2,
            "long_seq_length": 21,
            "global_seq_length": 16,
            "stride": 8,
            "question_len": 8,
            "is_training": False,
            "direct_num_workers": 1,
        }
        return preprocess.PreprocessOptions(**{**fields, **changes})

    return make


def run(options):
    """The statistics of each set that the options name."""
    return [statistics for _, statistics in program.run(options, preprocess.load_parts)]


def ids_in(path):
    records = map(tf.train.Example.FromString, tf.data.TFRecordDataset(path).as_numpy_iterator())
    return [record.features.feature["unique_ids"].int64_list.value[0] for record in records]


def written(folder):
    return sorted(path.name for path in (folder / "out").iterdir())


class TestRun:
    def test_writes_shards_settings_and_statistics(self, options, tmp_path):
        raws = [raw_example(example_id=i) for i in range(3)]
        (statistics,) = run(options(*raws))
        shards = [f"dev-0000{i}-of-00002.tfrecord" for i in range(2)]
        assert written(tmp_path) == [*shards, "dev.config.json", "dev.stats.json"]
        assert [ids_in(tmp_path / "out" / shard) for shard in shards] == [[0, 1, 2], [0, 1, 2]]
        assert statistics == json.loads((tmp_path / "out" / "dev.stats.json").read_text())
        assert (statistics["examples_read"], statistics["examples_written"]) == (3, 6)
        config = json.loads((tmp_path / "out" / "dev.config.json").read_text())
        assert (config["task"], config["long_seq_length"], config["vocab_size"]) == (
            "nq",
            21,
            len(raw_examples.vocabulary()),
        )

    def test_repeated_top_level_candidates_are_a_bad_line_not_a_thousand_windows(self, options):
        candidates = raw_example()["long_answer_candidates"]
        repeated = raw_example(example_id=9, long_answer_candidates=candidates * 500)
        (statistics,) = run(options(raw_example(), repeated))
        assert (statistics["examples_bad"], statistics["examples_written"]) == (1, 2)
        message = "long_answer_candidates[5]` overlaps long_answer_candidates[0], and both are `top"
        assert message in statistics["bad_examples"][0]

    def test_a_truncated_file_fails_and_leaves_no_file(self, options, tmp_path):
        path = tmp_path / "cut.jsonl.gz"
        path.write_bytes(gzip.compress(json.dumps(raw_example()).encode() * 99)[:-20])
        with pytest.raises(ValueError, match="broken gzip file"):
            run(options(input_pattern=str(path)))
        assert not list((tmp_path / "out").iterdir())


class TestOptions:
    def test_both_splits_of_a_folder_are_found(self, options, tmp_path):
        for split in ("train", "dev"):
            path = tmp_path / "v1.0" / split / f"nq-{split}-00.jsonl.gz"
            path.parent.mkdir(parents=True)
            path.write_bytes(gzip.compress(json.dumps(raw_example()).encode()))
        folders = {"input_dir": str(tmp_path / "v1.0"), "output_dir": str(tmp_path / "out")}
        both = options(input_pattern="", output_prefix="", include_unknown_rate=0.0, **folders)
        train, dev_of_one = run(both)
        assert (train["examples_written"], dev_of_one["examples_written"]) == (1, 2)
        assert "nq-train-00000-of-00002.tfrecord" in written(tmp_path)
        dev = tmp_path / "v1.0" / "dev"
        (dev / "nq-dev-00.jsonl.gz.part").write_text("the beginning of a download")
        (dev / "nq-dev-01.jsonl").write_text(json.dumps(raw_example()))
        _, dev_of_two = run(both)
        assert dev_of_two["examples_read"] == 2 * dev_of_one["examples_read"]
        (dev / "nq-dev-00.jsonl").write_text(json.dumps(raw_example()))
        with pytest.raises(ValueError, match=r"nq-dev-00.jsonl.gz is there unpacked, too: its"):
            run(both)

    def test_statistics_of_two_splits_do_not_fit_into_one_file(self, options, tmp_path):
        for split in ("train", "dev"):
            path = tmp_path / "v1.0" / split / f"nq-{split}-00.jsonl"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(raw_example()))
        folders = {"input_dir": str(tmp_path / "v1.0"), "output_dir": str(tmp_path / "out")}
        both = {"input_pattern": "", "output_prefix": "", **folders}
        with pytest.raises(ValueError, match="^--statistics_file: it would keep .* of 2 sets"):
            run(options(statistics_file=str(tmp_path / "stats.json"), **both))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"input_dir": "x"}, "--input_dir and --output_dir must be given together"),
            ({"input_dir": "x", "output_dir": "y"}, "Give either --input_dir"),
            ({"tokenizer_type": "ALBERT"}, "--tokenizer_type=ALBERT also needs --spm_model_file"),
        ],
    )
    def test_flags_that_do_not_fit_are_named(self, options, changes, message):
        with pytest.raises(ValueError, match=message):
            options(**changes)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"vocab_file": "/none"}, "--vocab_file: no such file"),
            ({"input_pattern": "/none-*"}, "No input file matches '/none-\\*'"),
            (
                {"input_pattern": "", "output_prefix": "", "input_dir": "/x", "output_dir": "/y"},
                "has neither train/nq-train",
            ),
        ],
    )
    def test_what_is_not_there_is_named(self, options, changes, message):
        with pytest.raises(ValueError, match=message):
            run(options(**changes))


@pytest.mark.skipif(not REAL_EXAMPLE.exists(), reason="the true example is not beside the checkout")
def test_a_true_page_has_a_global_token_for_each_of_its_candidates(tmp_path):
    options = preprocess.PreprocessOptions(
        input_pattern=str(REAL_EXAMPLE),
        output_prefix=str(tmp_path / "real"),
        vocab_file=str(SHARED / "reference" / "vocab" / "bert_uncased_vocab.txt"),
        num_shards=1,
        strict=True,
    )
    ((_, statistics),) = program.run(options, preprocess.load_parts)
    assert statistics["examples_written"] == 1 and statistics["mean_page_tokens"] > 2500
    assert statistics["candidates_without_global_token"] == 0
