"""Writes `small/openkp/`: the smaller OpenKP cases, with vocabularies of their own.

As in `make_small`, the vocabularies shrink to the pieces that the kept texts need, and the ids are
renamed in them and in the values alike. The masks and labels of the model case are left out: they
are made in the model.

  python -m tests.reference.make_small_openkp
"""

import argparse
import json
import pathlib
import shutil
import sys

import numpy as np

from etcmodel.tasks.openkp import phrases
from tests.reference import cases, make_small, make_small_wikihop

TOPIC = "openkp"
VOCABULARIES = make_small_wikihop.VOCABULARIES
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
    named = set(make_small.strings_in({**case, "api": "", "note": ""}))
    with np.load(cases.resolve(TOPIC, case["file"]), allow_pickle=False) as arrays:
        kept = {key: arrays[key] for key in arrays.files if key in named}
    np.savez_compressed(target, **kept)


def write_file(name, target, id_maps):
    """Copies a file; in a conversion with its token ids renamed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if name.startswith("convert_"):
        kind = "sentencepiece" if name.startswith("convert_sp") else "wordpiece"
        content = make_small.renamed(cases.load_json(TOPIC, name), id_maps, kind)
        make_small_wikihop.write_json(target, content)
    else:
        shutil.copyfile(cases.resolve(TOPIC, name), target)


def raw_texts():
    """All words of the pages, as they are tokenized: one by one."""
    lines = cases.resolve(TOPIC, RAW_FILE).read_text(encoding="utf-8").splitlines()
    return {word for line in lines for word in phrases.split(json.loads(line)["text"])}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    small = pathlib.Path(__file__).resolve().parent / "small"
    parser.parse_args(arguments)
    if small == cases.reference_root().resolve():
        parser.error(f"{small} is the only reference folder there is")
    kept = [case for case in cases.load_cases(TOPIC) if is_small(case)]
    kept = [without_side_inputs(case) if case["kind"] == "model" else case for case in kept]
    target = small / TOPIC
    shutil.rmtree(target, ignore_errors=True)
    id_maps = make_small_wikihop.shrink_vocabularies(raw_texts(), target / VOCABULARIES)
    for name in {name for case in kept for name in make_small.files_of(TOPIC, case)} | {RAW_FILE}:
        write_file(name, target / name, id_maps)
    for case in kept:
        if case["kind"] == "model":
            write_arrays(case, target / case["file"])
    manifest = json.dumps({"cases": kept}).replace('"vocab/', f'"{VOCABULARIES}/')
    make_small_wikihop.write_json(target / "manifest.json", json.loads(manifest))
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{len(kept)} cases, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
