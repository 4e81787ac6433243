"""Finds and opens the TFRecord files of a pattern; sets of shards are complete or refused.

A shard's name ends in `-00003-of-00100`, with or without a suffix such as `.tfrecord`; files that
differ only in the first number are one set. A pattern with wildcards must match all of a set or
nothing of it: missing files were lost, or never finished. To read a part on purpose, name its
files.
"""

import collections
import concurrent.futures
import fnmatch
import glob
import os
import re

import tensorflow as tf

from etcmodel import atomic_files, bounded_json

_SHARD = re.compile(r"(?P<prefix>.*)-(?P<number>\d{5})-of-(?P<total>\d{5})(?P<suffix>[^\d/][^/]*)?")
_ANY_SHARD = "-?????-of-?????"
_SUFFIX = ".tfrecord"
_OUR_SUFFIXES = ("", _SUFFIX)
# Settings, statistics, readable examples and unfinished files beside the records.
_NO_RECORDS = re.compile(r"\.(json|jsonl|txt|tmp)$|\.unfinished-[^/]*$")
_OTHER_ENDINGS = {
    f"{_SUFFIX}*": _ANY_SHARD + _SUFFIX,
    "-*": _SUFFIX + _ANY_SHARD,
    f"-*{_SUFFIX}": _SUFFIX + _ANY_SHARD,
}
_MANIFEST = ("records_per_shard", "bytes_per_shard")
_MAX_NAMED = 5
_STATS_AT_ONCE = 16  # Each takes long for remote files.
_GZIP = b"\x1f\x8b\x08"
# A file whose first record has 559,903 bytes begins alike: with that number, and its checksum.
_NO_GZIP = _GZIP + bytes(5) + b"\xd0\x91\x84\xea"

_Set = collections.namedtuple("_Set", ["prefix", "total", "suffix"])


def shard_names(prefix, num_shards):
    """Returns the names of a set's files: they end in `.tfrecord`, unless the prefix does."""
    return _names(_Set(prefix, num_shards, "" if prefix.endswith(_SUFFIX) else _SUFFIX))


def written_shards(prefix):
    """Returns the paths of existing shards with that prefix, of any number of shards."""
    suffix = _set_of(shard_names(prefix, 1)[0]).suffix
    return list(filter(_set_of, tf.io.gfile.glob(glob.escape(prefix) + _ANY_SHARD + suffix)))


def read_settings(files):
    """Reads the settings beside shards, if there are any.

    Returns:
        dict of the path of a settings file (`<prefix>.config.json`) to dict.
    """
    found = {}
    for name in sorted({_settings_file(shard) for shard in map(_set_of, files) if shard}):
        if tf.io.gfile.exists(name):
            found[name] = _checked_settings(name)
    return found


def _checked_settings(name):
    value = bounded_json.read_object(name, "Preprocess again.")
    for entry in _MANIFEST:
        numbers = value.get(entry) or []
        if not (isinstance(numbers, list) and all(type(number) is int for number in numbers)):
            raise ValueError(f"{name}: `{entry}` must be a list of integers. Preprocess again.")
    return value


def known_num_records(files):
    """Returns the number of records in all files, by their settings; None if unknown."""
    counts = _manifest(files, "records_per_shard")
    return sum(counts[file] for file in files) if counts.keys() >= set(files) else None


def check_sizes(files):
    """Compares the files' sizes with those in their settings, if given there.

    Raises:
        ValueError: naming a file that was truncated, or is from another run.
    """
    known = _manifest(files, "bytes_per_shard")
    files = [file for file in files if file in known]
    with concurrent.futures.ThreadPoolExecutor(_STATS_AT_ONCE) as pool:
        sizes = list(pool.map(lambda file: tf.io.gfile.stat(file).length, files))
    for file, size in zip(files, sizes, strict=True):
        if size != known[file]:
            raise ValueError(
                f"{file} has {size} bytes; {_settings_file(_set_of(file))} says {known[file]}. "
                "Copy the file again, or preprocess again."
            )


def compressions(files):
    """Returns how each file is packed, by its first bytes: list of str, "GZIP" or "".

    The authors' release packs the records of Natural Questions. Files whose size is known by their
    settings are ours, which are never packed.
    """
    ours = _manifest(files, "bytes_per_shard")
    with concurrent.futures.ThreadPoolExecutor(_STATS_AT_ONCE) as pool:
        return list(pool.map(lambda file: "" if file in ours else _compression(file), files))


def _compression(file):
    with tf.io.gfile.GFile(file, "rb") as opened:
        head = opened.read(len(_NO_GZIP))
    return "GZIP" if head.startswith(_GZIP) and head != _NO_GZIP else ""


def records(files, num_parallel_reads=None):
    """Opens TFRecord files, packed by gzip or not.

    Args:
        files: list of str, as from `matching_files`.
        num_parallel_reads: int. Read so many files at once, mixing their records. None: one file
            after another.
    Returns:
        tf.data.Dataset of serialized records, string [].
    """
    opened = tf.data.Dataset.from_tensor_slices((list(files), compressions(files)))
    return opened.interleave(
        tf.data.TFRecordDataset,
        cycle_length=num_parallel_reads or 1,
        num_parallel_calls=num_parallel_reads,
    )


def _manifest(files, name):
    """dict of file to its entry of a list in the settings; without files that have none."""
    settings = read_settings(files)
    found = {}
    for file in files:
        if (shards := _set_of(file)) and shards.suffix in _OUR_SUFFIXES:
            entries = settings.get(_settings_file(shards), {}).get(name) or []
            number = int(_SHARD.fullmatch(file)["number"])
            if number < shards.total == len(entries):  # Else the settings are another set's.
                found[file] = entries[number]
    return found


def _settings_file(shards):
    return f"{shards.prefix}.config.json"


def matching_files(file_pattern):
    """Returns the sorted paths of the TFRecord files that a pattern matches.

    Args:
        file_pattern: str or list of str. A file; a pattern with wildcards, such as `train-*`, which
            does not match other files (.json, .jsonl, .txt, .tmp); or several of both, separated by
            commas. A pattern without matches is tried again with `.tfrecord` and as a set's name
            without the shards' numbers, so that the patterns of the authors' release
            (`train-*-of-00100`, `Train.tfrecord*`) find our shards.
    Raises:
        ValueError: naming the files, if one of them matches no file, or wildcards match a part of a
            set, or two sets of the same name.

    >>> from etcmodel import training
    >>> training.matching_files("my_records/train")
    ['my_records/train-00000-of-00001.tfrecord']
    """
    patterns = [file_pattern] if isinstance(file_pattern, str) else list(file_pattern)
    files, sets = set(), set()
    for pattern in patterns:
        for found, is_one_file in _find_all(pattern):
            files.update(found)
            if not is_one_file:
                sets.update(filter(None, map(_set_of, found)))
    _check_whole(file_pattern, files, sorted(sets))
    return sorted(files)


def _find_all(pattern):
    """The result of `_find` for a pattern, or for each of several separated by commas."""
    parts = [_find(pattern)]
    if not parts[0] and "," in pattern:
        parts = [_find(part.strip()) for part in pattern.split(",")]
    if not all(parts):
        raise ValueError(f"No file matches {pattern!r}.")
    return parts


def _find(pattern):
    """(paths, whether they are one named file) of a pattern; None if there is none."""
    _settle(pattern)
    for name in (pattern, pattern + _SUFFIX):
        if tf.io.gfile.exists(name) and not tf.io.gfile.isdir(name):
            return [name], True
    for candidate in _candidates(pattern):
        if found := list(filter(_holds_records, tf.io.gfile.glob(candidate))):
            return found, False
    return None


def _settle(pattern):
    """Completes interrupted writes of killed programs where a pattern looks for files."""
    folder = os.path.dirname(pattern)
    names = [os.path.basename(candidate) for candidate in _candidates(pattern)]
    for place in tf.io.gfile.glob(folder) if glob.has_magic(folder) else [folder]:
        atomic_files.settle(place, lambda x: any(fnmatch.fnmatchcase(x, name) for name in names))


def _candidates(pattern):
    yield pattern
    yield pattern + _SUFFIX
    yield pattern + _ANY_SHARD
    yield pattern + _ANY_SHARD + _SUFFIX
    # A set may have the suffix before or after the numbers.
    for ending, other in _OTHER_ENDINGS.items():
        if pattern.endswith(ending):
            yield pattern.removesuffix(ending) + other


def _holds_records(path):
    if _NO_RECORDS.search(path):
        return False
    shards = _set_of(path)
    return bool(shards and shards.suffix in _OUR_SUFFIXES) or not tf.io.gfile.isdir(path)


def _set_of(path):
    match = _SHARD.fullmatch(path)
    return match and _Set(match["prefix"], int(match["total"]), match["suffix"] or "")


def _names(shards):
    prefix, total, suffix = shards
    return [f"{prefix}-{number:05d}-of-{total:05d}{suffix}" for number in range(total)]


def _pattern(shards):
    return f"{shards.prefix}-*-of-{shards.total:05d}{shards.suffix}"


def _check_whole(file_pattern, files, sets):
    for first, second in zip(sets, sets[1:], strict=False):
        if first.prefix == second.prefix:
            raise ValueError(
                f"{file_pattern!r} matches two sets of the same name: {_pattern(first)} and "
                f"{_pattern(second)}. Remove the old one, or give the pattern of one of them."
            )
    for shards in sets:
        if missing := [name for name in _names(shards) if name not in files]:
            listed = ", ".join(missing[:_MAX_NAMED]) + (", …" if len(missing) > _MAX_NAMED else "")
            raise ValueError(
                f"{file_pattern!r} matches only {shards.total - len(missing)} of {shards.total} "
                f"shards. Missing: {listed}. Copy or preprocess them again; to read a part on "
                "purpose, give its files by name, with commas between."
            )
