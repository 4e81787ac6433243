"""Writes a model's forward pass, or a step of its training, as StableHLO for other runtimes."""

import os
import re

import numpy as np
import safetensors.numpy
import tensorflow as tf
from tensorflow.compiler.mlir.stablehlo import stablehlo
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.eager.polymorphic_function import compiler_ir, polymorphic_function

from etcmodel import __version__, atomic_files
from etcmodel.models.seq2seq import generating
from etcmodel.ops import compilation
from etcmodel.serving import onnx_file

# Operations of XLA alone, and calls of functions that TensorFlow brings.
_NOT_PORTABLE = re.compile(r'= "?((?:mhlo|chlo)\.\w+|stablehlo\.custom_call @[\w.]+)')
# A value as it is, which TensorFlow puts around what loops begin with.
_COPY = re.compile(r"= mhlo\.copy (%\S+) : (tensor<[^>]*>)")
_CALL_VERSION = 9  # Of the operation that runs a module: with a list of platforms.


def step(model, features):
    """The loss of a model, and its gradients: what a step of training gives to the optimizer.

    There is no dropout, so that the values are the same wherever they are computed.

    Args:
        model: see `export_stablehlo`; built.
        features: dict of tensors. With `labels`, the loss is the model's own, that of an
            encoder-decoder or a head's `default_loss`; otherwise it is the mean square of each
            output of floats, added up.
    Returns:
        dict: `loss`, float32 scalar, and `gradients/<name of the weight>`, dense.
    """
    weights = {name: x for name, x in _weights_of(model).items() if x.trainable}
    with tf.GradientTape() as tape:
        loss = _loss(model, dict(features))
    gradients = tape.gradient(loss, list(weights.values()), unconnected_gradients="zero")
    dense = [tf.convert_to_tensor(x) for x in gradients]  # Those of tables have rows.
    return {"loss": loss, **dict(zip([f"gradients/{x}" for x in weights], dense, strict=True))}


def _loss(model, features):
    own = hasattr(model, "default_loss") and "labels" in features
    labels = features.pop("labels") if own else None
    outputs = onnx_file.forward(model, features)
    if "loss" in outputs:
        return outputs["loss"]
    if own:
        return model.default_loss()(labels, outputs["logits"])
    floats = [x for x in tf.nest.flatten(outputs) if x.dtype.is_floating]
    return tf.add_n([tf.reduce_mean(tf.square(tf.cast(x, tf.float32))) for x in floats])


def generate(model, features):
    """The sequences that an encoder-decoder generates, by the settings of its `generation_config`.

    Args:
        model: a built `models.seq2seq.generating.Generating`.
        features: dict of tensors, as for `generate`.
    Returns:
        dict: `sequences`, int32 [batch * num_return_sequences, max_length], padded after the end
        token, and with beams `sequences_scores`.
    Raises:
        ValueError: if the model generates nothing, or see `generate`.
    """
    if not isinstance(model, generating.Generating):
        raise ValueError(f"`generate` needs an encoder-decoder. Received: {type(model).__name__}")
    outputs, prompt = model.generate(features), features.get("decoder_input_ids")
    length = 1 if prompt is None else prompt.shape[1]
    settings = model.generation_settings(prompt_length=length)
    sequences = outputs["sequences"]  # As long as the longest, except under XLA.
    padding = tf.fill([tf.shape(sequences)[0], settings.max_length], settings.pad_token_id)
    padded = tf.concat([sequences, padding], axis=1)[:, : settings.max_length]
    return {**outputs, "sequences": padded}


COMPUTATIONS = {"forward": onnx_file.forward, "step": step, "generate": generate}


def export_stablehlo(model, directory, batch, what="forward"):
    """Writes a folder that computes a model's outputs, or a step, from features of fixed shapes.

    The folder has

    - `module.mlirbc`: a portable artifact of StableHLO, bytecode of MLIR, with one function `main`;
    - `weights.safetensors`: the weights by the names of the model's variables;
    - `inputs.safetensors` and `outputs.safetensors`: the batch, and what TensorFlow made of it;
    - `manifest.json`: `arguments` and `outputs` of `main` in their order, each with `name`, `dtype`
      and `shape`, the arguments also with the `file` that has their values; `what`;
      `stablehlo_version`, which a runtime must have or be newer than; and the versions that wrote
      it.

    StableHLO has no assertions: ids and lengths that the model would refuse are not checked. Before
    the folder gets its name, XLA computes the batch by its files on the CPU, and the outputs must
    be TensorFlow's.

    Args:
        model: `Encoder`, `EncoderWithHead`, an encoder-decoder, or another Keras 2 model that is
            called with a dict of features and `training=False`.
        directory: str. A local folder, which must not exist.
        batch: dict of name to array, such as what `model.processor` makes: an example of the input.
            Its shapes are those of all inputs.
        what: str. "forward"; "step", the loss and the gradient of each weight: see `step`; or, of
            an encoder-decoder, "generate", the sequences: see there.
    Returns:
        float. The largest difference of an output from TensorFlow's, at most 1e-4.
    Raises:
        ValueError: if there is something at `directory`, `what` is unknown, XLA cannot compile the
            model, StableHLO lacks an operation of it, or the outputs differ.

    >>> from etcmodel import serving
    >>> model = etcmodel.from_pretrained("my_model")
    >>> batch = model.processor(["It is good."])
    >>> serving.export_stablehlo(model, "my_stablehlo", batch) < 1e-4
    True
    """
    if what not in COMPUTATIONS:
        raise ValueError(f"`what` must be one of {', '.join(COMPUTATIONS)}. Received: {what!r}")
    atomic_files.check_free(directory)
    batch = {name: np.asarray(value) for name, value in batch.items()}
    wanted = _outputs_of_tensorflow(model, batch, what)
    artifact, weights = _lowered(model, batch, what)
    arguments = {**batch, **weights}
    found = _outputs_of_xla(artifact, arguments, wanted)
    difference = onnx_file.largest_difference(found, wanted, "XLA")
    with atomic_files.new_folder(str(directory)) as unfinished:
        with open(os.path.join(unfinished, "module.mlirbc"), "wb") as file:
            file.write(artifact)
        for name, values in (("weights", weights), ("inputs", batch), ("outputs", wanted)):
            with open(os.path.join(unfinished, f"{name}.safetensors"), "wb") as file:
                file.write(safetensors.numpy.save(values))
        path = os.path.join(unfinished, "manifest.json")
        atomic_files.write_json(path, _manifest(batch, weights, wanted, what))
    return difference


def _manifest(batch, weights, wanted, what):
    files = {"inputs.safetensors": batch, "weights.safetensors": weights}
    return {
        "what": what,
        "stablehlo_version": stablehlo.get_current_version(),
        "versions": {"etcmodel": __version__, "tensorflow": tf.__version__},
        "arguments": [
            {**_described(name, x), "file": file}
            for file, values in files.items()
            for name, x in values.items()
        ],
        "outputs": [_described(name, x) for name, x in wanted.items()],
    }


def _described(name, value):
    return {"name": name, "dtype": value.dtype.name, "shape": list(value.shape)}


def _weights_of(model):
    """dict of name to variable; ValueError if two have one name."""
    found = {}
    for variable in model.weights:
        name = variable.name.partition(":")[0]
        if found.setdefault(name, variable) is not variable:
            raise ValueError(f"Two weights are called {name!r}: name the layers that own them.")
    return found


def _outputs_of_tensorflow(model, batch, what):
    """dict of name to array, in the order of a module's outputs."""
    with compilation.fusion_scope("never"):
        (_loss if what == "step" else COMPUTATIONS[what])(model, dict(batch))  # Builds it.
        compute = tf.function(lambda x: COMPUTATIONS[what](model, x), autograph=False)
        outputs = compute({name: tf.constant(x) for name, x in batch.items()})
    return {name: np.asarray(outputs[name]) for name in sorted(outputs)}


def _lowered(model, batch, what):
    """The artifact, and the arguments of `main` after the batch: bytes, dict of name to array."""
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in batch.values()]

    @tf.function(jit_compile=True, autograph=False)
    def compute(*features):
        return COMPUTATIONS[what](model, dict(zip(batch, features, strict=True)))

    with polymorphic_function.OptionalXlaContext(True):  # As if it were called.
        traced = compute.get_concrete_function(*specs)
    try:
        lower = compiler_ir.from_concrete_function(traced, specs)
        text = lower(stage="stablehlo", platform_name="CPU")
    except Exception as error:  # Of whatever kind TensorFlow has.
        told = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"XLA cannot compile this model: {told}{onnx_file.advice(model)}"
        ) from error
    text = _COPY.sub(r"= stablehlo.reshape \1 : (\2) -> \2", text)
    if lacking := sorted({*_NOT_PORTABLE.findall(text)}):
        raise ValueError(f"This model has what StableHLO lacks: {', '.join(lacking)}")
    artifact = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version())
    named = {id(x.handle): (name, x) for name, x in _weights_of(model).items()}
    captured = [named[id(x)] for x in traced.captured_inputs]
    return artifact, {name: variable.numpy() for name, variable in captured}


def _outputs_of_xla(artifact, arguments, wanted):
    """dict of name to array: what the module makes of these arguments on the CPU."""

    @tf.function(jit_compile=True, autograph=False)
    def call(*values):
        return gen_xla_ops.xla_call_module(
            values,
            version=_CALL_VERSION,
            module=artifact,
            Sout=[x.shape for x in wanted.values()],
            Tout=[x.dtype for x in wanted.values()],
            platforms=["CPU"],
        )

    with tf.device("CPU:0"):
        values = [*map(tf.constant, arguments.values())]
        outputs = call.get_concrete_function(*values)(*values)
    return {name: x.numpy() for name, x in zip(wanted, outputs, strict=True)}
