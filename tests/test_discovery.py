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


PROCESSORS = [name for name in etcmodel.__all__ if name.endswith("Processor")]
MODELS = [name for name in etcmodel.__all__ if name.endswith("Model") or "For" in name]


def parameters_of(name):
    return inspect.signature(getattr(etcmodel, name)).parameters


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_settings_of_a_processor_are_spelled_out(name):
    parameters = parameters_of(name)
    config_class = getattr(etcmodel, name).config_class
    assert [*parameters] == ["vocab", *inspect.signature(config_class).parameters]
    assert all(x.annotation is not x.empty for n, x in parameters.items() if n != "vocab")


@pytest.mark.parametrize("name", MODELS)
def test_the_arguments_of_a_model_are_spelled_out_with_their_types(name):
    *ours, of_keras = parameters_of(name).values()
    assert of_keras.kind is of_keras.VAR_KEYWORD
    assert ours[0].name in ("config", "encoder") and "own" not in parameters_of(name)
    for parameter in ours:
        assert parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        assert parameter.annotation is not parameter.empty, parameter


def test_a_head_tells_its_own_arguments_first_and_those_of_its_bases():
    names = [*parameters_of("LongformerForSequenceClassification")]
    own = ["encoder", "label_names", "num_labels", "problem_type", "labels", "dropout", "kwargs"]
    assert names == own
    model = etcmodel.LongformerForSequenceClassification
    assert {*names} == {*model.setting_types(), "encoder", "kwargs"}


def test_an_object_has_the_signature_of_its_call(tmp_path):
    processor = text_cases.processor(tmp_path, relation_names=(), max_long_len=64)
    model = etcmodel.EtcForSequenceClassification(text_cases.config(processor))
    assert [*inspect.signature(processor).parameters] == ["examples", "settings", "fields"]
    assert "encoder" not in inspect.signature(model).parameters


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
