"""Copies the sample of GMAT's cases to the small copy."""

import json
import shutil

from tests.reference import cases, gmat_cases, gmat_tagging

TOPIC = gmat_cases.TOPIC


def write(target):
    """Writes the sample below `target / "gmat"`; returns the cases."""
    kept = gmat_cases.load(sample=gmat_cases.SAMPLE)
    folder = target / TOPIC
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for case in kept:
        shutil.copyfile(cases.resolve(TOPIC, case["file"]), folder / case["file"])
        case.pop("arrays")  # Their shapes, which the files tell, too.
    statistics = gmat_tagging.STATISTICS
    shutil.copyfile(cases.resolve(TOPIC, statistics), folder / statistics)
    text = json.dumps({"cases": kept}, ensure_ascii=False, separators=(",", ":"))
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return kept
