"""Selects the cases of BigBird of the small copy; their files are copied as they are."""

import json
import shutil

from tests.reference import bigbird_cases, cases

TOPIC = bigbird_cases.TOPIC
_MODEL_FILES = ("config.json", "model.safetensors")
_OTHERS = ("NAMES.json", "plans/plans.json", "plans/plans.npz")


def write(target):
    """Writes the sample and what it needs below `target / "bigbird"`; returns its cases."""
    folder = target / TOPIC
    shutil.rmtree(folder, ignore_errors=True)
    sample = bigbird_cases.SAMPLE
    kept = [case for case in cases.load_cases(TOPIC) if case["name"] in sample]
    names = {case["file"] for case in kept} | set(_OTHERS)
    names |= {f"{case['kind']}/{name}" for case in kept for name in _MODEL_FILES}
    kinds = {case["kind"] for case in kept if case["kind"].endswith("_generate")}
    names |= {f"{kind}/generation_config.json" for kind in kinds}
    for name in sorted(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cases.resolve(TOPIC, name), folder / name)
    text = json.dumps({"cases": kept}, ensure_ascii=False, separators=(",", ":"))
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return kept
