"""The cases of whole GMATs: weights set by name, and results compared."""

import numpy as np
import tensorflow as tf

from etcmodel.models.gmat import GmatConfig, GmatModel
from tests.reference.gmat_arrays import arrays_of, assert_close
from tests.reference.gmat_attention import assign, attention_weights

_INPUTS = {
    "pos": "positions",
    "pos_ln": "normalized_positions",
    "pos_type_ln": "normalized_positions_and_types",
}


def model_of(config, arrays):
    """A `GmatModel` of a case."""
    model = GmatModel(
        GmatConfig(
            vocab_size=config["vocab"],
            hidden_size=config["hidden"],
            num_hidden_layers=config["layers"],
            num_attention_heads=config["heads"],
            intermediate_size=config["intermediate"],
            hidden_act={"erf": "gelu", "tanh": "gelu_new"}[config["act"]],
            chunk_size=config["chunk"],
            num_memory_tokens=config["memory"],
            position_period=config["remainder_table"],
            num_position_quotients=config["quotient_table"] if config["pos_q"] else 0,
            type_vocab_size=len(arrays["e_type"]),
            memory_type_id=config["memory_type"],
            normalizes_memory=config["memory_ln"],
            has_own_memory_projections=config["untied"],
            has_own_memory_output=config["untied_out"],
            num_compression_layers=config.get("nc", 0),
            num_memory_layers=config.get("nm", 0),
            decompressor_input=_INPUTS[config.get("decompress_input", "pos")],
            layer_norm_eps=config["eps"],
        )
    )
    model.get_token_embedding_table()  # Builds it.
    _assign_embeddings(model.embeddings, arrays)
    layers = [(stack, index) for stack in model.stacks for index in range(stack.num_hidden_layers)]
    for number, (stack, index) in enumerate(layers):
        _assign_layer(stack, index, arrays, f"l{number}_")
    return model


def _assign_embeddings(embeddings, arrays):
    tables = {
        "word": embeddings.word_embeddings,
        "pos_r": embeddings.position_embeddings,
        "pos_q": embeddings.quotient_embeddings,
        "type": embeddings.token_type_embeddings,
        "mem": embeddings.memory_embeddings,
    }
    found = {name: layer.embedding_table for name, layer in tables.items() if layer is not None}
    assign(found, arrays, "e_")
    assign({"g": embeddings.layer_norm.gamma, "b": embeddings.layer_norm.beta}, arrays, "e_ln_")


def _assign_layer(stack, index, arrays, prefix):
    attention, feed_forward = stack.attention_layers[index], stack.feed_forward_layers[index]
    weights = attention_weights(attention.inner_layer)
    for name, variable in weights.items():
        # Layers of the memory alone have its projections, if it has some.
        own = f"{prefix}m{name}"
        name = own if stack.of == ("memory",) and own in arrays else prefix + name
        variable.assign(arrays[name])
    for number, dense in enumerate(feed_forward.inner_layer.layers, 1):
        assign({"w": dense.kernel, "b": dense.bias}, arrays, f"{prefix}f{number}_")
    for number, block in enumerate((attention, feed_forward), 1):
        norm = block.normalization_layers[0]
        assign({"g": norm.gamma, "b": norm.beta}, arrays, f"{prefix}ln{number}_")


def inputs_of(arrays):
    """The arguments of a model's call."""
    names = {
        "ids": "input_ids",
        "types": "token_type_ids",
        "main_mask": "attention_mask",
        "memory_ids": "memory_ids",
    }
    return {ours: tf.constant(arrays[name]) for name, ours in names.items() if name in arrays}


def check_encoder(case, is_compiled=False):
    arrays = arrays_of(case)
    model, inputs = model_of(case["config"], arrays), inputs_of(arrays)
    hidden, memory, extras = _states(model, is_compiled or None)(**inputs)
    rows = arrays["main_mask"] > 0
    for number, found in enumerate(extras["hidden_states"]):
        assert_close(found, arrays["main_layers"][:, number], rows=rows, name=f"layer {number}")
    plain = model(**inputs)[0].numpy()
    np.testing.assert_allclose(plain[rows], hidden.numpy()[rows], atol=1e-5)
    if case["config"]["memory"]:
        wanted = np.moveaxis(arrays["memory_layers"], 1, 0)
        for found, value in zip(extras["memory_states"], wanted, strict=True):
            assert_close(found, value)
    else:
        assert memory is None


def _states(model, is_compiled):
    return tf.function(
        lambda **x: model(**x, output_hidden_states=True),
        jit_compile=is_compiled,
        autograph=False,
    )


def check_compression(case, is_compiled=False):
    config, arrays = case["config"], arrays_of(case)
    model, inputs = model_of(config, arrays), inputs_of(arrays)
    call = _states(model, True) if is_compiled else _states(model, None).python_function
    hidden, memory, extras = call(**inputs)
    states = extras["memory_states"]
    assert len(states) == config["layers"] + 1
    compressed, rows = config["nc"], arrays["main_mask"] > 0
    assert_close(states[compressed], arrays["memory_compressed"])
    assert_close(states[compressed + config["nm"]], arrays["memory_processed"])
    found = extras["hidden_states"][compressed + 1]
    wanted = np.broadcast_to(arrays["decompressor_input"], found.shape)
    assert_close(found, wanted, rows=rows)
    assert_close(hidden, arrays["main_final"], rows=rows)
    assert_close(memory, arrays["memory_final"])
    stored = model.compress(**inputs)
    assert_close(stored, arrays["memory_processed"])
    again = model.decompress(
        stored, inputs["attention_mask"], token_type_ids=inputs["token_type_ids"]
    )
    assert_close(again[0], arrays["main_final"], rows=rows)


def check_positions(case):
    config, arrays = case["config"], arrays_of(case)
    tables = {name: arrays[f"{name}_table"] for name in ("source", "remainder", "quotient")}
    np.testing.assert_array_equal(
        tables["source"][config["source_offset"] :], tables["remainder"]
    )  # As lifting takes them.
    model = GmatModel(
        GmatConfig(
            vocab_size=5,
            hidden_size=4,
            num_attention_heads=1,
            num_hidden_layers=1,
            intermediate_size=4,
            num_memory_tokens=0,
            position_period=config["period"],
            num_position_quotients=config["quotients"],
        )
    )
    model.get_token_embedding_table()
    embeddings = model.embeddings
    embeddings.position_embeddings.embedding_table.assign(tables["remainder"])
    embeddings.quotient_embeddings.embedding_table.assign(tables["quotient"])
    assert_close(embeddings.positions(tf.constant(arrays["positions"])), arrays["embedding"])
    assert model.config.max_length == config["limit"]
    for position in (config["limit"], -1):
        try:
            model(np.zeros([1, 1], int), position_ids=np.array([[position]]))
        except ValueError as error:
            assert "`position_ids` must be at least 0 and below 32768" in str(error)
        else:
            raise AssertionError(f"position {position} is taken")
