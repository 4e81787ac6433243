"""BigBird's heads: over files with and without a pooler, and their dropout."""

import json

import pytest

import etcmodel
from tests.checkpoints import tensor_files
from tests.models.bigbird import small

WITHOUT_POOLER = (
    etcmodel.BigBirdForMaskedLM,
    etcmodel.BigBirdForSequenceClassification,
    etcmodel.BigBirdForTokenClassification,
)
WITH_POOLER = (etcmodel.BigBirdForMultipleChoice, etcmodel.BigBirdForPreTraining)


def folder_of(head_class, path, **changes):
    head_class(small.config(**changes)).save_pretrained(path)
    return path


def has_pooler(folder):
    return any("pooler." in name for name in tensor_files.tensors_of(folder))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("head_class", WITHOUT_POOLER)
def test_heads_that_read_no_pooler_need_none(head_class, tmp_path):
    folder = folder_of(etcmodel.BigBirdForQuestionAnswering, tmp_path / "qa")
    made = etcmodel.from_pretrained(folder, as_class=head_class)
    assert made.encoder.pooler is None
    made.save_pretrained(tmp_path / "made")
    again = etcmodel.from_pretrained(tmp_path / "made")
    assert type(again) is head_class
    assert again.encoder.pooler is None
    assert not has_pooler(tmp_path / "made")


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("head_class", [*WITHOUT_POOLER, *WITH_POOLER])
def test_the_pooler_of_a_file_is_kept(head_class, tmp_path):
    folder = folder_of(head_class, tmp_path)
    assert has_pooler(folder)
    assert etcmodel.from_pretrained(folder).encoder.pooler is not None


@pytest.mark.parametrize("head_class", WITH_POOLER)
def test_heads_that_read_a_pooler_say_that_it_lacks(head_class, tmp_path):
    folder = folder_of(etcmodel.BigBirdForQuestionAnswering, tmp_path)
    with pytest.raises(ValueError, match="pooler"):
        etcmodel.from_pretrained(folder, as_class=head_class)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "head_class", [*WITHOUT_POOLER, *WITH_POOLER, etcmodel.BigBirdForQuestionAnswering]
)
def test_heads_drop_as_the_config_says(head_class):
    def rate(dropout=None, **entries):
        entries = {**small.config(hidden_dropout_prob=0.25).to_dict(), **entries}
        return head_class(small.BigBirdConfig.from_dict(entries), dropout=dropout).dropout.rate

    is_reader = head_class is etcmodel.BigBirdForQuestionAnswering
    assert rate() == rate(classifier_dropout=None) == 0.25
    assert rate(classifier_dropout=0.5) == (0.25 if is_reader else 0.5)
    assert rate(classifier_dropout=0) == (0.25 if is_reader else 0)
    assert rate(classifier_dropout=0.5, dropout=0.125) == 0.125


def test_folders_keep_the_dropout_of_heads(tmp_path):
    kind = etcmodel.BigBirdForTokenClassification
    folder = folder_of(kind, tmp_path / "one", classifier_dropout=0.5)
    assert json.loads((folder / "config.json").read_text())["classifier_dropout"] == 0.5
    etcmodel.from_pretrained(folder).save_pretrained(tmp_path / "two")
    assert etcmodel.from_pretrained(tmp_path / "two").dropout.rate == 0.5
