"""BigBird's files against Hugging Face's, and its seeded blocks."""

import json

import numpy as np
import pytest

import etcmodel
from etcmodel.checkpoints import hugging_face
from etcmodel.ops import block_sparse
from tests.checkpoints import tensor_files
from tests.reference import bigbird_cases, cases

TOPIC = bigbird_cases.TOPIC
NAMES = cases.load_json(TOPIC, "NAMES.json")
CLASSES = [name for name in NAMES if hasattr(etcmodel, name.partition(" ")[0])]


@pytest.mark.parametrize("name", CLASSES)
def test_names_and_shapes_of_files(name):
    wanted = NAMES[name]
    make = pegasus_model if "Pegasus" in name else small_model
    found = hugging_face.values(make(name.partition(" ")[0], wanted))
    assert {key: list(x.shape) for key, x in found.items()} == wanted


def small_model(name, shapes):
    """A model of the class with the sizes that the shapes of its weights show."""
    [prefix] = {key.partition("embeddings.")[0] for key in shapes if "word_embeddings" in key}
    size = {x: shapes[f"{prefix}embeddings.{x}_embeddings.weight"][0] for x in ("word", "position")}
    in_layer = shapes[f"{prefix}encoder.layer.0.intermediate.dense.weight"]
    config = etcmodel.BigBirdConfig(
        vocab_size=size["word"],
        max_position_embeddings=size["position"],
        hidden_size=in_layer[1],
        intermediate_size=in_layer[0],
        num_hidden_layers=2,
        num_attention_heads=2,
        use_bias=f"{prefix}encoder.layer.0.attention.self.query.bias" in shapes,
    )
    labels = [x for key, x in shapes.items() if key.endswith(("out_proj.bias", "classifier.bias"))]
    made = getattr(etcmodel, name)
    named = {"num_labels": labels[0][0]} if labels and name != "BigBirdForMultipleChoice" else {}
    model = made(config, **named)
    if not model.built:
        model.build(None)
    return model


def pegasus_model(name, shapes):
    """Likewise, of an encoder and a decoder."""
    prefix = "" if "shared.weight" in shapes else "model."
    sizes = {
        f"{side}_ffn_dim": shapes[f"{prefix}{side}.layers.0.fc1.weight"][0]
        for side in ("encoder", "decoder")
    }
    vocab_size, d_model = shapes[f"{prefix}shared.weight"]
    config = etcmodel.BigBirdPegasusConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        max_position_embeddings=shapes[f"{prefix}encoder.embed_positions.weight"][0],
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        use_bias=f"{prefix}encoder.layers.0.self_attn.self.query.bias" in shapes,
        **sizes,
    )
    labels = shapes.get("classification_head.out_proj.bias")
    model = getattr(etcmodel, name)(config, **{"num_labels": labels[0]} if labels else {})
    model.build(None)
    return model


@pytest.mark.parametrize("kind", ("bigbird/h_seqcls", "bigbird/h_qa", "pegasus/h_seqcls"))
def test_a_folder_is_saved_with_the_same_names_values_and_settings(kind, tmp_path):
    folder = cases.topic_folder(TOPIC) / kind
    bigbird_cases.model_of(kind).save_pretrained(tmp_path)
    theirs, ours = (folder / "model.safetensors", tmp_path / "model.safetensors")
    assert tensor_files.exact(ours) == tensor_files.exact(theirs)
    theirs, ours = (json.loads((x / "config.json").read_text()) for x in (folder, tmp_path))
    kept = {name: value for name, value in theirs.items() if name in ours}
    assert {name: ours[name] for name in kept} == kept
    assert set(theirs) - set(ours) <= {
        "add_cross_attention",
        "classifier_dropout",
        "decoder_layerdrop",
        "dtype",
        "encoder_layerdrop",
        "is_decoder",
        "transformers_version",
        "use_cache",
    }


def test_seeded_blocks_are_hugging_faces():
    plans = cases.load_json(TOPIC, "plans/plans.json")
    assert plans
    with np.load(cases.resolve(TOPIC, "plans/plans.npz")) as arrays:
        for name, plan in plans.items():
            found = block_sparse.seeded_blocks(
                plan["seed"],
                plan["heads"],
                plan["block_size"],
                plan["num_random_blocks"],
                plan["max_position_embeddings"],
                plan["padded_length"],
            )
            np.testing.assert_array_equal(found, arrays[name], name)
