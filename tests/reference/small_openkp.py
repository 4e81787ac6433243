"""Selects the smaller OpenKP cases, with vocabularies of their own.

As in `make_small`, the vocabularies shrink to the pieces that the kept texts need, and the ids are
renamed in them and in the values alike. The masks and labels of the model case are left out: they
are made in the model.
"""

import json

import numpy as np

from etcmodel.tasks.openkp import phrases
from tests.reference import cases, small_files

TOPIC = "openkp"
RAW_FILE = "raw_examples.jsonl"
MODEL = "model_visual_long_only"
MAX_FILE_BYTES = 27_000


def is_small(case):
    """Whether a case is kept: one model, and all others with small files."""
    if case["kind"] == "model":
        return case["name"] == MODEL
    return cases.resolve(TOPIC, case["file"]).stat().st_size <= MAX_FILE_BYTES


def without_side_inputs(case):
    """A model case without the features that the model makes itself."""
    features = {
        name: key
        for name, key in case["call"]["features"].items()
        if not name.endswith(("_att_mask", "_relative_att_ids"))
    }
    return {**case, "call": {**case["call"], "features": features}}


def write_arrays(case, target):
    """Writes the arrays that a case names."""
    named = set(small_files.strings_in({**case, "api": "", "note": ""}))
    with np.load(cases.resolve(TOPIC, case["file"]), allow_pickle=False) as arrays:
        kept = {key: arrays[key] for key in arrays.files if key in named}
    np.savez_compressed(target, **kept)


def raw_texts():
    """All words of the pages, as they are tokenized: one by one."""
    lines = cases.resolve(TOPIC, RAW_FILE).read_text(encoding="utf-8").splitlines()
    return {word for line in lines for word in phrases.split(json.loads(line)["text"])}


def write(target):
    """Writes the selected cases and their files below `target / "openkp"`; returns the cases."""
    kept = [case for case in cases.load_cases(TOPIC) if is_small(case)]
    kept = [without_side_inputs(case) if case["kind"] == "model" else case for case in kept]
    names = {RAW_FILE, *(name for case in kept for name in small_files.files_of(TOPIC, case))}
    small_files.copy(TOPIC, names, target)
    folder = target / TOPIC
    id_maps = small_files.shrink_vocabularies(raw_texts(), folder / small_files.VOCABULARIES)
    for name in names:
        if name.startswith("convert_"):
            kind = "sentencepiece" if name.startswith("convert_sp") else "wordpiece"
            content = small_files.renamed(cases.load_json(TOPIC, name), id_maps, kind)
            small_files.write_json(folder / name, content)
    for case in kept:
        if case["kind"] == "model":
            write_arrays(case, folder / case["file"])
    small_files.write_manifest_of_own_vocabularies(folder, kept)
    return kept
