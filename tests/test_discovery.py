"""What one sees who asks a prompt: the public names, settings spelled out, and sizes."""

import inspect

import pytest

import etcmodel
from etcmodel import serving, training
from tests.models import text_cases


@pytest.mark.parametrize("package", [etcmodel, etcmodel.models, serving, training])
def test_a_package_lists_its_public_names_and_nothing_else(package):
    names = [name for name in dir(package) if not name.startswith("__")]
    assert names == sorted(package.__all__)


@pytest.mark.parametrize("name", ["EtcProcessor", "LongformerProcessor", "GmatProcessor"])
def test_the_settings_of_a_processor_are_spelled_out(name):
    made = getattr(etcmodel, name)
    parameters = inspect.signature(made).parameters
    assert {"vocab", "stride", "pad_to_multiple_of"} <= set(parameters)
    assert all(x.annotation is not x.empty for n, x in parameters.items() if n != "vocab")


def test_a_model_tells_its_sizes_labels_and_processor(tmp_path):
    processor = text_cases.processor(tmp_path, relation_names=(), max_long_len=64)
    config = text_cases.config(processor)
    model = etcmodel.EtcForSequenceClassification(config, labels=["neg", "pos"])
    sizes = "2 layers, 16 hidden units, 109 tokens in the vocabulary"
    number = sum(x.numpy().size for x in model.weights)
    name = "EtcForSequenceClassification 'sequence_classification'"
    assert repr(model) == f"<{name}, {sizes}, {number:,} parameters, labels 'neg', 'pos'>"
    model.processor = processor
    assert repr(model).endswith("reads texts by EtcProcessor(109 tokens, max_long_len=64)>")
