"""What a later version wrote to disk is refused in a line that names it."""

import importlib
import json

import pytest

from etcmodel import finetuning, format_versions
from etcmodel.training import run_directory
from tests import page

PACKAGES = ["pretrain"] + sorted(
    f"tasks.{path.parent.name}" for path in page.DOCS.parent.glob("tasks/*/task.py")
)
KNOWN = "and this version of etcmodel reads those up to"


@pytest.mark.parametrize("package", PACKAGES)
def test_records_are_read_up_to_the_version_that_is_made(package):
    records, preprocess = (
        importlib.import_module(f"etcmodel.{package}.{name}") for name in ("task", "preprocess")
    )
    factory, _ = preprocess.load_parts()
    assert records.RecordConfig.format_version == factory.format_version


@pytest.mark.parametrize("version", [0, -1, "2", 1.0, True, None])
def test_what_is_no_version_is_named(version):
    with pytest.raises(ValueError, match="^a.json: `format_version` must be an integer from 1 on"):
        format_versions.check({"format_version": version}, 1, "a.json")


def test_what_has_no_version_is_of_the_first():
    format_versions.check({}, 1, "a.json")
    with pytest.raises(ValueError, match=f"^a.json: `format_version` is 4, {KNOWN} 3. Install"):
        format_versions.check({"format_version": 4}, 3, "a.json")


def test_records_of_a_later_version_are_refused(tmp_path):
    (tmp_path / "a-00000-of-00001.tfrecord").touch()
    settings = tmp_path / "a.config.json"

    class RecordConfig(finetuning.RecordConfig):
        format_version = 2
        label_features = decoding_features = model_features = lambda self: {}

    config = RecordConfig(long_seq_length=1, global_seq_length=1, vocab_size=1)
    for version, message in ((3, f"^{settings}: `format_version` is 3, {KNOWN} 2"), (2, "no rec")):
        settings.write_text(json.dumps({"format_version": version}))
        for need_labels in (True, False):
            with pytest.raises(ValueError, match=message):
                finetuning.check_records(
                    f"{tmp_path}/a-*.tfrecord", config, need_labels=need_labels
                )


def test_a_run_of_a_later_version_is_refused(tmp_path):
    run_directory.claim_directory(str(tmp_path), {"training": {}}, notes={"a": 1})
    assert run_directory.read_run_config(str(tmp_path)) == {"training": {}, "notes": {"a": 1}}
    path = tmp_path / "run_config.json"
    written = json.loads(path.read_text())
    assert written == {"format_version": 1, "training": {}, "notes": {"a": 1}}
    path.write_text(json.dumps({**written, "format_version": 2}))
    with pytest.raises(ValueError, match=f"^{path}: `format_version` is 2, {KNOWN} 1"):
        run_directory.claim_directory(str(tmp_path), {"training": {}})
