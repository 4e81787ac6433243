"""Encoders and heads in Keras 3 models: `etcmodel.keras3.layer(model)`.

etcmodel's models are layers of Keras 2 (`tf_keras`), whose weights Keras 3 does not track. A
`TfKerasLayer` is a Keras 3 layer around one of them. Its `keras.Variable`s wrap the model's own
TensorFlow variables without copies: both Keras versions train and load the same weights.

Import this module before `keras.saving.load_model` reads a file with such a layer.
"""

import contextlib
import functools
import weakref

import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel.layers import base, sublayers
from etcmodel.layers.attention import side_inputs
from etcmodel.models import conveniences, encoders, heads
from etcmodel.ops import gradients
from etcmodel.ops.errors import fail

__all__ = ["TfKerasLayer", "TfKerasLoss", "layer", "loss"]


def _keras():
    """Returns the package `keras`, Keras 3 on TensorFlow; or raises a one-line ImportError."""
    try:
        import keras
    except (ImportError, ValueError) as error:  # A backend is missing, or unknown.
        found = str(error)
    else:
        found = f"Keras {keras.__version__} with the backend {keras.backend.backend()!r}"
        if base.keras_3() and keras.backend.backend() == "tensorflow":
            return keras
    raise ImportError(
        "etcmodel.keras3 needs Keras 3 with the backend TensorFlow: pip install 'keras>=3', and "
        f"set KERAS_BACKEND=tensorflow before Keras is imported. Found: {found}"
    )


keras = _keras()
# The `keras.Variable` of each TensorFlow variable, so that layers that share weights share it.
_ADOPTED = weakref.WeakValueDictionary()
_DENSE = side_inputs.SIDE_INPUT_AXES.keys()  # What an `EtcModel` takes in place of a structure.


def layer(model, *, relation_names=(), name=None, dtype=None, trainable=True):
    """Wraps an encoder or a head as a Keras 3 layer with the same weights.

    Args:
        model: encoder, or model with a head; or another `tf_keras` model around these, which is
            built, registered (`tf_keras.utils.register_keras_serializable`) and called with
            `training`. Weights that it does not train now, such as an `encoder` with
            `trainable = False`, are not trained by the layer either.
        relation_names: see `TfKerasLayer`.
        name: str. Name of the layer; by default the model's.
        dtype: str. The name of the model's dtype policy; by default Keras 3's own,
            `keras.config.dtype_policy()`, which must be that of the model.
        trainable: bool. As in all Keras layers.
    Returns:
        `TfKerasLayer`.
    Raises:
        ValueError: if `model` is not a `tf_keras` layer, has no weights yet, or has another dtype
            policy.

    >>> import keras
    >>> inputs = {"token_ids": keras.Input([None], dtype="int32", name="token_ids")}
    >>> head = etcmodel.from_pretrained("my_model")
    >>> model = keras.Model(inputs, etcmodel.keras3.layer(head)(inputs))
    >>> model.output_shape
    (None, 2)
    """
    if not isinstance(model, tf_keras.layers.Layer):
        fail(f"`model` must be an encoder or a head of etcmodel. Received: {type(model).__name__}")
    policy = _policy_name(model)
    wanted = keras.dtype_policies.get(dtype).name
    if policy != wanted:
        fail(
            f"The model {model.name!r} computes in {policy!r}, and this layer is to compute in "
            f"{wanted!r}. Call `tf_keras.mixed_precision.set_global_policy({wanted!r})` before the "
            f"model is made, or give `dtype={policy!r}`."
        )
    return TfKerasLayer(
        model,
        relation_names=relation_names,
        name=name or model.name,
        dtype=policy,
        trainable=trainable,
    )


def loss(head):
    """Returns a head's default loss, for `compile` of Keras 3.

    Args:
        head: model with a head, whose `default_loss()` is used.
    Returns:
        `TfKerasLoss`, or a dict of them by output name.
    Raises:
        ValueError: if the model has no head.

    >>> head = etcmodel.from_pretrained("my_model")
    >>> round(float(etcmodel.keras3.loss(head)([0, 1], [[9.0, 0.0], [0.0, 9.0]])), 2)
    0.0
    """
    if not isinstance(head, heads.EncoderWithHead):
        fail(f"`head` must be a model with a head of etcmodel. Received: {type(head).__name__}")
    return tf.nest.map_structure(TfKerasLoss, head.default_loss())


@keras.saving.register_keras_serializable(package="etcmodel")
class TfKerasLayer(keras.layers.Layer):
    """A Keras 3 layer that calls a `tf_keras` model and trains its weights; see `layer`.

    Args:
        model: see `layer`.
        relation_names: sequence of str. Names of the relations in the features of an `EtcModel`, in
            the order of their labels (see `models.features`); a head has its own.
        frozen: sequence of str. Names of the weights that are not trained; None for those that the
            model does not train.
        **kwargs: arguments of the Keras layer.
    Call args:
        features: dict of name to int tensor, or token ids [batch, length], as heads take them; for
            an `EtcModel` the features that its heads take, from which masks and structure are
            built, or, with dense masks or labels such as `l2l_att_mask`, all arguments of its call;
            for other encoders the arguments of their call.
        training: bool. Whether to apply dropout.
    Returns:
        The model's outputs: logits of heads, hidden states of encoders.
    Raises:
        ValueError: see the model; also if it has weights created after the layer.

    >>> layer = etcmodel.keras3.layer(etcmodel.from_pretrained("my_model"))
    >>> layer.trainable_variables[0].value is layer.model.trainable_weights[0]
    True
    """

    def __init__(self, model, *, relation_names=(), frozen=None, **kwargs):
        super().__init__(autocast=False, **kwargs)  # Features are ids, which must not be cast.
        if isinstance(model, (conveniences.Pretrained, encoders.Encoder)):
            sublayers.build_sublayer(model, None)
        self.model = model
        self.relation_names = tuple(relation_names)
        # By name, since the order of `weights` depends on which of them are trained.
        weights = {_key(variable): variable for variable in model.weights}
        if not model.built or len(weights) < len(model.weights):
            fail(f"The model {model.name!r} must be built, and its weights need different names.")
        if frozen is None:
            frozen = weights.keys() - set(map(_key, model.trainable_weights))
        self._frozen = sorted(frozen)
        self._by_key = {key: _adopt(x, key not in frozen) for key, x in weights.items()}
        for variable in self._by_key.values():
            self._track_variable(variable)
        self.build(None)

    def call(self, features, training=None):
        if tf.is_tensor(features) and features.dtype.is_floating:  # Cast by a `Sequential`.
            fail(
                "Token ids must be integers: let the model begin with "
                f"`keras.Input([None], dtype='int32')`. Received: {features.dtype.name}"
            )
        if hasattr(features, "items"):  # Inputs may be optional.
            features = {name: x for name, x in features.items() if x is not None}
        call = functools.partial(self._outputs_and_losses, training=training)
        # Otherwise there are no gradients, for which an eager call would keep all tensors.
        if training is not None and training is not False:
            call = functools.partial(_with_summed_gradients, call)
        outputs, losses = call(features)
        if len(self.model.weights) != len(self._by_key):
            fail(f"The model {self.model.name!r} must be called once before the layer is made.")
        self.add_loss(losses)
        return outputs

    def _outputs_and_losses(self, features, training):
        """The model's outputs, and the losses that its layers add."""
        is_named = hasattr(features, "items")
        is_dense = is_named and _DENSE & features.keys()
        if isinstance(self.model, conveniences.EncoderConveniences) and not is_dense:
            features, is_named = self.model.structure(features, self.relation_names), True
        with base.in_keras_3_layer():
            if is_named and not isinstance(self.model, tf_keras.Model):
                outputs = self.model(**features, training=training)
            else:
                outputs = self.model(features, training=training)
        return outputs, self.model.losses

    def compute_output_spec(self, *args, **kwargs):
        try:
            return super().compute_output_spec(*args, **kwargs)
        except ValueError as error:
            # Keras's text around it does not help: the model's message says what is wrong.
            raise error.__context__ or error from None

    def save_own_variables(self, store):
        for key, variable in self._by_key.items():
            store[key] = variable

    def load_own_variables(self, store):
        if differing := self._by_key.keys() ^ {*store.keys()}:
            fail(
                f"The weights of the layer {self.name!r} are not those of the file. Only one of "
                f"both has: {', '.join(sorted(differing)[:3])}"
            )
        for key, variable in self._by_key.items():
            variable.assign(store[key])

    def get_config(self):
        frozen = self._frozen  # All are frozen while the layer is.
        if self.trainable:
            frozen = [key for key, variable in self._by_key.items() if not variable.trainable]
        return {
            **super().get_config(),
            "model": {
                "registered_name": tf_keras.saving.get_registered_name(type(self.model)),
                "config": self.model.get_config(),
            },
            "relation_names": list(self.relation_names),
            "frozen": frozen,
        }

    @classmethod
    def from_config(cls, config):
        given = config["model"]
        model = _registered(given["registered_name"]).from_config(given["config"])
        return super().from_config({**config, "model": model})


@keras.saving.register_keras_serializable(package="etcmodel")
class TfKerasLoss(keras.losses.Loss):
    """A `tf_keras` loss as a Keras 3 loss; see `loss`.

    Args:
        loss: `tf_keras.losses.Loss`, or its dict.
        **kwargs: arguments of the Keras loss.
    Call args:
        y_true, y_pred: as for `loss`, whose values Keras 3 weights and reduces.

    >>> loss = etcmodel.keras3.loss(etcmodel.from_pretrained("my_model"))
    >>> round(float(loss([0], [[0.0, 0.0]])), 3)
    0.693
    """

    def __init__(self, loss, **kwargs):
        if isinstance(loss, dict):
            loss = tf_keras.losses.deserialize(loss, use_legacy_format=True)
        super().__init__(**{"name": loss.name, **kwargs})
        self.loss = loss

    def call(self, y_true, y_pred):
        return self.loss.call(y_true, y_pred)

    def get_config(self):
        # In the format without module names; see `_registered`.
        serialized = tf_keras.losses.serialize(self.loss, use_legacy_format=True)
        return {**super().get_config(), "loss": serialized}


def _registered(name):
    """The class of a model, by its registered name in `tf_keras`.

    Not by its module's name, since a file from elsewhere could import any module.
    """
    package, _, class_name = name.rpartition(">")
    if package == "etcmodel":
        getattr(etcmodel, class_name, None)  # Imports the module, which registers it.
    if (found := tf_keras.saving.get_registered_object(name)) is None:
        fail(f"There is no model of the name {name!r}. Import the module that registers it.")
    return found


def _policy_name(model):
    """The name of a model's dtype policy, its encoder's if it is a head."""
    return getattr(model, "encoder", model).dtype_policy.name


def _with_summed_gradients(function, features):
    """Calls `function(features)` so that gradients of variables are tensors, not `IndexedSlices`.

    `tf.IndexedSlices` have a row for each token, even if tokens are equal, and Keras 3's optimizers
    square them one by one: Adam would take other steps than for the gradient, their sum.
    """
    structures = []

    def call(*tensors):
        with tf.GradientTape() as tape:
            sources = [x for x in tensors if x.dtype.is_floating]
            tape.watch(sources)
            structures.append(function(tf.nest.pack_sequence_as(features, tensors)))
        outputs = [x for x in tf.nest.flatten(structures[-1]) if x is not None]

        def gradient(*of_outputs, variables=()):
            found = tape.gradient(outputs, [*sources, *variables], of_outputs)
            found = [x if x is None else tf.convert_to_tensor(x) for x in found]
            of_sources = iter(found[: len(sources)])
            of_tensors = [next(of_sources) if x.dtype.is_floating else None for x in tensors]
            return of_tensors, found[len(sources) :]

        return outputs, gradient

    outputs = iter(gradients.custom_gradient(call)(*tf.nest.flatten(features)))
    return tf.nest.map_structure(lambda x: x if x is None else next(outputs), structures[-1])


def _adopt(variable, is_trainable):
    """The `keras.Variable` whose value is a TensorFlow variable, at the same path."""
    if (adopted := _ADOPTED.get(variable.ref())) is None:
        *scopes, name = _path(variable).split("/")
        with contextlib.ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(keras.name_scope(scope))
            adopted = keras.Variable(variable, autocast=False, name=name)
        if adopted.value is not variable:
            fail(f"Keras {keras.__version__} copies variables; a later one is needed.")
        _ADOPTED[variable.ref()] = adopted
    adopted.trainable = is_trainable
    return adopted


def _path(variable):
    return variable.name.partition(":")[0]


def _key(variable):
    """The key of a weight in a file, in which a slash would open a group."""
    return _path(variable).replace("/", ".")
