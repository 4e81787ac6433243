"""A pattern means whole sets of shards, and only records; what is lost is named."""

import json
import pathlib

import pytest
import tensorflow as tf

from etcmodel import record_files, training


@pytest.fixture
def folder(tmp_path):
    """A function that makes empty files and returns the folder's path."""

    def make(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        return str(tmp_path)

    return make


def shards(prefix, total, suffix=".tfrecord"):
    return [f"{prefix}-{number:05d}-of-{total:05d}{suffix}" for number in range(total)]


def found(folder, pattern):
    names = training.matching_files(f"{folder}/{pattern}")
    return [name.removeprefix(f"{folder}/") for name in names]


@pytest.mark.parametrize(
    ("pattern", "prefix", "suffix"),
    [
        ("tf_examples_train-*-of-00003", "tf_examples_train", ".tfrecord"),
        ("tf_examples_train-*-of-00003", "tf_examples_train", ""),  # The release's own shards.
        ("train/tf_examples*", "train/tf_examples", ".tfrecord"),
        ("OpenKPTrain.tfrecord*", "OpenKPTrain.tfrecord", ""),
        ("OpenKPTrain.tfrecord*", "OpenKPTrain", ".tfrecord"),
        ("OpenKPTrain-*.tfrecord", "OpenKPTrain.tfrecord", ""),
        ("OpenKPTrain-*", "OpenKPTrain.tfrecord", ""),
        ("nq-train*", "nq-train", ".tfrecord"),
        ("nq-train-*.tfrecord", "nq-train", ".tfrecord"),
        ("nq-train", "nq-train", ".tfrecord"),
        ("nq-train", "nq-train", ""),
        ("nq-train-?????-of-00003", "nq-train", ".tfrecord"),
    ],
)
def test_patterns_of_the_release_and_ours_find_the_shards_and_nothing_else(
    folder, pattern, prefix, suffix
):
    others = [f"{prefix}{end}" for end in (".config.json", ".stats.json", "_text_examples.jsonl")]
    others += [f"{prefix}_stats.txt", f"{prefix}.1a2b.tmp", f"{prefix}.unfinished-1a2b/shard-00000"]
    others += [f"{prefix}s/other-file"]
    place = folder(*shards(prefix, 3, suffix), *others)
    assert found(place, pattern) == shards(prefix, 3, suffix)


def test_exact_matches_come_first(folder):
    place = folder("a-1", "a-1.tfrecord", *shards("a-1", 2))
    assert found(place, "a-1") == ["a-1"]


def test_names_without_numbers_are_read_as_they_match(folder):
    place = folder("a.tfrecord", "b.tfrecord", "notes.txt", "c.tfrecord.tmp")
    assert found(place, "*") == ["a.tfrecord", "b.tfrecord"]
    assert found(place, "notes.txt") == ["notes.txt"]  # Named, so it is meant.


def test_several_sets_may_match(folder):
    place = folder(*shards("train", 2), *shards("train-whole", 1))
    assert found(place, "train*") == [*shards("train", 2), *shards("train-whole", 1)]


@pytest.mark.parametrize("pattern", ["train-*", "train*.tfrecord", "train-*-of-00007", "train"])
def test_missing_shards_are_named(folder, pattern):
    names = shards("train", 7)
    place = folder(names[0], names[3])
    with pytest.raises(ValueError) as error:
        found(place, pattern)
    message = str(error.value)
    assert f"'{place}/{pattern}' matches only 2 of 7 shards. Missing: " in message
    assert all(f"{place}/{name}" in message for name in names[1:3] + names[4:7])


def test_of_many_missing_shards_the_first_are_named(folder):
    place = folder(*shards("train", 100)[6:])
    with pytest.raises(ValueError, match="only 94 of 100 .*-00004-of-00100.tfrecord, …") as error:
        found(place, "train-*")
    assert "-00005-of" not in str(error.value)


def test_a_part_can_be_read_by_naming_its_files_but_not_with_wildcards(folder):
    names = shards("train", 12)
    place = folder(*names)
    with pytest.raises(ValueError, match="matches only 10 of 12 shards.*give its files by name"):
        found(place, "train-0000?-of-00012.tfrecord")
    paths = [f"{place}/{name}" for name in names]
    assert training.matching_files(paths[3]) == paths[3:4]
    assert training.matching_files(paths[3].removesuffix(".tfrecord")) == paths[3:4]
    assert training.matching_files(paths[5:2:-1]) == paths[3:6]
    assert training.matching_files(", ".join(paths[:2])) == paths[:2]
    assert training.matching_files([f"{place}/train-0000*", f"{place}/train-0001*"]) == paths


def test_an_old_set_beside_a_new_one_of_the_same_name_is_refused(folder):
    place = folder(*shards("train", 2), *shards("train", 3))
    with pytest.raises(
        ValueError, match=r"two sets .*-\*-of-00002.tfrecord and .*-\*-of-00003.tfrecord"
    ):
        found(place, "train-*")
    assert found(place, "train-*-of-00003") == shards("train", 3)


def test_a_set_with_and_without_suffix_is_not_read_twice(folder):
    place = folder(*shards("train", 2), *shards("train", 2, ""))
    with pytest.raises(ValueError, match="two sets of the same name"):
        found(place, "train-*")


@pytest.mark.parametrize("suffix", [".tfrecord", ""])
@pytest.mark.parametrize("ending", [".bak", "~", ".crc", ".gz"])
def test_copies_beside_the_shards_are_not_read_as_further_records(folder, suffix, ending):
    names = shards("train", 2, suffix)
    place = folder(*names, *(f"{name}{ending}" for name in names))
    with pytest.raises(ValueError, match="two sets of the same name.*give the pattern of one"):
        found(place, "train-*")
    assert found(place, f"train-*-of-00002{suffix}") == names
    assert found(place, "train") == names


def test_sets_with_other_endings_are_taken_whole_too(folder):
    names = shards("train", 3, ".tfrecords")
    place = folder(*names[:2])
    with pytest.raises(ValueError, match=f"2 of 3 shards. Missing: {place}/{names[2]}"):
        found(place, "train-*")
    assert found(folder(*names), "train-*") == names


def test_only_shards_are_those_of_a_run(folder):
    place = folder(*shards("a", 2), "a-early-of-later.tfrecord")
    written = record_files.written_shards(f"{place}/a")
    assert sorted(written) == [f"{place}/{name}" for name in shards("a", 2)]


def test_each_of_several_patterns_must_match(folder):
    place = folder("a.tfrecord")
    with pytest.raises(ValueError, match="No file matches '.*/b'"):
        training.matching_files([f"{place}/a.tfrecord", f"{place}/b"])
    with pytest.raises(ValueError, match="No file matches '.*/a.tfrecord,b'"):
        training.matching_files(f"{place}/a.tfrecord,b")


def test_shards_are_named_after_their_prefix():
    assert record_files.shard_names("x/train", 2) == shards("x/train", 2)
    assert record_files.shard_names("x.tfrecord", 2) == shards("x.tfrecord", 2, "")


@pytest.fixture
def written(tmp_path):
    """Two shards of three and five bytes, with settings that say so."""

    def write(prefix="train", suffix=".tfrecord", **settings):
        names = [str(tmp_path / name) for name in shards(prefix, 2, suffix)]
        for name, content in zip(names, (b"abc", b"abcde"), strict=True):
            pathlib.Path(name).write_bytes(content)
        manifest = {"records_per_shard": [1, 4], "bytes_per_shard": [3, 5], **settings}
        (tmp_path / f"{prefix}.config.json").write_text(json.dumps(manifest))
        return names

    return write


@pytest.mark.parametrize(("prefix", "suffix"), [("train", ".tfrecord"), ("x.tfrecord", "")])
def test_settings_tell_the_number_of_records(written, prefix, suffix):
    names = written(prefix, suffix)
    assert record_files.known_num_records(names) == training.count_examples(names) == 5
    assert record_files.known_num_records(names[1:]) == 4
    record_files.check_sizes(names)


def test_a_file_that_was_cut_off_is_named(written):
    names = written()
    pathlib.Path(names[1]).write_bytes(b"")
    with pytest.raises(ValueError, match=r"-00001-of-00002.tfrecord has 0 bytes; .*json says 5\."):
        record_files.check_sizes(names)


@pytest.mark.parametrize(
    "settings",
    [
        {"records_per_shard": None, "bytes_per_shard": None},  # As the first edition wrote them.
        {"records_per_shard": [1, 2, 3], "bytes_per_shard": [1, 2, 3]},  # Of another set.
    ],
)
def test_settings_that_do_not_tell_are_not_asked(written, tmp_path, settings):
    names = written(**settings)
    assert record_files.known_num_records(names) is None
    record_files.check_sizes(names)
    (tmp_path / "train.config.json").unlink()
    assert record_files.known_num_records(names) is None
    record_files.check_sizes(names)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"records', " is not valid JSON: .* at line 1"),
        (b"\xff\xfe{", " is not valid JSON: the text is in UTF-16"),
        (b"[]", " must hold a JSON object, not an array. Preprocess again"),
        (b'{"records_per_shard": 5}', ": `records_per_shard` must be a list of integers"),
        (b'{"bytes_per_shard": [3, "5"]}', ": `bytes_per_shard` must be a list of integers"),
    ],
)
def test_damaged_settings_are_named(written, tmp_path, content, message):
    names = written()
    (tmp_path / "train.config.json").write_bytes(content)
    for function in (record_files.known_num_records, record_files.check_sizes):
        with pytest.raises(ValueError, match=rf"train\.config\.json{message}"):
            function(names)


def write_records(path, kind, *records):
    with tf.io.TFRecordWriter(str(path), kind) as writer:
        for record in records:
            writer.write(record)
    return str(path)


@pytest.mark.parametrize("num_parallel_reads", [None, 2])
def test_packed_records_are_read_as_others(tmp_path, num_parallel_reads):
    files = [
        write_records(tmp_path / "a", "GZIP", b"one", b"two"),
        write_records(tmp_path / "b", "", b"three"),
        write_records(tmp_path / "c", "GZIP"),
        write_records(tmp_path / "d", ""),
    ]
    opened = record_files.records(files, num_parallel_reads)
    assert sorted(opened.as_numpy_iterator()) == [b"one", b"three", b"two"]
    assert record_files.compressions(files) == ["GZIP", "", "GZIP", ""]
    assert training.count_examples(files) == 3


def test_a_length_that_looks_like_gzip_is_a_length(tmp_path):
    record = bytes(0x088B1F)  # Little-endian, as in the file.
    file = write_records(tmp_path / "a", "", record)
    assert pathlib.Path(file).read_bytes().startswith(b"\x1f\x8b\x08")
    assert list(record_files.records([file]).as_numpy_iterator()) == [record]
