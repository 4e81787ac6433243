"""Predictions beside what is right, of the files that an evaluation leaves."""

import pytest

from etcmodel import training
from etcmodel.models import modeling
from etcmodel.tasks.wikihop import task as wikihop
from tests.finetuning import toy
from tests.reports import task_files


def config_of(config_class, **options):
    return config_class(encoder_config=modeling.EtcConfig(vocab_size=30), **options)


def test_they_are_those_of_the_predictions_file(tmp_path):
    gold, predictions = task_files.make("wikihop", tmp_path)
    config = config_of(wikihop.WikiHopConfig, eval_gold=gold, predictions_file=predictions)
    samples = wikihop.WikiHopTask(config).text_samples(4)
    assert [given == right for _, given, right in samples] == [True, False, True, False]
    assert all(question and given and right for question, given, right in samples)


def test_there_are_none_without_texts(tmp_path):
    gold, predictions = task_files.make("wikihop", tmp_path)
    config = config_of(wikihop.WikiHopConfig, eval_gold=gold)
    assert wikihop.WikiHopTask(config).text_samples(4) == []
    config = config_of(toy.ToyConfig, eval_gold=gold, predictions_file=predictions)
    assert toy.ToyTask(config).text_samples(4) == []  # A task without a report.


@pytest.mark.parametrize("strategy", ["tpu", "multi_worker_mirrored"])
def test_they_are_not_for_many_machines(strategy):
    with pytest.raises(ValueError, match="`tensorboard_extras` needs one machine without TPU"):
        training.TrainingConfig(tensorboard_extras=True, distribution_strategy=strategy)
