"""Reads the reference cases: what the authors' release computed, as JSON manifests and arrays.

A reference root holds one folder a topic (`core`, `hotpotqa`, …), each with a `manifest.json` whose
`cases` name their files, and the folder `vocab`. A copy with fewer cases also has `all_cases.json`,
the names of all of them by topic and kind, so that a report can tell what it did not run.
"""

import collections
import json
import os
import pathlib

import numpy as np

ROOT_VARIABLE = "ETCMODEL_REFERENCE_ROOT"
_HERE = pathlib.Path(__file__).resolve().parent
_REPOSITORY = _HERE.parents[1]
_SMALL_COPY = _HERE / "small"
ALL_CASES = "all_cases.json"


def reference_root():
    """The folder of the reference topics.

    `$ETCMODEL_REFERENCE_ROOT` where it is set, else `../shared/reference` beside the repository,
    else the small copy kept with the tests.

    Raises:
        FileNotFoundError: if the variable names a folder that is not there.
    """
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        root = pathlib.Path(named)
        if not root.is_dir():
            raise FileNotFoundError(f"${ROOT_VARIABLE} names no folder: {named}")
        return root
    beside = _REPOSITORY.parent / "shared" / "reference"
    return beside if beside.is_dir() else _SMALL_COPY


def topic_folder(topic):
    """The folder of `topic` below the reference root."""
    return reference_root() / topic


def load_cases(topic):
    """The cases of `topic`, a list of dicts in the manifest's order; empty without a manifest.

    Those without a name are named by their file.

    A manifest without `cases` is one by model, as those of Hugging Face's models are: its cases are
    named "model/case", their kind is the model, and their file is below the model's folder.
    """
    manifest = topic_folder(topic) / "manifest.json"
    if not manifest.is_file():
        return []
    content = json.loads(manifest.read_text(encoding="utf-8"))
    if "cases" in content:
        return [x if "name" in x else {"name": _stem(x), **x} for x in content["cases"]]
    return [
        {"name": f"{model}/{name}", "kind": model, "file": f"{model}/cases/{name}.npz", **case}
        for model, entry in content.items()
        for name, case in entry.get("cases", {}).items()
    ]


def _stem(case):
    return pathlib.PurePath(case["file"]).stem


def names_by_kind(topic):
    """The names of all cases of `topic` by kind, also of those that a small copy leaves out."""
    listing = reference_root() / ALL_CASES
    if listing.is_file():
        listed = json.loads(listing.read_text(encoding="utf-8"))
        if topic in listed:
            return listed[topic]
    names = collections.defaultdict(list)
    for case in load_cases(topic):
        names[kind_of(case)].append(case["name"])
    return dict(names)


def load_json(topic, path):
    """The content of the JSON file `path` of `topic`."""
    return json.loads(resolve(topic, path).read_text(encoding="utf-8"))


def arrays_of(topic, case):
    """The arrays of a case's file by key: dict; empty for a case without a file."""
    if "file" not in case:
        return {}
    with np.load(resolve(topic, case["file"]), allow_pickle=False) as arrays:
        return dict(arrays)


def resolve(topic, path):
    """The true path of a file named in a manifest: `vocab/…` lies beside the topic folders."""
    parent = reference_root() if path.startswith("vocab/") else topic_folder(topic)
    return parent / path


def kind_of(case):
    """What a report groups cases by."""
    return case.get("kind", "all")


def case_id(case):
    return case["name"]
