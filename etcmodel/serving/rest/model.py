"""The server's view of a model: signatures, and functions from arrays to arrays."""

import dataclasses
import os

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.protobuf import meta_graph_pb2

from etcmodel import bounded_json, extras
from etcmodel.serving import saved_model
from etcmodel.serving.rest.codec import DEFAULT_SIGNATURE, Signature, TensorInfo
from etcmodel.serving.rest.errors import RequestError
from etcmodel.serving.rest.work import Windows
from etcmodel.text.processor_config import ProcessorConfig

with extras.needed("serve"):
    import tensorflow_text  # noqa: F401  Text exports need its operations to load.

    from etcmodel.serving.text import export

_ADVICE = "Export again."
EMBED = "embed"  # The signature of vectors.


class _Served:
    """What the server says of a model: its `name`, `version` and `definitions`."""

    def status(self):
        """The JSON of TensorFlow Serving's `GetModelStatusResponse`."""
        status = {"error_code": "OK", "error_message": ""}
        state = {"version": self.version, "state": "AVAILABLE", "status": status}
        return {"model_version_status": [state]}

    def metadata(self):
        """The JSON of TensorFlow Serving's metadata response about signatures."""
        definitions = {
            name: json_format.MessageToDict(
                definition,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            for name, definition in self._definitions.items()
        }
        return {
            "model_spec": {"name": self.name, "signature_name": "", "version": self.version},
            "metadata": {"signature_def": {"signature_def": definitions}},
        }


class ServedModel(_Served):
    """A SavedModel with signatures.

    Args:
        directory: an export, or a directory of exports named by numbers; the highest is used.
        name: str. The model's name in URLs.
    Attributes:
        version: str. The number in the export's folder name; "1" if there is none.
        loaded: the SavedModel, as TensorFlow loads it.
        signatures: dict of name to `Signature`.
        texts: `Texts` of a text export; None for others.
        windows: `work.Windows` of an export that splits long texts into windows; None for others.
    Raises:
        ValueError: if there is no export, or it is damaged or has no signature.

    >>> from etcmodel.serving import rest
    >>> model = rest.ServedModel("my_export", name="reviews")
    >>> sorted(model.signatures), model.version
    (['dense_features', 'serving_default'], '1')
    """

    def __init__(self, directory, name="model"):
        self.name = name
        self.directory = saved_model.newest_version(directory)
        folder = os.path.basename(os.path.normpath(self.directory))
        self.version = str(int(folder)) if folder.isdigit() and folder.isascii() else "1"
        self.loaded = saved_model.load(self.directory)
        self._functions = dict(self.loaded.signatures)
        if not self._functions:
            raise ValueError(f"The export in {self.directory!r} has no signature to ask.")
        self.signatures = {
            name: Signature(name, _infos(_inputs(function)), _infos(function.structured_outputs))
            for name, function in self._functions.items()
        }
        metadata = _metadata(self.directory)
        self.texts = metadata and _texts(*metadata)
        self.windows = metadata and _windows(*metadata)
        self._definitions = _definitions(self.directory, self.signatures.keys())

    def __call__(self, signature_name, inputs):
        """The outputs of a signature.

        Args:
            signature_name: str.
            inputs: dict of name to array, as in the signature.
        Returns:
            dict of name to array; strings are bytes.
        Raises:
            tf.errors.OpError: if the model rejects its input.
        """
        function = self._functions[signature_name]
        specs = _inputs(function)
        outputs = function(
            **{name: tf.constant(value, specs[name].dtype) for name, value in inputs.items()}
        )
        return {name: np.asarray(value.numpy()) for name, value in outputs.items()}


class ServedEncoder(_Served):
    """Vectors of texts by a `TextEncoder`.

    The signature `embed` takes strings `text` [num_texts]. It returns `vector`, float32 [num_texts,
    size]; and int32 `num_tokens` and `num_cut` [num_texts], the tokens that were read, and those of
    the text that were cut off. Each of the encoder's prompts has a signature `embed_NAME`, whose
    texts begin with it. `serving_default` is `embed`.

    Args:
        encoder: `TextEncoder`.
        name: str. The model's name in URLs.
    Attributes: as those of `ServedModel`, if there are any.

    >>> from etcmodel.serving import rest
    >>> model = rest.ServedEncoder(etcmodel.TextEncoder("my_bert"))
    >>> outputs = model("embed", {"text": np.array([b"A good book."], object)})
    >>> outputs["vector"].shape, outputs["num_tokens"]
    ((1, 8), array([6], dtype=int32))
    """

    version, texts, windows = "1", None, None

    def __init__(self, encoder, name="model"):
        self.name, self.directory = name, encoder.folder
        self._encoder = encoder
        self._prompts = dict.fromkeys((DEFAULT_SIGNATURE, EMBED))
        self._prompts |= {f"{EMBED}_{prompt}": prompt for prompt in encoder.prompts}
        count = TensorInfo(np.dtype(np.int32), (None,))
        inputs = {"text": TensorInfo(np.dtype(object), (None,))}
        outputs = {"vector": TensorInfo(np.dtype(np.float32), (None, encoder.size))}
        outputs |= {"num_tokens": count, "num_cut": count}
        self.signatures = {name: Signature(name, inputs, outputs) for name in self._prompts}
        self._definitions = {x: _definition(inputs, outputs) for x in self.signatures}

    def __call__(self, signature_name, inputs):
        """The outputs of a signature; see `ServedModel`.

        Raises:
            RequestError: 400, if a text is not UTF-8, or the folder leaves prompts out of pooling.
        """
        try:
            texts = [text.decode() for text in inputs["text"]]
        except UnicodeDecodeError:
            raise RequestError(400, "A `text` is not UTF-8.") from None
        prompt = self._prompts[signature_name]
        try:
            found = self._encoder.encode_counted(
                texts, max(len(texts), 1), show_progress=False, prompt=prompt
            )
        except ValueError as error:  # Of a prompt that the folder forbids to pool.
            raise RequestError(400, str(error)) from None
        return {"vector": found.vectors, "num_tokens": found.num_tokens, "num_cut": found.num_cut}


def _definition(inputs, outputs):
    """The `SignatureDef` of dicts of name to `TensorInfo`."""
    definition = meta_graph_pb2.SignatureDef(method_name="tensorflow/serving/predict")
    for infos, found in ((inputs, definition.inputs), (outputs, definition.outputs)):
        for name, info in infos.items():
            found[name].dtype = tf.as_dtype(info.dtype).as_datatype_enum
            found[name].tensor_shape.CopyFrom(tf.TensorShape(info.shape).as_proto())
    return definition


@dataclasses.dataclass(frozen=True)
class Texts:
    """The description of a text export.

    Attributes:
        labels: list of str. The names of a classifier's labels.
        examples: list of dict. Example requests: see `TextOptions.examples`.
        attention: dict with the numbers of "layers" and "heads", and the "layer" of the signature
            `attention`; empty if the export has none.
    """

    labels: list
    examples: list
    attention: dict


def _metadata(directory):
    """(path, content) of a text export's description; None for others."""
    path = os.path.join(directory, "assets", export.METADATA_FILE)
    return (path, bounded_json.read_object(path, _ADVICE)) if tf.io.gfile.exists(path) else None


def _part(path, metadata, name):
    found = metadata.get(name, {})
    if not isinstance(found, dict):
        raise ValueError(f"{path}: `{name}` must be a JSON object. {_ADVICE}")
    return found


def _texts(path, metadata):
    options = _part(path, metadata, "options")
    given = {name: options.get(name) or () for name in ("labels", "examples")}
    try:
        known = export.TextOptions(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error} {_ADVICE}") from None
    attention = _part(path, metadata, "attention")
    if not all(type(x) is int and x >= 0 for x in attention.values()):
        raise ValueError(f"{path}: `attention` must hold whole numbers. {_ADVICE}")
    return Texts(list(known.labels), list(known.examples), attention)


def _windows(path, metadata):
    given = _part(path, metadata, "processor")
    known = {field.name for field in dataclasses.fields(ProcessorConfig)}
    try:  # A later version may have more settings.
        config = ProcessorConfig(**{name: x for name, x in given.items() if name in known})
    except ValueError as error:
        raise ValueError(f"{path}: {error} {_ADVICE}") from None
    if config.stride is None:
        return None
    return Windows(
        config.max_long_len,
        config.stride,
        config.max_global_len,
        num_special=sum(config.num_special(has_question=True, has_text=True)),
        num_global=config.num_fixed_global(num_questions=0, num_tokens=0),
        question_by_token=config.question_globals == "tokens",
    )


def _inputs(function):
    return function.structured_input_signature[1]


def _infos(specs):
    return {
        name: TensorInfo(
            np.dtype(spec.dtype.as_numpy_dtype),
            None if spec.shape.rank is None else tuple(spec.shape),
        )
        for name, spec in specs.items()
    }


def _definitions(directory, names):
    """dict from name to the `SignatureDef` in the file."""
    return {
        name: definition
        for meta_graph in saved_model.read_graphs(directory).meta_graphs
        for name, definition in meta_graph.signature_def.items()
        if name in names
    }
