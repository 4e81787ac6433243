"""ModernBERT against Hugging Face's: hidden states, attentions, logits, losses, gradients.

Here a sample, and in `test_modernbert_all.py` all cases; and which configs are read, and how.
"""

import pytest

import etcmodel
from etcmodel.models.modernbert import config as config_lib
from tests.reference import cases, modernbert_cases

TOPIC = modernbert_cases.TOPIC
SAMPLE = [case for case in modernbert_cases.CASES if case["name"] in modernbert_cases.SAMPLE]
CONFIGS = cases.load_json(TOPIC, "configs.json")


@pytest.mark.reference(TOPIC)
@pytest.mark.parametrize("case", SAMPLE, ids=cases.case_id)
def test_case(case):
    modernbert_cases.check(case)


def test_there_is_a_sample():
    assert len(SAMPLE) == len(modernbert_cases.SAMPLE)
    assert set(modernbert_cases.TRACED) <= set(modernbert_cases.SAMPLE)


@pytest.mark.parametrize("case", CONFIGS, ids=cases.case_id)
def test_config(case):
    if "refused" in case:
        with pytest.raises(ValueError, match="must"):
            etcmodel.ModernBertConfig.from_dict(case["config"])
        return
    config = etcmodel.ModernBertConfig.from_dict(case["config"])
    found = {
        "layer_types": list(config.layer_kinds),
        "full_theta": config.thetas[config_lib.FULL],
        "sliding_theta": config.thetas[config_lib.SLIDING],
        **{x: getattr(config, x) for x in case["expect"] if hasattr(config, x)},
    }
    found["layer_types"] = list(config.layer_kinds)
    assert found == case["expect"]
    assert etcmodel.ModernBertConfig.from_dict(config.to_dict()) == config
