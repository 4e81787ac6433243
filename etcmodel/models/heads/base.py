"""The bases of models with a head: of any encoder, of ETC's two inputs, of labels."""

import abc
import inspect
import types

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel import shown_values, signatures
from etcmodel.layers import base, heads, sublayers
from etcmodel.layers.recomputing_dropout import RecomputingDropout
from etcmodel.models import conveniences, encoders, json_config, label_checks, systems, text_data
from etcmodel.models import features as features_lib
from etcmodel.models import pooling as pooling_lib
from etcmodel.ops import argument_checks
from etcmodel.text import labels as labels_lib

_DEFAULT_LEARNING_RATE = 5e-5
_CALL_OPTIONS = ("mask", "training")  # Arguments of Keras's calls that are not features.
# What encoders may also return, and the function of `inspection` that shows it.
_OBSERVED = {"output_attentions": "attention", "output_hidden_states": "hidden_states"}
_HEADS = {}
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def register_head(head):
    """Class decorator that registers an `EncoderWithHead` for Keras and for `head_config.json`.

    A class that is defined anew, as by running a notebook cell again, replaces the former.

    Raises:
        ValueError: if it has no `head_type`, or another class has the same; or if its first
            argument is not called `encoder`, by which name Keras's files have it.

    >>> from etcmodel.models import heads
    >>> @heads.register_head
    ... class TwoLabels(etcmodel.EtcForSequenceClassification):
    ...     head_type = "two_labels"
    >>> heads.head_class("two_labels").__name__
    'TwoLabels'
    """
    if not isinstance(head.head_type, str) or not head.head_type:
        raise ValueError(f"{head.__name__} needs a `head_type`, a name in files.")
    _, first, *_ = [*inspect.signature(head.__init__).parameters.values(), None]
    is_positional = first and first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    if first is None or (is_positional and first.name != "encoder"):
        raise ValueError(
            f"The first argument of {head.__name__} must be called `encoder`, as in Keras's files. "
            f"Received: {f'`{first.name}`' if first else 'no argument'}"
        )
    known = _HEADS.get(head.head_type)
    if known not in (None, head) and not signatures.is_defined_anew(known, head):
        raise ValueError(f"There is another head of `head_type` {head.head_type!r}.")
    _HEADS[head.head_type] = head
    return tf_keras.utils.register_keras_serializable(package="etcmodel")(head)


def head_classes():
    """Returns all heads, of every system and registered: dict of `head_type` to class.

    A registered system whose encoder cannot be imported has none here.

    >>> from etcmodel.models import heads
    >>> heads.head_classes()["masked_lm"].__name__
    'EtcForMaskedLM'
    """
    _import_heads()
    return dict(_HEADS)


def _import_heads():
    """Lets the modules of all systems register their heads; returns the errors of those that fail.

    Whoever needs such a system itself gets its error.
    """
    errors = []
    for system in systems.registered():
        try:
            _ = system.encoder_class  # Imported, its module registers the system's heads.
        except systems.SystemImportError as error:
            errors.append(error)
    return errors


def head_class(head_type, source="head_config"):
    """Returns the class of a `head_type`.

    Raises:
        ValueError: naming the source and the known types, if the type is unknown.

    >>> from etcmodel.models import heads
    >>> heads.head_class("longformer_masked_lm").__name__
    'LongformerForMaskedLM'
    """
    errors = _import_heads()
    if not isinstance(head_type, str) or head_type not in _HEADS:
        raise ValueError(
            f"{source}: There is no head of `head_type` {shown_values.shown(head_type)}; "
            f"the known types are {shown_values.listed([*map(repr, sorted(_HEADS))])}. "
            + " ".join(["Import yours first.", *map(str, errors)])
        )
    return _HEADS[head_type]


def _settings(head):
    """The arguments of a head, except the encoder and Keras's: dict of name to `Parameter`."""
    found = {}
    for ancestor in head.__mro__:
        if issubclass(ancestor, EncoderWithHead) and "__init__" in vars(ancestor):
            parameters = inspect.signature(ancestor.__init__).parameters.values()
            found |= {x.name: x for x in parameters if x.kind in _NAMED and x.name not in found}
    return {name: x for name, x in found.items() if name not in ("self", "encoder", "own")}


def _parameters(head):
    """All arguments of a head, for `help`."""
    base = inspect.signature(EncoderWithHead.__init__).parameters
    return [base["encoder"], *_settings(head).values(), base["kwargs"]]


class EncoderWithHead(text_data.ReadsTexts, conveniences.Pretrained, tf_keras.Model, abc.ABC):
    """An encoder with a task head, as a Keras model.

    All variables exist from construction on. `compile()` without arguments uses Adam, the head's
    loss and its metrics. The logits are float32 under any dtype policy. With a `processor` it also
    takes texts: see `text_data.ReadsTexts`.

    A subclass has a `head_type`, creates its layers in `make_head`, computes logits in `call`, and
    defines `default_loss` and `default_metrics`. Its arguments have type annotations, against which
    the values in a file are checked; numbers must not be negative, and those in `at_least_1` must
    be positive.

    Args:
        encoder: `Encoder`, which becomes part of the model, or the `EncoderConfig` of a new one.
        dropout: float or None. Dropout rate before the head; None for the config's
            `hidden_dropout_prob`.
        own: dict. The arguments that the subclass adds, by name; they become attributes.
        **kwargs: of the Keras model.
    Call args:
        features: dict of name to int tensor, or token ids [batch, long_len]; or texts, as in `fit`.
            Features may also be keyword arguments, like the encoder's: `model(**batch)`.
        training: bool.
    Raises:
        ValueError: if `encoder` is neither; naming the argument, if it has a wrong type or is out
            of range, or asks for an output that the encoder does not have.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> etcmodel.EtcForTokenClassification(config, num_labels=5, dropout=0.2)
    <EtcForTokenClassification 'token_classification', 1 layer, 12 hidden units, 128 tokens in
    the vocabulary, 81,041 parameters>
    """

    head_type = None
    at_least_1 = ("num_labels",)
    __signature__ = signatures.ClassSignature(_parameters)
    token_feature = "token_ids"  # The name of features that are not a dict.

    def __init__(
        self,
        encoder: encoders.Encoder | encoders.EncoderConfig,
        *,
        dropout: float | None = None,
        own=None,
        **kwargs,
    ):
        self.check_settings({**(own or {}), "dropout": dropout})
        super().__init__(**{"name": self.head_type, **kwargs})
        self._autocast = False  # Features are ids, which must not be cast.
        self._own_settings = tuple(own or ())
        for name, value in (own or {}).items():
            setattr(self, name, json_config.python_numbers(value))
        self.encoder = self._as_encoder(encoder)
        if isinstance(self.encoder, conveniences.Pretrained):
            self.encoder._become_part_of(self)
        self.dropout_rate = json_config.python_numbers(dropout)
        rate = self.default_dropout() if dropout is None else dropout
        self.dropout = RecomputingDropout(rate, name="head_dropout", dtype="float32")
        self.build()

    @property
    def config(self):
        """`EncoderConfig` of the encoder."""
        return self.encoder.config

    def check_config(self):
        """See `conveniences.Pretrained.check_config`."""
        if hasattr(self.encoder, "check_config"):  # A user's encoder may lack it.
            self.encoder.check_config()

    @classmethod
    def setting_types(cls):
        """The class's arguments, except the encoder and Keras's: dict of name to type."""
        return {name: parameter.annotation for name, parameter in _settings(cls).items()}

    @classmethod
    def check_settings(cls, settings):
        """Checks the class's arguments, as returned by `settings` or read from a file.

        Raises:
            ValueError: naming the argument, if it is unknown, has a wrong type or is out of range.
        """
        kinds = cls.setting_types()
        if unknown := sorted(set(settings) - set(kinds)):
            values = shown_values.named([f"{x}={shown_values.shown(settings[x])}" for x in unknown])
            raise ValueError(f"unknown settings of {cls.__name__}: {values}")
        for name, value in settings.items():
            value = tuple(value) if isinstance(value, list) else value
            if json_config.can_check(kinds[name]):
                field = types.SimpleNamespace(name=name, type=kinds[name])
                json_config.check_entry(field, value, least=int(name in cls.at_least_1))

    def _as_encoder(self, encoder):
        if isinstance(encoder, encoders.Encoder):
            return encoder
        if isinstance(encoder, dict) and "model_type" in encoder and "config" in encoder:
            return self.class_of_encoder(encoder["model_type"]).from_config(encoder["config"])
        if hasattr(encoder, "model_type"):
            return self.make_encoder(encoder)
        raise ValueError(
            f"`encoder` must be an encoder or the config of one. Received: {type(encoder).__name__}"
        )

    autograph_info__ = None  # See `base.Layer`.

    def __call__(self, features=None, *args, **kwargs):
        """Calls the model; features may also be given as keyword arguments."""
        base.check_caller(self, (features, *args), kwargs)
        self._check_observed({*kwargs, *(features if hasattr(features, "items") else ())})
        is_option = {
            name: name in _CALL_OPTIONS or isinstance(x, bool) for name, x in kwargs.items()
        }
        named = {name: x for name, x in kwargs.items() if not is_option[name] and x is not None}
        if named:
            if features is not None and not hasattr(features, "items"):
                features = {self.token_feature: features}
            features = {**(features or {}), **named}
        if not named:
            features = text_data.without_texts(self, features)
        options = {name: x for name, x in kwargs.items() if is_option[name]}
        return super().__call__({} if features is None else features, *args, **options)

    def _check_observed(self, names):
        """Raises ValueError if these arguments ask for what the encoder does not return."""
        for name in _OBSERVED.keys() & names:
            parameters = inspect.signature(self.encoder.call).parameters
            takes_any = any(x.kind == x.VAR_KEYWORD for x in parameters.values())
            if not (name in parameters or takes_any):
                argument_checks.fail(
                    f"The system {self.encoder.config.model_type!r} has no `{name}`: leave it out. "
                    f"`etcmodel.inspection.{_OBSERVED[name]}` shows it."
                )

    @classmethod
    def class_of_encoder(cls, model_type):
        """Returns the class of the head's encoder, by default that of a `model_type`'s system."""
        return encoders.encoder_type(model_type).encoder_class

    @classmethod
    def make_encoder(cls, config):
        """Creates an encoder from a config, as the head needs it."""
        return encoders.make_encoder(config)

    def default_dropout(self):
        """Returns the dropout rate before the head that the encoder's config says: float."""
        return self.encoder.config.hidden_dropout_prob

    @abc.abstractmethod
    def make_head(self):
        """Creates and builds the head's layers."""

    @abc.abstractmethod
    def default_loss(self):
        """Returns a Keras loss, or a dict of them for several outputs."""

    def default_metrics(self):
        """Returns a list of Keras metrics, or a dict of them for several outputs; None for none."""

    def build(self, input_shape=None):
        """Creates all variables; their sizes depend on the settings alone."""
        if not self.built:
            with tf.name_scope(self.name):
                sublayers.build_sublayer(self.encoder, None)
                self.make_head()
            self.built = True

    def token_logits(self, num_outputs, name="logits"):
        """Creates a `TokenLogits` layer, built for hidden states."""
        initializer_range = self.encoder.config.initializer_range
        return self.built_on_hidden(
            heads.TokenLogits(num_outputs, initializer_range, name=name, dtype="float32")
        )

    def built_on_hidden(self, layer):
        """Builds the layer for hidden states, and returns it."""
        hidden = tf.TensorShape([None, None, self.encoder.config.hidden_size])
        sublayers.build_sublayer(layer, hidden)
        return layer

    def compile(self, optimizer=None, loss=None, metrics=None, **kwargs):
        """Configures training as in Keras; defaults are Adam, and the loss and metrics of the head.

        With the head's loss, the word "accuracy" alone stands for the head's metrics, too, which
        leave out what has no label. A loss that takes probabilities is warned of.

        Raises:
            ValueError: naming the argument, if it is an object of Keras 3.

        >>> import tf_keras
        >>> model = etcmodel.from_pretrained("my_model")
        >>> model.compile(tf_keras.optimizers.Adam(3e-5))
        >>> model.optimizer.name
        'Adam'
        """
        given = {"optimizer": optimizer, "loss": loss, "metrics": metrics, **kwargs}
        for name, part in given.items():
            base.refuse_keras_3(name, part)
        label_checks.warn_of_loss(self, loss)
        word = metrics[0] if isinstance(metrics, (list, tuple)) and len(metrics) == 1 else metrics
        if metrics is None or (not loss and word in ("accuracy", "acc")):
            with self.distribute_strategy.scope():
                metrics = self.default_metrics() or metrics
        super().compile(
            optimizer=optimizer or tf_keras.optimizers.Adam(_DEFAULT_LEARNING_RATE),
            loss=loss or self.default_loss(),
            metrics=metrics,
            **kwargs,
        )

    def make_train_function(self, force=False):
        """Same as in Keras, but the step is traced only once, since it creates no variables."""
        if hasattr(self.optimizer, "build"):  # Legacy optimizers have no `build`.
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def compile_from_config(self, config):
        """Same as in Keras, which skips models that override `compile`."""
        self.compile(**tf_keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def _get_compile_args(self, user_metrics=True):
        """The arguments that a SavedModel stores, with metrics by output, as the user gave them.

        Keras's own list of metrics does not say which output each one is for.
        """
        return super()._get_compile_args(user_metrics=True)

    def functional(self, *names):
        """Returns this model as a functional Keras model with the same variables, compiled alike.

        Args:
            *names: str. The features that are its inputs; by default those of the latest call, or
                `token_ids`.
        Returns:
            tf_keras.Model, from a dict of these features to the same outputs.

        >>> model = etcmodel.from_pretrained("my_model")
        >>> model.functional("token_ids", "links").input_names
        ['links', 'token_ids']
        """
        names = names or self._names_called_with()
        inputs = {
            name: tf_keras.Input(self.feature_shape(name), dtype=tf.int32, name=name)
            for name in names
        }
        model = tf_keras.Model(inputs, self(inputs), name=f"functional_{self.name}")
        if self.optimizer is not None:
            config = tf_keras.saving.deserialize_keras_object(self.get_compile_config())
            model.compile(**{**config, "optimizer": self.optimizer})
        return model

    def feature_shape(self, name):
        """The shape of a feature without the batch axis: list of int or None."""
        return [None]

    def _names_called_with(self):
        spec = self.save_spec()
        features = spec[0][0] if spec is not None else None
        return tuple(features) if hasattr(features, "items") else (self.token_feature,)

    def save(self, filepath, overwrite=True, save_format=None, **kwargs):
        """Saves the model as in Keras. HDF5 has only functional models, so it saves `functional()`.

        From such a file, `load_model` returns a functional model with the same weights and outputs,
        without this class's methods; `.keras`, SavedModel and `save_pretrained` keep the class.

        >>> import tf_keras
        >>> etcmodel.from_pretrained("my_model").save("my_model.keras")
        >>> tf_keras.models.load_model("my_model.keras").labels
        ('neg', 'pos')
        """
        is_hdf5 = str(filepath).endswith((".h5", ".hdf5")) and save_format is None
        model = self.functional() if save_format == "h5" or is_hdf5 else super()
        model.save(filepath, overwrite=overwrite, save_format=save_format, **kwargs)

    def load_own_variables(self, store):
        """Same as in Keras; then the weights of the layers are looked for by their classes."""
        self._name_layers_as_in(store)
        super().load_own_variables(store)

    def save_own_variables(self, store):
        """Same as in Keras; the layers' weights get the same names, whatever was loaded before."""
        self._name_layers_as_in(None)
        super().save_own_variables(store)

    def _name_layers_as_in(self, store):
        for layer in self.layers:
            if isinstance(layer, heads.MaskedLM):
                heads.name_masked_lm_as_in(store, layer)

    def get_config(self):
        encoder = {
            "model_type": self.encoder.config.model_type,
            "config": self.encoder.get_config(),
        }
        return {"name": self.name, "encoder": encoder, **self.settings()}

    def settings(self):
        """Returns the constructor's arguments, except the encoder, as a dict for JSON."""
        own = {name: getattr(self, name) for name in self._own_settings}
        own = {name: list(x) if isinstance(x, (list, tuple)) else x for name, x in own.items()}
        return {**own, "dropout": self.dropout_rate}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


class HeadModel(EncoderWithHead):
    """A model with a head: maps a batch of features (see `models.features`) to logits.

    A subclass computes logits in `head`; see `EncoderWithHead` for the rest.

    Args:
        encoder: see `EncoderWithHead`, as for the other arguments.
        relation_names: sequence of str. See `models.features`.
        **kwargs: of `EncoderWithHead`.
    Call args: see `EncoderWithHead`.
    Raises:
        ValueError: see `EncoderWithHead` and `features.completed`; also if there are more relations
            than labels for them.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForSentenceSelection(config, relation_names=["cites"])
    >>> isinstance(model, etcmodel.models.HeadModel), model.relation_names
    (True, ('cites',))
    """

    extra_axes = {}  # The axes of further features; see `features.completed`.

    def __init__(self, encoder, *, relation_names: tuple[str, ...] = (), **kwargs):
        super().__init__(encoder, **kwargs)
        self.relation_names = tuple(relation_names)
        if self.relation_names:
            # Raises an error if there are too many.
            self.encoder.config.relation_labels(*self.relation_names)

    @classmethod
    def make_encoder(cls, config):
        return encoders.make_global_local_encoder(config)

    def _as_encoder(self, encoder):
        made = super()._as_encoder(encoder)
        encoders.check_global_local(made.config)
        return made

    @abc.abstractmethod
    def head(self, long_output, global_output, inputs, training):
        """Computes logits, or a dict of them, from hidden states and `features.EncoderInputs`."""

    def call(self, features, training=None):
        inputs = features_lib.completed(
            features, self.encoder.config, self.relation_names, self.extra_axes
        )
        long_output, global_output = self.encoder(**inputs.arguments, training=training)
        # So that variables of an output that the head does not use get a gradient of 0, not None.
        long_output, global_output = tf.identity_n([long_output, global_output])
        return self.head(long_output, global_output, inputs, training)

    def feature_shape(self, name):
        return features_lib.shape_of(name, self.extra_axes)

    def pooled(self, long_output, global_output, inputs, training):
        """Pools hidden states by `pooling`, with dropout: float32 [batch, hidden_size]."""
        vectors = pooling_lib.pool(long_output, global_output, inputs, self.pooling)
        return self.dropout(vectors, training=training)

    def embed(self, features, pooling="mean", normalize=False):
        """Returns embedding vectors of texts: see `models.pooling.embed`.

        >>> model = etcmodel.from_pretrained("my_model")
        >>> model.embed(model.processor(["Good!", "Bad!"])).shape
        TensorShape([2, 12])
        """
        if hasattr(features, "items"):  # Without the features that only the head takes.
            features = {name: x for name, x in features.items() if name not in self.extra_axes}
        names = self.relation_names
        return pooling_lib.embed(
            self.encoder, features, pooling, relation_names=names, normalize=normalize
        )

    def settings(self):
        return {**super().settings(), "relation_names": list(self.relation_names)}


def _names(labels):
    if isinstance(labels, str):  # Else each letter would be a label.
        raise ValueError(f"`labels` must be a sequence of names. Received: {labels!r}")
    return tuple(labels)


class Labelled(EncoderWithHead):
    """The base of heads that predict labels; list it before the other base class.

    Args:
        encoder: see `EncoderWithHead`.
        num_labels: int. None: the number of `labels`, or 2 without names.
        labels: sequence of distinct str, in the order of the logits; or empty. They are the
            `id2label` of Hugging Face's files.
        **kwargs: of `EncoderWithHead`.
    Raises:
        ValueError: if there are more or fewer names than labels, or two are the same.
    """

    problem_type = None  # Of labels of texts, named as in `text.labels`.

    def __init__(
        self,
        encoder,
        *,
        num_labels: int = None,  # No None in files, which are checked by types.
        labels: tuple[str, ...] = (),
        own=None,
        **kwargs,
    ):
        if num_labels is None:
            is_number = (own or {}).get("problem_type") == labels_lib.REGRESSION
            num_labels = len(labels) or (1 if is_number else 2)
        own = {"num_labels": num_labels, **(own or {}), "labels": _names(labels)}
        super().__init__(encoder, own=own, **kwargs)

    @classmethod
    def check_settings(cls, settings):
        super().check_settings(settings)
        names, number = settings.get("labels") or (), settings.get("num_labels")
        if names and number is not None and len(names) != number:
            raise ValueError(
                f"`labels` must be as many as `num_labels`, {number}. Received: "
                f"{shown_values.shown(list(names))}"
            )
        if len(set(names)) < len(names):
            raise ValueError(
                f"`labels` must be different. Received: {shown_values.shown(list(names))}"
            )

    @property
    def labels(self):
        """tuple of str: the labels in the order of the logits; () if they have no names."""
        return self._labels

    @labels.setter
    def labels(self, names):
        self.check_settings({"labels": _names(names), "num_labels": self.num_labels})
        self._labels = tuple(names)

    def settings(self):
        settings = super().settings()
        if not self.labels:  # As before, so that earlier versions can read the folder.
            del settings["labels"]
        return settings

    def as_labels(self, logits):
        """Converts logits to the names of the predicted labels.

        Args:
            logits: float [..., num_labels].
        Returns:
            list of str, nested as the logits without their last axis; for multi-label models, of
            tuples of the labels with a probability above 0.5.
        Raises:
            ValueError: if the labels have no names, or the model is a regression.

        >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
        >>> model = etcmodel.EtcForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
        >>> model.as_labels([[[0.1, 2.0, 0.3], [1.0, 0.0, 0.0]]])
        [['B-PER', 'O']]
        """
        if not self.labels:
            raise ValueError(
                "The model has no names of its labels: train it on words, or set `model.labels`, "
                f"{self.num_labels} of them in the order of its outputs."
            )
        logits, names = np.asarray(logits), self.labels
        if self.problem_type == labels_lib.MULTI_LABEL:
            return [tuple(x for x, y in zip(names, row, strict=True) if y > 0) for row in logits]
        return np.array(names, object)[logits.argmax(axis=-1)].tolist()
