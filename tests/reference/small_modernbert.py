"""Selects the cases of ModernBERT of the small copy; their files are copied as they are."""

import json
import shutil

from tests.reference import cases, modernbert_cases

TOPIC = modernbert_cases.TOPIC
_MODEL_FILES = ("config.json", "model.safetensors")
_OTHERS = ("NAMES.json", "configs.json", "tokenizer/tokenizer.json", "tokenizer/tokens.json")


def write(target):
    """Writes the sample and what it needs below `target / "modernbert"`; returns its cases."""
    folder = target / TOPIC
    shutil.rmtree(folder, ignore_errors=True)
    kept = [case for case in cases.load_cases(TOPIC) if case["name"] in modernbert_cases.SAMPLE]
    names = {case["file"] for case in kept}
    names |= {f"{case['kind']}/{name}" for case in kept for name in _MODEL_FILES}
    for name in sorted({*names, *_OTHERS}):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cases.resolve(TOPIC, name), folder / name)
    text = json.dumps({"cases": kept}, ensure_ascii=False, separators=(",", ":"))
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return kept
