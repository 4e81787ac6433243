"""Measures one of our systems for `systems`, as `worker` does ETC.

Its weights are written into a folder of Hugging Face's form, for a model of theirs to read.
"""

import json
import sys

from etcmodel.tools.benchmarks import worker


def longformer_functions(config, folder, inputs, output):
    """A `LongformerModel` on the inputs of a file.

    Args:
        config: dict, of a `LongformerConfig`.
        folder: str. Where the random weights go; '': nowhere.
        inputs: str. An .npz file with arguments of the model by name.
        output: str. A .npy file for the last hidden state.
    Returns:
        dict of functions without arguments, see `worker`.
    """
    import numpy as np
    import tensorflow as tf
    import tf_keras

    from etcmodel.models.longformer import LongformerConfig, LongformerModel

    tf_keras.utils.set_random_seed(0)
    model = LongformerModel(LongformerConfig(**config), add_pooling_layer=False)
    model.build(None)
    if folder:
        model.save_pretrained(folder)
    arguments = {name: tf.constant(x, tf.int32) for name, x in np.load(inputs).items()}

    def encode(training):
        return [model(arguments, training=training)[0]]

    def write():
        np.save(output, tf.function(lambda: encode(training=False))()[0].numpy())

    return worker.encoder_functions(encode, model), write


def main(argv):
    """Arguments: kind, then its settings as JSON."""
    functions, write = {"longformer": longformer_functions}[argv[1]](**json.loads(argv[2]))
    worker.serve({**worker.graph_phases(functions), "write": write})


if __name__ == "__main__":
    main(sys.argv)
