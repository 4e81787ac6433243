"""Selects the cases of Longformer and LED of the small copy; their files are copied as they are."""

import json
import shutil

from tests.reference import cases, led_cases, longformer_cases

TOPIC = longformer_cases.TOPIC
TOKENIZER = ("merges.txt", "tokens.json", "vocab.json")
DILATED = ("causal_padding", "sym_globals_as_columns", "sym_short")
_MODEL_FILES = ("config.json", "model.safetensors")
_GENERATION = "generation_config.json"  # Of models that generate.


def write(target):
    """Writes the sample and what it needs below `target / "longformer"`; returns its cases."""
    folder = target / TOPIC
    shutil.rmtree(folder, ignore_errors=True)
    sample = (*longformer_cases.SAMPLE, *led_cases.SAMPLE)
    kept = [case for case in cases.load_cases(TOPIC) if case["name"] in sample]
    names = {case["file"] for case in kept}
    names |= {f"{case['kind']}/{name}" for case in kept for name in _MODEL_FILES}
    kinds = {case["kind"] for case in kept}
    names |= {f"{kind}/{_GENERATION}" for kind in kinds if kind.endswith(("_lm", "_generate"))}
    names |= {f"dilated/{name}.npz" for name in DILATED}
    names |= {f"lift/{kind}/{name}" for kind in ("bart", "roberta") for name in _MODEL_FILES}
    names |= {f"tokenizer/{name}" for name in TOKENIZER}
    for name in sorted(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cases.resolve(TOPIC, name), folder / name)
    _write_json({"cases": kept}, folder / "manifest.json")
    dilated = cases.load_json(TOPIC, "dilated/manifest.json")
    _write_json({name: dilated[name] for name in DILATED}, folder / "dilated" / "manifest.json")
    return kept


def _write_json(content, path):
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")
