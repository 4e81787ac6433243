"""Selects a few `core` cases for the small copy; their files are copied as they are."""

import json
import shutil

from tests.reference import cases

TOPIC = "core"
WITH_CHECKPOINT = ("models", "tasks")
TASK = "hotpotqa"  # The one whose model the small copy has.
MAX_ARRAY_BYTES = 10_000  # Of cases about single functions and layers.


def write(target):
    """Writes the selected cases and their files below `target / "core"`; returns the cases."""
    kept = selected_cases()
    folder = target / TOPIC
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted({path for case in kept for path in files_of(case)}):
        copy = folder / path.relative_to(cases.topic_folder(TOPIC))
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    text = json.dumps({"cases": kept}, ensure_ascii=False, separators=(",", ":"))
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return kept


def selected_cases():
    """Of each public name the smallest case that succeeds and the smallest that must fail."""
    smallest = {}
    for case in cases.load_cases(TOPIC):
        if is_wanted(case):
            group = case["kind"], case["api"], "raises" in case
            smallest[group] = min(case, smallest.get(group, case), key=num_bytes)
    names = {case["name"] for case in smallest.values()}
    return [case for case in cases.load_cases(TOPIC) if case["name"] in names]


def is_wanted(case):
    if case["kind"] == "tasks":
        return TASK in case["api"]
    return case["kind"] in WITH_CHECKPOINT or num_bytes(case) <= MAX_ARRAY_BYTES


def num_bytes(case):
    return sum(path.stat().st_size for path in files_of(case))


def files_of(case):
    """Paths of the arrays, and of checkpoint, config, variables and records where there are any."""
    names = [case.get(key) for key in ("file", "config", "variables")]
    names.append(case.get("records", {}).get("file"))
    paths = [cases.resolve(TOPIC, name) for name in names if name]
    if "checkpoint" in case:
        prefix = cases.resolve(TOPIC, case["checkpoint"])
        paths += prefix.parent.glob(f"{prefix.name}.*")
    return sorted(paths)
