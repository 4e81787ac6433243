"""Copies samples of cases, and the models that they need, to the small copy as they are."""

from tests.reference import (
    bigbird_cases,
    cases,
    gmat_cases,
    gmat_tagging,
    led_cases,
    longformer_cases,
    modernbert_cases,
    small_files,
    t5_cases,
)

_MODEL_FILES = ("config.json", "model.safetensors")
_DILATED = ("causal_padding", "sym_globals_as_columns", "sym_short")
# Of longformer, with LED, beside the models of the sample.
_OTHERS = (
    *(f"dilated/{name}.npz" for name in _DILATED),
    *(f"lift/{kind}/{name}" for kind in ("bart", "roberta") for name in _MODEL_FILES),
    *(f"tokenizer/{name}" for name in ("merges.txt", "tokens.json", "vocab.json")),
)
_MODERNBERT = ("NAMES.json", "configs.json", "tokenizer/tokenizer.json", "tokenizer/tokens.json")
# By topic: the names of the cases, and the files that no case names.
SAMPLES = {
    bigbird_cases.TOPIC: (
        bigbird_cases.SAMPLE,
        ("NAMES.json", "plans/plans.json", "plans/plans.npz"),
    ),
    gmat_cases.TOPIC: (gmat_cases.SAMPLE, (gmat_tagging.STATISTICS,)),
    longformer_cases.TOPIC: ((*longformer_cases.SAMPLE, *led_cases.SAMPLE), _OTHERS),
    modernbert_cases.TOPIC: (modernbert_cases.SAMPLE, _MODERNBERT),
    t5_cases.TOPIC: (t5_cases.SAMPLE, ()),
}


def write(topic, target):
    """Writes the sample and what it needs below `target / topic`; returns its cases."""
    sample, others = SAMPLES[topic]
    kept = [case for case in cases.load_cases(topic) if case["name"] in sample]
    names = {case["file"] for case in kept} | set(others)
    for case in kept:
        case.pop("arrays", None)  # GMAT's have their shapes, which the files tell, too.
        names |= _files_of_model(topic, case["kind"])
    small_files.copy(topic, names, target)
    small_files.write_json(target / topic / "manifest.json", {"cases": kept})
    if topic == longformer_cases.TOPIC:
        dilated = cases.load_json(topic, "dilated/manifest.json")
        kept_of = {name: dilated[name] for name in _DILATED}
        small_files.write_json(target / topic / "dilated" / "manifest.json", kept_of)
    return kept


def _files_of_model(topic, kind):
    if topic == "gmat":  # The models of its cases are in their arrays.
        return set()
    names = [*_MODEL_FILES]
    if kind.endswith(("_lm", "_generate")):
        names.append("generation_config.json")
    return {f"{kind}/{name}" for name in names}
