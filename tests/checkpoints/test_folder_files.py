"""What files beside the weights say is checked, in a line that names file and entry."""

import dataclasses
import json
import os
import pathlib
import shutil

import numpy as np
import pytest

import etcmodel
from etcmodel.models import heads, modeling
from etcmodel.models.longformer import modeling as longformer_heads
from tests.models import head_cases
from tests.models.gmat import small as gmats
from tests.models.led import models as leds
from tests.models.longformer import small as longformers
from tests.models.longformer_char_lm import char_models
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs

PIECES = pathlib.Path(__file__).parents[1] / "fixtures" / "sentence_pieces" / "spiece.model"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One of an ETC, of a Longformer and of a LongT5, by name."""
    top = tmp_path_factory.mktemp("folders")
    config = head_cases.config()
    heads.EtcForSequenceClassification(config, num_labels=3).save_pretrained(top / "etc")
    heads.EtcForQuestionAnswering(config).save_pretrained(top / "etc_qa")
    heads.EtcForKeyphraseExtraction(config).save_pretrained(top / "etc_phrases")
    made_by = longformer_heads.LongformerForSequenceClassification
    made_by(longformers.config(), num_labels=2).save_pretrained(top / "longformer")
    # As Hugging Face's library writes it.
    made_by(longformers.config(), num_labels=2).save_pretrained(top / "of_others")
    os.remove(top / "of_others" / "head_config.json")
    longt5s.model(vocab_size=190).save_pretrained(top / "longt5")
    shutil.copyfile(PIECES, top / "longt5" / "spiece.model")
    (top / "longt5" / "generation_config.json").write_text('{"num_beams": 2}')
    return top


CASES = [
    ("etc", "head_config.json", {"auto_map": 1}, "unknown settings of EtcForSequ.*: auto_map=1"),
    ("etc", "head_config.json", {"head_type": ["a"]}, r"no head of `head_type` \['a'\]; the known"),
    ("etc", "head_config.json", {"num_labels": 0}, "`num_labels` must be at least 1. Received: 0"),
    ("etc", "head_config.json", {"num_labels": True}, "`num_labels` must be of type int. .*: True"),
    ("etc", "head_config.json", {"pooling": ["mean"]}, "`pooling` must be one of .*'first_global'"),
    ("etc", "head_config.json", {"multi_label": 1}, "`multi_label` must be of type bool. .*: 1"),
    ("etc", "head_config.json", {"dropout": float("nan")}, "`dropout` must be at least 0 and bel"),
    ("etc", "head_config.json", {"dropout": 1.5}, "`dropout` must be at least 0 and below 1"),
    ("etc", "head_config.json", {"relation_names": 1}, "`relation_names` must be of type list of"),
    ("etc", "head_config.json", {"relation_names": [1]}, "`relation_names` must be of type list"),
    ("etc_qa", "head_config.json", {"answer_types": "span"}, "`answer_types` must be of type list"),
    ("etc_qa", "head_config.json", {"evidence": "no"}, "`evidence` must be of type bool"),
    ("etc_phrases", "head_config.json", {"max_words": 0}, "`max_words` must be at least 1"),
    ("longformer", "head_config.json", {"problem_type": []}, "`problem_type` must be one of .*"),
    ("longformer", "head_config.json", {"label_names": {}}, "`label_names` must be of type list"),
    ("longformer", "head_config.json", {"label_names": ["a"]}, "`labels` must be as many as"),
    ("longformer", "config.json", {"architectures": 0.5}, "`architectures` must be a list of nam"),
    ("of_others", "config.json", {"architectures": 0.5}, "`architectures` must be a list of names"),
    ("of_others", "config.json", {"architectures": [["a"]]}, "`architectures` must be a list of n"),
    ("of_others", "config.json", {"id2label": ["a", "b"]}, "`id2label` must be names by number"),
    ("of_others", "config.json", {"id2label": {"0": []}}, "`id2label` must be names by number"),
    ("of_others", "config.json", {"problem_type": []}, "`problem_type` must be a name"),
    ("of_others", "config.json", {"problem_type": "ranking"}, "`problem_type` must be one of"),
    ("longt5", "config.json", {"architectures": 0.5}, "`architectures` must be a list of names"),
    ("longt5", "generation_config.json", {"num_beams": -1}, "`num_beams` must be at least 0"),
    ("longt5", "generation_config.json", {"num_beams": [2]}, "`num_beams` must be of type int"),
    ("longt5", "generation_config.json", {"top_p": float("nan")}, "`top_p` must be a finite numb"),
    (
        "longt5",
        "generation_config.json",
        {"temperature": float("nan")},
        "`temperature` must be a finite number",
    ),
    ("longt5", "generation_config.json", {"early_stopping": "soon"}, "`early_stopping` must be T"),
    ("longt5", "generation_config.json", {"max_new_tokens": 0}, "`max_new_tokens` must be at lea"),
    ("longt5", "generation_config.json", {"eos_token_id": {}}, "`eos_token_id` must be of type i"),
    (
        "longt5",
        "processor_config.json",
        {"extra_ids": 10**99},
        "`extra_ids` must be at most 1048576",
    ),
    (
        "longt5",
        "processor_config.json",
        {"vocab_file": []},
        r"`vocab_file` is \[\], but the",
    ),
]


@pytest.mark.parametrize(("name", "file", "entries", "message"), CASES)
def test_what_cannot_be_is_refused_by_file_and_entry(folder, name, file, entries, message):
    path = folder / name / file
    before = path.read_text() if path.exists() else None
    path.write_text(json.dumps({**json.loads(before or "{}"), **entries}))
    try:
        with pytest.raises(ValueError, match=f"^{path}: .*{message}") as error:
            etcmodel.from_pretrained(folder / name)
    finally:
        path.unlink() if before is None else path.write_text(before)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


@pytest.mark.parametrize("name", ["etc", "longformer", "longt5"])
def test_a_model_without_the_adapter_that_is_beside_it_is_refused(folder, name):
    path = folder / name / "adapter_config.json"
    path.write_text(json.dumps({"peft_type": "LORA", "r": 8}))
    try:
        with pytest.raises(ValueError, match=f"^'{path}' says that the folder is of an adapter"):
            etcmodel.from_pretrained(folder / name)
        chosen = etcmodel.from_pretrained(folder / name, "model.safetensors")
    finally:
        path.unlink()
    for one, other in zip(
        chosen.weights, etcmodel.from_pretrained(folder / name).weights, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_settings_of_generate_that_need_others_are_read_by_themselves(folder):
    path = folder / "longt5" / "generation_config.json"
    entries = {
        "min_length": 50,
        "num_return_sequences": 3,
        "length_penalty": -0.5,
        "eos_token_id": 1,
    }
    path.write_text(json.dumps(entries))
    model = etcmodel.from_pretrained(folder / "longt5")
    assert dict(model.generation_config.entries) == entries


def test_arguments_of_a_head_are_checked_in_python_too():
    config = head_cases.config()
    for arguments, message in (
        ({"num_labels": "3"}, "`num_labels` must be of type int. Received: '3'"),
        ({"num_labels": float("nan")}, "`num_labels` must be of type int"),
        ({"dropout": -0.1}, "`dropout` must be at least 0 and below 1"),
        ({"pooling": "last"}, "`pooling` must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            heads.EtcForSequenceClassification(config, **arguments)


MODELS = {
    "etc": lambda: heads.EtcForSequenceClassification(head_cases.config()),
    "longformer": longformers.model,
    "gmat": gmats.model,
    "char_lm": char_models.model,
    "led": leds.model,
    "longt5": longt5s.model,
    "pegasus_x": pegasus_xs.model,
}
SIZES = dict.fromkeys(("led", "longt5", "pegasus_x"), "d_model")


def changed_at_its_place(encoder, name, value):
    object.__setattr__(encoder.config, name, value)


def replaced(encoder, name, value):
    encoder.config = dataclasses.replace(encoder.config, **{name: value})


@pytest.mark.parametrize("kind", MODELS)
def test_a_config_that_was_changed_is_not_saved(kind, tmp_path):
    """The folder would load as another model, or not at all."""
    model, name = MODELS[kind](), SIZES.get(kind, "hidden_size")
    encoder = model.encoder if kind == "etc" else model
    before = getattr(encoder.config, name)
    message = f"config was changed after .*: `{name}` is {2 * before} and was {before}. Make a new"
    for change in (changed_at_its_place, replaced):
        change(encoder, name, 2 * before)
        with pytest.raises(ValueError, match=message):
            model.save_pretrained(tmp_path / "new")
        assert not (tmp_path / "new").exists()
        change(encoder, name, before)
    model.save_pretrained(tmp_path / "new")


def test_a_config_that_can_no_longer_be_is_not_saved(tmp_path):
    model = longformers.model()
    changed_at_its_place(model, "layer_norm_eps", float("nan"))
    with pytest.raises(ValueError, match="`layer_norm_eps` must be at least 0. Received: nan"):
        model.save_pretrained(tmp_path / "new")
    model.config = None
    with pytest.raises(ValueError, match="must be the `LongformerConfig` that .* Received: None"):
        model.save_pretrained(tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_entries_that_are_read_at_every_call_may_change(tmp_path):
    """They are of no weights: a model does what its config says of default structures."""
    model = heads.EtcForSequenceClassification(head_cases.config())
    model.config.global_block_length = 4
    model.save_pretrained(tmp_path)
    assert etcmodel.from_pretrained(tmp_path).config.global_block_length == 4
    assert isinstance(model.config, modeling.EtcConfig)


def test_a_head_of_others_may_have_arguments_of_any_type():
    class Scored(heads.EtcForTokenClassification):
        def __init__(self, encoder, *, scale: list[float] = (), about: "str" = "", **kwargs):
            super().__init__(encoder, **kwargs)

    Scored.check_settings({"scale": [1.0], "about": 3, "num_labels": 2})
    with pytest.raises(ValueError, match="unknown settings of Scored: scales=1"):
        Scored.check_settings({"scales": 1})
