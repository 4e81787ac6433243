"""Writes a model's forward pass as an ONNX file, which runtimes other than TensorFlow compute."""

import numpy as np
import tensorflow as tf

from etcmodel import atomic_files, extras
from etcmodel.models import conveniences, encoders
from etcmodel.ops import compilation

OPSET = 18  # The newest that tf2onnx writes.
TOLERANCE = 1e-4
WEIGHTS = ("float32", "int8")  # How a file has kernels and tables.


def export_onnx(model, path, batch, weights="float32"):
    """Writes an ONNX file that computes the model's outputs from features of fixed shapes.

    The file's inputs have the names, shapes and dtypes of the batch; its outputs the names of the
    model's, or `logits` for a single one without a name, `output_0` … for several. ONNX has no
    assertions: ids and lengths that the model would refuse are not checked in the file. Before it
    gets its name, onnxruntime computes the batch with it, and the outputs must be TensorFlow's.

    Args:
        model: `Encoder`, `EncoderWithHead`, an encoder-decoder, or another Keras 2 model that is
            called with a dict of features and `training=False`.
        path: str. A local file, which must not exist.
        batch: dict of name to array, such as what `model.processor` makes: an example of the input.
            Its shapes are those of all inputs.
        weights: str. "int8" quantizes the file after this check, by onnxruntime's
            `quantize_dynamic`: kernels get a scale for each column and tables one, in a quarter of
            the bytes, and products with kernels are of integers, whose scale each call gives, for
            all texts of the batch: one with large values makes the others less exact.
    Returns:
        float. The largest difference of an output from TensorFlow's: at most 1e-4, with int8 any.
    Raises:
        ValueError: if there is something at `path`, `weights` is unknown, ONNX lacks an operation
            of the model, the outputs differ, or those of int8 are not finite.
        MissingExtraError: without the extra `onnx`.

    >>> from etcmodel import serving
    >>> model = etcmodel.from_pretrained("my_model")
    >>> batch = model.processor(["It is good."])
    >>> serving.export_onnx(model, "my_model.onnx", batch) < 1e-4
    True
    """
    with extras.needed("onnx"):
        import onnxruntime  # noqa: F401
        import tf2onnx  # noqa: F401  Missed before the model is traced.

    if weights not in WEIGHTS:
        raise ValueError(f"`weights` must be one of {', '.join(WEIGHTS)}. Received: {weights!r}")
    atomic_files.check_free(path)
    batch = {name: np.asarray(value) for name, value in batch.items()}
    serialized, wanted = _converted(model, batch)
    with atomic_files.new_file(str(path)) as unfinished:
        with open(unfinished, "wb") as file:
            file.write(serialized)
        try:
            found = _outputs(unfinished, batch)
        except Exception as error:  # tf2onnx leaves operations in that ONNX does not have.
            told = f"onnxruntime cannot compute this model: {error}{advice(model)}"
            raise ValueError(told) from error
        difference = largest_difference(found, wanted, "onnxruntime")
        if weights == "int8":
            _quantize(unfinished)
            found = _outputs(unfinished, batch)
            if not all(np.isfinite(x).all() for x in found.values()):
                raise ValueError("Outputs of weights of int8 are not finite. No file was written.")
            difference = largest_difference(found, wanted, "onnxruntime", np.inf)
        return difference


def _outputs(path, batch):
    """What onnxruntime computes with a file: dict of name to array."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    used = {x.name for x in session.get_inputs()}
    names = [x.name for x in session.get_outputs()]
    found = session.run(names, {name: x for name, x in batch.items() if name in used})
    return dict(zip(names, found, strict=True))


def _quantize(path):
    """Replaces a file by one with weights of int8."""
    import onnx
    from onnxruntime import quantization

    graph = onnx.load(path).graph
    ranks = {x.name: len(x.dims) for x in graph.initializer}
    # onnxruntime takes scales of columns for matrices alone, not for tables of a matrix a head.
    left = [x.name for x in graph.node if any(ranks.get(name, 0) > 2 for name in x.input)]
    # Of 7 bits: with 8, processors without instructions for these cut off sums in silence.
    options = {"per_channel": True, "reduce_range": True}
    quantization.quantize_dynamic(path, path, nodes_to_exclude=left, **options)


def _converted(model, batch):
    """The content of the file, and TensorFlow's outputs: bytes, dict of name to array."""
    import tf2onnx

    specs = [tf.TensorSpec(x.shape, x.dtype, name) for name, x in batch.items()]

    @tf.function
    def outputs_of(*features):
        return forward(model, dict(zip(batch, features, strict=True)))

    with compilation.fusion_scope("never"):
        outputs = outputs_of(*map(tf.constant, batch.values()))
        try:
            proto, _ = tf2onnx.convert.from_function(
                outputs_of,
                input_signature=specs,
                opset=OPSET,
                custom_op_handlers={"Erfc": (_erfc, [])},
            )
        except Exception as error:  # Of whatever kind tf2onnx has.
            raise ValueError(f"tf2onnx cannot convert this model: {error}") from error
    return proto.SerializeToString(), {name: x.numpy() for name, x in outputs.items()}


def largest_difference(found, wanted, runtime, tolerance=TOLERANCE):
    """The largest difference of outputs, dicts of arrays, from TensorFlow's: float.

    Raises:
        ValueError: naming the runtime and the output, if it is more than the tolerance.
    """
    most = 0.0
    for name, value in wanted.items():
        difference = float(np.max(np.abs(found[name] - value), initial=0.0))
        if not difference <= tolerance:
            raise ValueError(
                f"{runtime}'s {name!r} differs from TensorFlow's by {difference:.3g}, more than "
                f"{tolerance:g}. No file was written."
            )
        most = max(most, difference)
    return most


def advice(model):
    """What to do if a model cannot be converted: str, "" if nothing is known."""
    config = getattr(getattr(model, "encoder", model), "config", None)
    if getattr(config, "max_global_tokens", 0) is not None:
        return ""
    return " Set `max_global_tokens` in the model's config.json, which is needed here."


def forward(model, features):
    """The outputs of a model that are there, by the names of `export_onnx`: dict of tensors."""
    if isinstance(model, conveniences.EncoderConveniences):
        features = model.structure(features)
    is_encoder = isinstance(model, encoders.Encoder)
    outputs = model(**features, training=False) if is_encoder else model(features, training=False)
    if isinstance(outputs, dict):
        return {name: x for name, x in outputs.items() if x is not None}
    flat = [x for x in tf.nest.flatten(outputs) if x is not None]
    names = ["logits"] if len(flat) == 1 else [f"output_{index}" for index in range(len(flat))]
    return dict(zip(names, flat, strict=True))


def _erfc(context, node, name, args):
    """1 - erf(x), in GELU: tf2onnx and ONNX have no other complement."""
    (source,), (output,) = node.input, node.output
    dtype, shape = context.get_dtype(output), context.get_shape(output)
    context.remove_node(node.name)
    erf = context.make_node("Erf", [source], dtypes=[dtype], shapes=[shape])
    one = context.make_const(f"{name}_one", np.ones([], np.float32))
    parts = [one.output[0], erf.output[0]]
    return context.make_node("Sub", parts, outputs=[output], dtypes=[dtype], shapes=[shape])
