"""Measures one of our systems for `peers`, as `worker` does ETC.

Its weights are written into a folder of Hugging Face's form, for a model of theirs to read.
"""

import functools
import json
import sys

from etcmodel.tools.benchmarks import worker
from etcmodel.tools.benchmarks.turn_loop import serve

# Of token embeddings, which are also the output layer: random weights prefer some tokens so much
# then that beams differ by more than rounding, and layers do not make rounding larger.
_DECIDED_SCALE = 20.0


def encoder_phases(kind, config, folder, inputs, output):
    """A `LongformerModel`, `BigBirdModel` or `ModernBertModel` on the inputs of a file.

    Args:
        kind: "longformer", "bigbird" or "modernbert".
        config: dict, of its config.
        folder: str. Where the random weights go; '': nowhere.
        inputs: str. An .npz file with arguments of the model by name; global tokens are
            Longformer's alone.
        output: str. A .npy file for the last hidden state.
    Returns:
        dict of functions without arguments: phases of `turn_loop.serve`.
    """
    import numpy as np
    import tensorflow as tf
    import tf_keras

    import etcmodel

    prefix = {"longformer": "Longformer", "bigbird": "BigBird", "modernbert": "ModernBert"}[kind]
    options = {} if kind == "modernbert" else {"add_pooling_layer": False}
    tf_keras.utils.set_random_seed(0)
    made = getattr(etcmodel, f"{prefix}Config")(**config)
    model = getattr(etcmodel, f"{prefix}Model")(made, **options)
    model.build(None)
    if folder:
        model.save_pretrained(folder)
    arguments = {name: tf.constant(x, tf.int32) for name, x in np.load(inputs).items()}
    del arguments["labels"]
    if kind != "longformer":
        del arguments["global_attention_mask"]
    is_real = arguments["attention_mask"].numpy()[..., np.newaxis]

    def encode(training):
        outputs = model(arguments, training=training)
        return [outputs[0] if isinstance(outputs, tuple) else outputs]

    def write():
        np.save(output, tf.function(lambda: encode(training=False))()[0].numpy() * is_real)

    return {**worker.graph_phases(worker.encoder_functions(encode, model)), "write": write}


def generation_phases(kind, config, folder, inputs, output, generation):
    """An encoder-decoder that generates from the inputs of a file.

    Args:
        kind: "led", "bigbird_pegasus", "longt5" or "pegasus_x".
        config: dict, of its config.
        folder: str. Where the random weights go.
        inputs: str. An .npz file with arguments of `generate` by name, and `labels`.
        output: str. A .npy file for the sequences.
        generation: dict. Further arguments of `generate`.
    Returns:
        dict of functions without arguments.
    """
    import numpy as np
    import tensorflow as tf
    import tf_keras

    import etcmodel

    model_name, config_name = {
        "led": ("LedForConditionalGeneration", "LedConfig"),
        "bigbird_pegasus": ("BigBirdPegasusForConditionalGeneration", "BigBirdPegasusConfig"),
        "longt5": ("LongT5Model", "LongT5Config"),
        "pegasus_x": ("PegasusXForConditionalGeneration", "PegasusXConfig"),
    }[kind]
    tf_keras.utils.set_random_seed(0)
    model = getattr(etcmodel, model_name)(getattr(etcmodel, config_name)(**config))
    model.build(None)
    table = model.get_token_embedding_table()
    table.assign(_DECIDED_SCALE * table)
    model.save_pretrained(folder)
    arguments = {name: tf.constant(x, tf.int32) for name, x in np.load(inputs).items()}
    if kind != "led":
        del arguments["global_attention_mask"]
    labels = arguments.pop("labels")

    def generate():
        return model.generate(**arguments, **generation)["sequences"].numpy()

    def encode():
        return [model.encoder(**arguments, training=False)["last_hidden_state"]]

    def train():
        with tf.GradientTape() as tape:
            loss = model(**arguments, labels=labels, training=True)["loss"]
        gradients = tape.gradient(loss, model.trainable_variables)
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    return {
        **worker.graph_phases({"encode": encode, "train": train}),
        "generate": generate,
        "write": lambda: np.save(output, generate()),
    }


def gmat_phases(config, inputs):
    """A `GmatModel` on the ids of a file.

    Args:
        config: dict, of a `GmatConfig`.
        inputs: str. An .npz file with `input_ids` and `attention_mask`.
    Returns:
        dict of functions without arguments: phases of `turn_loop.serve`.
    """
    import numpy as np
    import tensorflow as tf

    from etcmodel.models.gmat import GmatConfig, GmatModel

    model = GmatModel(GmatConfig(**config))
    arrays = np.load(inputs)
    arguments = [tf.constant(arrays[name], tf.int32) for name in ("input_ids", "attention_mask")]

    def encode(training):
        return model(*arguments, training=training)[:2]

    encode(training=False)
    return worker.graph_phases(worker.encoder_functions(encode, model))


def text_encoder_phases(folder, documents, max_length, batch_size, output):
    """A `TextEncoder` on the texts of a file.

    Args:
        folder: str. Of sentence-transformers.
        documents: str. JSON lines with a 'text' each.
        max_length: int. Tokens that texts are cut to.
        batch_size: int.
        output: str. A .npy file for the vectors.
    Returns:
        dict of functions without arguments.
    """
    import numpy as np

    import etcmodel

    with open(documents, encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    encoder = etcmodel.TextEncoder(folder, max_length=max_length)

    def encode():
        return encoder.encode(texts, batch_size=batch_size)

    return {"encode": encode, "write": lambda: np.save(output, encode())}


_MAKERS = {
    "text_encoder": text_encoder_phases,
    **{
        kind: functools.partial(encoder_phases, kind)
        for kind in ("longformer", "bigbird", "modernbert")
    },
    **{
        kind: functools.partial(generation_phases, kind)
        for kind in ("led", "bigbird_pegasus", "longt5", "pegasus_x")
    },
    "gmat": gmat_phases,
}


def main(argv):
    """Arguments: kind, then its settings as JSON."""
    serve(_MAKERS[argv[1]](**json.loads(argv[2])))


if __name__ == "__main__":
    main(sys.argv)
