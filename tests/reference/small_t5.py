"""Copies the sample of LongT5's and PEGASUS-X's cases, with their models, to the small copy."""

import json
import shutil

from tests.reference import cases, t5_cases

TOPIC = t5_cases.TOPIC
_MODEL_FILES = ("config.json", "model.safetensors")
_GENERATION = "generation_config.json"  # Of models that generate.


def write(target):
    """Writes the sample below `target / "t5"`; returns the cases."""
    kept = [case for case in cases.load_cases(TOPIC) if case["name"] in t5_cases.SAMPLE]
    folder = target / TOPIC
    shutil.rmtree(folder, ignore_errors=True)
    files = (*_MODEL_FILES, _GENERATION)
    names = {f"{case['kind']}/{name}" for case in kept for name in files}
    for name in sorted(names | {case["file"] for case in kept}):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cases.resolve(TOPIC, name), folder / name)
    text = json.dumps({"cases": kept}, ensure_ascii=False, separators=(",", ":"))
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return kept
