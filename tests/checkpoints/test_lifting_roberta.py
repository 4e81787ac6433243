"""BERT's family lifted into Longformer and BigBird: its own outputs, any length.

For RoBERTa and Longformer there are Hugging Face's weights, too.
"""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import bert, hugging_face
from etcmodel.models import encoders, sequence_classifiers
from etcmodel.models.longformer import LongformerForMaskedLM, LongformerModel
from tests.checkpoints import berts
from tests.checkpoints.tensor_files import rewrite
from tests.models.longformer import small
from tests.reference import cases, longformer_cases

FOLDER = cases.topic_folder("longformer") / "lift"
CASES = [case for case in cases.load_cases("longformer") if case["kind"] == "lift/longformer"]


@pytest.fixture(scope="module")
def lifted():
    return checkpoints.lift_roberta(FOLDER / "roberta", max_length=96, attention_window=12)


def test_the_weights_are_those_of_the_recipe(lifted):
    wanted = load_file(FOLDER / "longformer" / "model.safetensors")
    found = hugging_face.values(lifted)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.reference("longformer")
@pytest.mark.parametrize("case", CASES, ids=cases.case_id)
def test_outputs(lifted, case):
    arrays = cases.arrays_of(longformer_cases.TOPIC, case)
    logits = lifted(longformer_cases.inputs_of(arrays))
    longformer_cases.assert_same({"out/logits": logits.numpy()}, arrays)


def test_any_length_is_possible():
    model = checkpoints.lift_roberta(FOLDER / "roberta", max_length=31)
    source = load_file(FOLDER / "roberta" / "model.safetensors")
    table = source["roberta.embeddings.position_embeddings.weight"]
    found = model.encoder.position_embeddings.embedding_table.numpy()
    np.testing.assert_array_equal(found, np.concatenate([table, table[2:9]]))
    assert model(np.full([1, 31], 5)).shape == [1, 31, 77]


def test_it_is_written_and_read_with_its_head(lifted, tmp_path):
    etcmodel.save_pretrained(lifted, tmp_path)
    again = etcmodel.from_pretrained(tmp_path)
    assert isinstance(again, LongformerForMaskedLM)
    ids = np.arange(3, 20)[np.newaxis]
    np.testing.assert_array_equal(again(ids), lifted(ids))


def test_after_pre_training_the_global_projections_are_copied_again():
    model = small.model()
    checkpoints.copy_local_to_global(model)
    for block in model.layers.attention_layers:
        attention = block.inner_layer
        for name in ("query", "key", "value"):
            ours, copies = (getattr(attention, x).linear for x in (name, f"{name}_global"))
            np.testing.assert_array_equal(ours.kernel, copies.kernel)
            np.testing.assert_array_equal(ours.bias, copies.bias)
    with pytest.raises(ValueError, match="has no projections of global tokens"):
        checkpoints.copy_local_to_global(small.model(autoregressive=True))


WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef")
INTO = {
    "longformer": (LongformerModel, LongformerForMaskedLM),
    "big_bird": (etcmodel.BigBirdModel, etcmodel.BigBirdForMaskedLM),
}
# All of RoBERTa's family have its code: of these, each is lifted into one of them.
PAIRS = [("bert", into) for into in INTO] + [("roberta", into) for into in reversed(INTO)]
PAIRS += zip(sorted({*bert.ROBERTA_TYPES} - {"roberta"}), INTO, strict=True)


def write(folder, kind):
    """A small BERT's folder, or one of RoBERTa's family."""
    padding = {} if kind == "bert" else {"pad_token_id": 1}
    return berts.write_folder(folder, WORDS, kind, **padding)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("kind", "into"), PAIRS)
def test_within_the_sources_length_the_outputs_are_the_sources(kind, into, tmp_path):
    is_roberta = kind != "bert"
    weights = berts.roberta_weights() if is_roberta else berts.hugging_face_weights()
    model = checkpoints.lift(write(tmp_path / "source", kind), into, max_length=40)
    assert type(model) is INTO[into][0] and model.config.max_length == 40
    pad, ids = model.config.pad_token_id, np.array([2, 5, 7, 10, 9, 3])
    assert pad == int(is_roberta)
    batch = np.stack([ids, [*ids[:4], pad, pad]])
    mask = np.array([[1] * 6, [1] * 4 + [0] * 2])
    hidden, pooled = model({"input_ids": batch, "attention_mask": mask})
    wanted = berts.numpy_berts(weights, [ids, ids], mask > 0)
    np.testing.assert_allclose(hidden[mask > 0], wanted[mask > 0], atol=2e-5)
    pooler = "roberta.pooler.dense" if is_roberta else "bert.pooler.dense"
    vectors = hidden[:, 0] @ weights[f"{pooler}.weight"].T + weights[f"{pooler}.bias"]
    np.testing.assert_allclose(pooled, np.tanh(vectors), atol=2e-5)
    # Behind them the positions begin again.
    table = model.position_embeddings.embedding_table.numpy()
    first = model.config.max_position_embeddings - 40
    np.testing.assert_array_equal(table[first:][:6], table[first:][6:12])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("into", INTO)
def test_the_head_for_masked_tokens_comes_along(into, tmp_path):
    """It is the same function in all of them; RoBERTa's is that of the reference values above."""
    write(tmp_path / "bert", "bert")
    rewrite(tmp_path / "bert", lambda tensors: tensors.update(berts.masked_lm_weights()))
    model = checkpoints.lift(tmp_path / "bert", into, max_length=6)
    assert type(model) is INTO[into][1]
    ids, table = np.array([[2, 5, 7, 3]]), model.encoder.get_token_embedding_table()
    hidden = model.encoder(ids)[0].numpy()
    wanted = berts.numpy_masked_lm(hidden, berts.masked_lm_weights(), table)
    np.testing.assert_allclose(model(ids), wanted, atol=1e-4)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("into", INTO)
def test_the_vocabulary_comes_along(into, tmp_path):
    write(tmp_path / "bert", "bert")
    (tmp_path / "bert" / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    lifted = checkpoints.lift(tmp_path / "bert", into, max_length=6)
    lifted.save_pretrained(tmp_path / "lifted")
    model = etcmodel.from_pretrained(tmp_path / "lifted")
    assert type(model) is type(lifted) and model.config == lifted.config
    # BERT's config does not name them.
    assert (model.config.bos_token_id, model.config.sep_token_id) == (2, 3)
    batch = model.processor(["a B", "c d e f a b c"])
    ids = [[2, 5, 1, 3, 0, 0], [2, 7, 8, 9, 10, 3]]  # "B" is unknown: no lower-casing.
    np.testing.assert_array_equal(batch["input_ids"], ids)
    np.testing.assert_array_equal(model(batch)[0], lifted(batch)[0])
    pair = model.processor(question="a", documents=["c"])  # As BERT was trained.
    np.testing.assert_array_equal(pair["input_ids"], [[2, 5, 3, 7, 3]])
    np.testing.assert_array_equal(pair["token_type_ids"], [[0, 0, 0, 1, 1]])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("into", "kind"), [("longformer", "bert"), ("big_bird", "roberta")])
def test_programs_lift_into_a_model_of_their_config(into, kind, tmp_path):
    lifted = checkpoints.lift(write(tmp_path / "source", kind), into, max_length=9)
    made = sequence_classifiers.make_sequence_classifier(
        lifted.config, num_labels=2, problem_type="single_label_classification", pooling="mean"
    )
    report = checkpoints.initialize(made, tmp_path / "source")
    assert report.warnings == () and all("classifier" in x for x in report.not_in_checkpoint)
    for name, value in hugging_face.values(lifted).items():
        if not name.startswith("pooler."):
            np.testing.assert_array_equal(
                hugging_face.values(made)[hugging_face.naming_of(made).prefix + name], value
            )
    other = encoders.replace(lifted.config, layer_norm_eps=1e-3)
    report = checkpoints.initialize(type(made)(other), tmp_path / "source")
    assert report.warnings == ("the checkpoint's `layer_norm_eps` is 1e-12, the model's 0.001",)
    heads = encoders.replace(lifted.config, num_attention_heads=4)
    with pytest.raises(ValueError, match="`num_attention_heads` is 4 in the model, 2 in the check"):
        checkpoints.initialize(type(made)(heads), tmp_path / "source")


def test_an_activation_that_roberta_s_head_has_not_is_warned_of(tmp_path):
    shutil.copytree(FOLDER / "roberta", tmp_path / "roberta")
    path = tmp_path / "roberta" / "config.json"
    entries = {**json.loads(path.read_text()), "hidden_act": "relu", "eos_token_id": None}
    path.write_text(json.dumps(entries))
    model = checkpoints.lift(tmp_path / "roberta", "big_bird", max_length=31)
    assert (model.config.hidden_act, model.config.sep_token_id) == ("relu", 2)
    (warning,) = checkpoints.initialize(model, tmp_path / "roberta").warnings
    assert warning.startswith("RoBERTa's head for masked tokens has 'gelu'")


def test_what_is_not_lifted_is_named(tmp_path):
    write(tmp_path / "bert", "bert")
    with pytest.raises(ValueError, match="one of 'longformer', 'big_bird'. Received: 'modernbert'"):
        checkpoints.lift(tmp_path / "bert", "modernbert")
    path = tmp_path / "bert" / "config.json"
    for kind in ("albert", "longformer"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "model_type": kind}))
        with pytest.raises(ValueError, match=f"config.json: what can be .* Received: '{kind}'"):
            checkpoints.lift(tmp_path / "bert", "longformer")


@pytest.mark.parametrize(
    "model_type, name", [("longformer", "Longformer"), ("big_bird", "BigBird")]
)
def test_a_class_of_another_system_says_how_a_bert_becomes_its_model(model_type, name):
    for as_class in (f"{name}Model", f"{name}ForSequenceClassification"):
        words = (
            f"roberta' is of a BERT. {as_class} loads a {name}Model: write one with "
            rf"`checkpoints.lift\('.*roberta', '{model_type}'\).save_pretrained\(folder\)`"
        )
        with pytest.raises(ValueError, match=words):
            getattr(etcmodel, as_class).from_pretrained(FOLDER / "roberta")
