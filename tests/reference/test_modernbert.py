"""ModernBERT's files against Hugging Face's: which configs are read, and how; names of tensors."""

import json

import pytest

import etcmodel
from etcmodel.checkpoints import hugging_face
from etcmodel.models.modernbert import config as config_lib
from tests.checkpoints import tensor_files
from tests.reference import cases, modernbert_cases

TOPIC, CASES = modernbert_cases.TOPIC, modernbert_cases.CASES
CONFIGS = cases.load_json(TOPIC, "configs.json")
NAMES = cases.load_json(TOPIC, "NAMES.json")
BIASES = ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias")


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


def model_like(entry):
    """A model of a class and options as `NAMES.json` names them."""
    name, _, rest = entry.partition(" ")
    sizes = {x: y for x, y in NAMES["dims"].items() if x not in ("num_labels", "stored")}
    options = {"tie_word_embeddings": "untied" not in rest}
    options["decoder_bias"] = "decoder_bias=false" not in rest
    options |= dict.fromkeys(BIASES, "all biases" in rest)
    config = etcmodel.ModernBertConfig(**sizes, **options)
    has_labels = name.endswith(("SequenceClassification", "TokenClassification"))
    labels = {"num_labels": NAMES["dims"]["num_labels"]} if has_labels else {}
    return getattr(etcmodel, name)(config, **labels)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [x for x in NAMES if x != "dims"])
def test_saved_names_and_shapes(entry, tmp_path):
    model = model_like(entry)
    if isinstance(model, etcmodel.ModernBertModel):
        model.build(None)
    found = {x: list(y.shape) for x, y in hugging_face.values(model).items()}
    assert found == NAMES[entry]
    model.save_pretrained(tmp_path)
    again = etcmodel.from_pretrained(tmp_path)
    for name, value in hugging_face.values(model).items():
        assert (hugging_face.values(again)[name] == value).all(), name
    entries = json.loads((tmp_path / "config.json").read_text())
    assert entries["architectures"] == [type(model).__name__]


@pytest.mark.slow
def test_a_saved_folder_has_the_same_tensors_as_its_source(tmp_path):
    for kind in sorted({case["kind"] for case in CASES if "16" not in case["kind"]}):
        source = cases.topic_folder(TOPIC) / kind
        etcmodel.from_pretrained(source).save_pretrained(tmp_path / kind)
        one, other = (
            tensor_files.exact(x / kind / "model.safetensors")
            for x in (tmp_path, cases.topic_folder(TOPIC))
        )
        assert one == other, kind
