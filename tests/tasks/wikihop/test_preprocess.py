"""The preprocessing of WikiHop's files: sets, skips, errors. The pipeline has tests of its own."""

import json
import pathlib

import pytest
import tensorflow as tf

from etcmodel import finetuning, preprocessing, record_files
from etcmodel.preprocessing import program, raw_files
from etcmodel.tasks.wikihop import features, preprocess, task
from etcmodel.tools.demos import wikihop as demo_wikihop
from tests.tasks.wikihop import tokenizers
from tests.tasks.wikihop.raw_examples import raw_example

REAL_EXAMPLE = pathlib.Path(__file__).parents[4] / "shared" / "real" / "wikihop_1.json"
GOOD = [
    raw_example(id="good"),
    raw_example(id="no documents", supports=[]),
    raw_example(id="empty documents", supports=["", " "]),
]


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocab")
    return tokenizers.wordpiece(folder).source_file


def write(path, raws):
    path.write_text(json.dumps(raws), encoding="utf-8")
    return str(path)


def run(tmp_path, vocab_file, raws, **fields):
    """Preprocesses a development set; returns the statistics and the records."""
    lengths = {"long_seq_length": 64, "global_seq_length": 32}
    options = preprocess.PreprocessOptions(
        **{
            **lengths,
            "dev_input_pattern": write(tmp_path / "dev.json", raws),
            "output_dir": str(tmp_path / "out"),
            "vocab_file": vocab_file,
            "direct_num_workers": 1,
            **fields,
        }
    )
    (set_options,) = options.sets()
    job = program.make_job(set_options, features.ConverterFactory, raw_files.read_json_values)
    statistics = preprocessing.run(job)
    names = record_files.shard_names(job.output_prefix, job.num_shards)
    records = [record.numpy() for record in tf.data.TFRecordDataset(names)]
    return statistics, [tf.train.Example.FromString(record) for record in records]


def test_examples_without_documents_are_written_and_counted(tmp_path, vocab_file):
    statistics, records = run(tmp_path, vocab_file, GOOD)
    ids = [record.features.feature["example_id"].bytes_list.value[0] for record in records]
    assert ids == [b"good", b"no documents", b"empty documents"]
    assert statistics["examples_without_mention"] == 2


def test_unlabeled_records_are_no_training_records(tmp_path, vocab_file):
    raw = raw_example()
    del raw["answer"]
    run(tmp_path, vocab_file, [raw])
    config = task.RecordConfig(long_seq_length=64, global_seq_length=32, vocab_size=1000)
    pattern = str(tmp_path / "out" / "dev" / "tf_examples*")
    finetuning.check_records(pattern, config, need_labels=False)
    with pytest.raises(ValueError, match="the records have no feature `label_id`"):
        finetuning.check_records(pattern, config, need_labels=True)


def raw_sets():
    """Generated examples, and a true one where it is, by name."""
    sets = {"generated": demo_wikihop.make_examples(split="dev", num_examples=3, seed=2)}
    if REAL_EXAMPLE.exists():
        sets["real"] = json.loads(REAL_EXAMPLE.read_text("utf-8"))
    return sets


@pytest.mark.parametrize("name", raw_sets())
def test_examples_fit_the_usual_lengths_and_their_candidates_are_found(name, tmp_path, vocab_file):
    lengths = {"long_seq_length": 8192, "global_seq_length": 430}  # In characters, mostly.
    statistics, records = run(tmp_path, vocab_file, raw_sets()[name], **lengths)
    assert statistics["examples_truncated"] == statistics["examples_bad"] == 0
    for record in records:
        features = record.features.feature
        candidates = features["candidates"].bytes_list.value
        (label,) = features["label_id"].float_list.value
        assert [candidates[int(label)]] == features["ground_truth_answer"].bytes_list.value
        linked = {link for link in features["l2g_linked_ids"].int64_list.value if link >= 0}
        assert linked == set(range(len(candidates)))
    assert statistics["mean_mentions"] >= 4


class TestOptions:
    def options(self, **fields):
        given = {"input_pattern": "t.json", "output_dir": "out", "vocab_file": "v.txt"}
        return preprocess.PreprocessOptions(**{**given, **fields})

    def test_each_set_has_its_own_prefix_and_shards(self):
        sets = self.options(dev_input_pattern="d.json", num_shards=7).sets()
        found = [(s.input_pattern, s.output_prefix, s.num_shards) for s in sets]
        assert found == [
            ("t.json", "out/train/tf_examples", 7),
            ("d.json", "out/dev/tf_examples", 1),
        ]
        (only,) = self.options(input_pattern="", dev_input_pattern="d.json").sets()
        assert only.output_prefix == "out/dev/tf_examples"

    def test_the_tokenizer_type_chooses_among_vocabularies(self):
        both = {"vocab_file": "v.txt", "spm_model_file": "s.model"}
        for kind, spm_model in (("BERT", None), ("ALBERT", "s.model"), (None, "s.model")):
            (only,) = self.options(**both, tokenizer_type=kind).sets()
            assert only.spm_model_file == spm_model

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"input_pattern": ""}, "--input_pattern or --dev_input_pattern"),
            ({"output_dir": ""}, "--output_dir must be given"),
            ({"tokenizer_type": "ALBERT"}, "--tokenizer_type=ALBERT also needs --spm_model_file"),
            ({"init_checkpoint": "cased_L-12/bert_model.ckpt"}, "`do_lower_case` must be Fal"),
        ],
    )
    def test_missing_flags_are_named(self, fields, message):
        with pytest.raises(ValueError, match=message):
            self.options(**fields)
