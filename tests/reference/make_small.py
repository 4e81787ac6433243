"""Writes `small/`: cases of each kind, for a checkout that has no reference folder beside it.

The public vocabularies are far too big for that. They shrink to the pieces that the kept texts
need; the first ones, which have special meanings, keep their ids, the others get new ones, and so
the values in the kept files are the original ones but for the renamed token ids.

  python -m tests.reference.make_small
"""

import argparse
import io
import json
import pathlib
import shutil
import sys

import numpy as np

from tests.reference import (
    cases,
    shrink_vocabulary,
    small_core,
    small_files,
    small_nq,
    small_openkp,
    small_samples,
    small_wikihop,
)

TOPICS = ("tokenization", "hotpotqa")  # Of one vocabulary; the other modules select others.
MAX_CASES_PER_KIND, MAX_FILE_BYTES = 14, 30_000
MAX_ENTRIES = 40  # Of `strings.json`.

README = """# A small copy of the reference cases

Written by `tests/reference/make_small.py` and its siblings, which select cases of the full
reference folder; the layout is the same. The vocabularies are cut down to the pieces that the kept
texts need: ids from 104 up are renamed, in the vocabularies and in the values alike. The
SentencePiece models also lost their normalization table, which no kept text needs. The cases of
`core` are copied as they are, only the biggest are left out; so are samples of those of `gmat`,
which a plain twin of the paper computed, and of `bigbird`, `longformer`, `modernbert` and `t5`,
with the models of these, which Hugging Face's library computed. Everything else is what the
authors' release computed. `all_cases.json` has the names of all cases of the full folder, against
which the report at the end of a test run counts. Whoever has that folder sets
`ETCMODEL_REFERENCE_ROOT` or puts it at `../shared/reference`.
The vocabularies come from Google's BERT and BigBird releases (Apache 2.0).
"""


def selected_cases(topic):
    """The cases with the smallest files, in the manifest's order."""
    by_kind = {}
    for case in cases.load_cases(topic):
        size = cases.resolve(topic, case["file"]).stat().st_size
        is_small = size <= MAX_FILE_BYTES or case["file"] == "strings.json"
        if is_small:
            by_kind.setdefault(cases.kind_of(case), []).append((size, case["name"], case))
    kept = [case for group in by_kind.values() for *_, case in sorted(group)[:MAX_CASES_PER_KIND]]
    names = {case["name"] for case in kept}
    return [case for case in cases.load_cases(topic) if case["name"] in names]


def thinned(name, content):
    """Fewer entries of the long list of strings."""
    if name != "strings.json":
        return content
    return content[:: -(-len(content) // MAX_ENTRIES)]


def renamed_arrays(path, id_maps):
    """The bytes of an `.npz` file with its token ids renamed."""
    kind = "sentencepiece" if "sentencepiece" in path.name else "wordpiece"
    with np.load(path, allow_pickle=False) as arrays:
        arrays = dict(arrays)
    ids = arrays["long_token_ids"]
    arrays["long_token_ids"] = np.vectorize(id_maps[kind].get)(ids).astype(ids.dtype)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def kept_texts(files):
    """Every string in the kept JSON files."""
    texts = set()
    for topic, name in files:
        if name.endswith(".json"):
            texts |= set(small_files.strings_in(thinned(name, cases.load_json(topic, name))))
    return texts


def write_file(topic, name, target, id_maps):
    """Copies one file of a topic, with fewer entries and renamed ids."""
    source = cases.resolve(topic, name)
    path = target / topic / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".json"):
        content = thinned(name, cases.load_json(topic, name))
        small_files.write_json(path, small_files.renamed(content, id_maps, f"{name} "))
    elif name.endswith(".npz"):
        path.write_bytes(renamed_arrays(source, id_maps))
    elif name.endswith(".model"):
        path.write_bytes(shrink_vocabulary.without_normalization(source.read_bytes()))
    else:
        shutil.copyfile(source, path)


def write_manifest(topic, kept, target):
    """Writes the cases, with the number of entries that are left."""
    for case in kept:
        if case["file"] == "strings.json":
            case["count"] = len(thinned("strings.json", cases.load_json(topic, "strings.json")))
    small_files.write_json(target / topic / "manifest.json", {"cases": kept})


def write_names(topics, target):
    """Writes the names of all cases, kept or not, by topic and kind."""
    names = {topic: cases.names_by_kind(topic) for topic in sorted(topics)}
    text = json.dumps(names, ensure_ascii=False, indent=0)
    (target / cases.ALL_CASES).write_text(text + "\n", encoding="utf-8")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    target = pathlib.Path(__file__).resolve().parent / "small"
    parser.add_argument("--target", type=pathlib.Path, default=target)
    flags = parser.parse_args(arguments)
    if flags.target.resolve() == cases.reference_root().resolve():
        parser.error(f"{flags.target} is the only reference folder there is")
    kept = {topic: selected_cases(topic) for topic in TOPICS}
    files = {
        (topic, name)
        for topic in TOPICS
        for case in kept[topic]
        for name in small_files.files_of(topic, case)
    }
    for name in ("vocab", *TOPICS):
        shutil.rmtree(flags.target / name, ignore_errors=True)
    texts = kept_texts(files)
    id_maps = small_files.shrink_vocabularies(texts, flags.target / "vocab")
    for topic, name in sorted(files):
        write_file(topic, name, flags.target, id_maps)
    for topic in TOPICS:
        write_manifest(topic, kept[topic], flags.target)
    for selection in (small_core, small_nq, small_openkp, small_wikihop):
        kept[selection.TOPIC] = selection.write(flags.target)
    for topic in small_samples.SAMPLES:
        kept[topic] = small_samples.write(topic, flags.target)
    write_names(kept, flags.target)
    (flags.target / "README.md").write_text(README, encoding="utf-8")
    size = sum(path.stat().st_size for path in flags.target.rglob("*") if path.is_file())
    print(f"{sum(map(len, kept.values()))} cases, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
