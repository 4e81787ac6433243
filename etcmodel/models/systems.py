"""The registry of systems: one record of the abilities of each kind of model.

Loading and saving, processors, the programs' models, pre-training, inspection and learning rates by
layer use the record of a config's `model_type`; a missing ability raises an error that names it and
the system. The records of the library's own systems are in the packages of `etcmodel.models`, ETC's
in `encoders`, which registers them; users `register` theirs.
"""

import dataclasses
import importlib
import types
import typing

from etcmodel import models, signatures

# Entries of small configs (`System.small`), by the names of BERT's and of BART's.
SMALL_BERT = {
    "vocab_size": 128,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
SMALL_BART = {
    "vocab_size": 128,
    "d_model": 64,
    **{
        f"{stack}_{name}": value
        for stack in ("encoder", "decoder")
        for name, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 128))
    },
}


def homes(package, **further):
    """The modules of the public names of a system's package: dict for `lazy_imports.attributes`.

    They are those of `etcmodel.models`; configs are in the module `config`, all else in `modeling`.

    Args:
        package: str. Its name.
        **further: modules in the package, by name, of names that are elsewhere or not public there.
    """
    names = (name for name, home in models.HOMES.items() if home == package)
    parts = {name: "config" if name.endswith("Config") else "modeling" for name in names}
    return {name: f"{package}.{part}" for name, part in {**parts, **further}.items()}


class SystemImportError(ImportError):
    """What a registered system names as "module:name" cannot be imported."""


class Weights(typing.NamedTuple):
    """The names that a system's weights, and those of its heads, have in Hugging Face's files.

    Attributes:
        prefix: str. The prefix in files of models with a head of all names but the head's.
        names: tuple of (pattern, replacement), or a function of the config that returns one: a
            regular expression for a whole name, as in `checkpoints.names.release_names`, or for the
            rest of it after the encoder's own name, and the name in files of models with a head,
            with `\\1` for groups. A `kernel` that is named `weight` is stored transposed.
        copies: dict of the names of duplicates in older files to the name of the original. A file
            in which they differ is refused, unless the model has weights for both.
        aliases: dict of name to tuple of str: other names that files use for a weight.
        obsolete: tuple of str. Entries that no model uses.
        optional: tuple of str. Weights that a file may lack; they keep their initial values.
        shared_head: str. The beginning of the names of a part that all heads have: it is loaded
            into a head whose other parts the file lacks.
        encoder_options: function of the names in a file and a head's class, or None, that returns
            arguments of the encoder's class: dict.
        config_for: function of a folder's config and the `checkpoints.sources.Source` of its
            weights that returns the config of an encoder-decoder with these weights.
    """

    prefix: str
    names: typing.Any
    copies: typing.Any = types.MappingProxyType({})
    aliases: typing.Any = types.MappingProxyType({})
    obsolete: tuple = ()
    optional: tuple = ()
    shared_head: str | None = None
    encoder_options: typing.Any = lambda names, head_class: {}
    config_for: typing.Any = lambda config, source: config


def dense_names(ours, theirs):
    """The entries of `Weights.names` of a dense layer, from its name here and in files."""
    return (f"{ours}/kernel", f"{theirs}.weight"), (f"{ours}/bias", f"{theirs}.bias")


def norm_names(ours, theirs):
    """The entries of `Weights.names` of a normalization, from its name here and in files."""
    return (f"{ours}/gamma", f"{theirs}.weight"), (f"{ours}/beta", f"{theirs}.bias")


def logits_names(ours, theirs):
    """The entries of `Weights.names` of `layers.heads.TokenLogits`, stored as in files."""
    return (f"{ours}/weights", f"{theirs}.weight"), (f"{ours}/bias", f"{theirs}.bias")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class System:
    """A kind of model.

    Classes and functions may be given as "module:name", which is imported at first use.

    Attributes:
        config_class: an `encoders.EncoderConfig` class, whose `model_type` is the system's name.
        encoder_class: an `encoders.Encoder` class, created by `encoders.make_encoder`.
        scope: str. The first part of the names of the encoder's variables in checkpoints.
        protocol: `encoders.Encoder`, or a subclass such as `encoders.GlobalLocalEncoder`, which
            defines the call.
        config_file: str. Name of the config's file beside a checkpoint and in an export.
        unscoped_parts: tuple of str. Names of layers whose variables are outside the scope.
        parts: tuple of str. Names of the encoder's other layers, which identify the encoder's
            variables if it was built outside its scope.
        weights: `Weights`, if the system's folders are written in Hugging Face's layout; or None.
        has_whole_files: bool. Whether a file that lacks a weight of the encoder is refused: weights
            of other systems are not read.
        seq2seq_classes: tuple of encoder-decoder classes, whose folders have Hugging Face's layout;
            the first is used for a folder that names none.
        processor: class of its processor, with `from_pretrained` and `of_model` as in
            `text.row_processor.RowProcessor`; None for `EtcProcessor`.
        own_tokens: see `Seq2SeqProcessor.of_model`; None for other processors.
        classifier: function of (config, num_labels, problem_type, pooling) that creates a model
            which classifies batches of `EtcProcessor`, as in `sequence_classifiers`; or None.
        span_reader: function of a config that creates a model which finds answers in such batches,
            as in `span_readers`; or None.
        tagger: function of a config and `num_labels` that creates a model which classifies the
            tokens of such batches, as in `token_classifiers`; or None.
        lift: dict of config entries, besides the BERT's own, of a model that is initialized from a
            BERT or RoBERTa by the names of its weights in files: see `checkpoints.lift`; or None.
        masked_lm: class of a head, a `heads.of_text.MaskedLM`, for pre-training on windows of text;
            None if there is none, and for ETC, which also has sentences.
        pretraining: dict of pre-training options to the system's defaults.
        inner_encoder: class of the part of a model that is inspected, if not the `encoder_class`;
            or None.
        observed: function of an encoder, the arguments of its call and its outputs with
            `output_attentions`, that returns `inspection.observed.Probabilities`; None if attention
            is not inspected in this way.
        watched: function of the `TransformerStack` of the part that is inspected, that returns its
            blocks around the attention, by layer, and what `inspection.attention` records them
            with; None if attention is not inspected in this way.
        has_layer_rates: bool. Whether learning rates may differ by layer: layers are named
            `…_layer_<i>`, and embeddings have "emb" in their names.
        small: dict of entries of a small config, with which `etcmodel doctor --accelerator`
            compares devices; None: it leaves the system out.
    """

    config_class: typing.Any
    encoder_class: typing.Any
    scope: str
    protocol: typing.Any = "etcmodel.models.encoders:Encoder"
    config_file: str = "encoder_config.json"
    unscoped_parts: tuple = ()
    parts: tuple = ()
    weights: typing.Any = None
    has_whole_files: bool = False
    seq2seq_classes: tuple = ()
    processor: typing.Any = None
    own_tokens: tuple | None = None
    classifier: typing.Any = None
    span_reader: typing.Any = None
    tagger: typing.Any = None
    lift: dict | None = None
    masked_lm: typing.Any = None
    pretraining: dict = dataclasses.field(default_factory=dict)
    inner_encoder: typing.Any = None
    observed: typing.Any = None
    watched: typing.Any = None
    has_layer_rates: bool = False
    small: dict | None = None

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if name == "seq2seq_classes":
            return tuple(_imported(part, self, name) for part in value)
        return _imported(value, self, name) if name in _LAZY else value

    # From what was given, so that comparing and printing import nothing.
    def __eq__(self, other):
        return isinstance(other, System) and vars(self) == vars(other)

    def __hash__(self):
        return hash(self.scope)

    def __repr__(self):
        return f"System({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @property
    def model_type(self):
        """The system's name in configs: str."""
        return self.config_class.model_type


_LAZY = {
    "classifier",
    "config_class",
    "encoder_class",
    "inner_encoder",
    "masked_lm",
    "observed",
    "processor",
    "protocol",
    "span_reader",
    "tagger",
    "watched",
    "weights",
}


def _imported(value, system, name):
    """Imports what an attribute names in the form "module:name"; returns other values unchanged."""
    if not isinstance(value, str):
        return value
    module, _, attribute = value.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        if module.startswith("etcmodel."):  # It says itself what it lacks.
            raise
        raise SystemImportError(
            f"The system of scope {system.scope!r} has {value!r} as its `{name}`, which cannot be "
            f"imported: {type(error).__name__}: {error}"
        ) from error


_SYSTEMS: dict[str, System] = {}
# What a config must have, see `encoders.EncoderConfig`: always, and to read windows of ids.
_ENTRIES = ("vocab_size", "hidden_size", "initializer_range", "hidden_dropout_prob")
_READERS = ("classifier", "span_reader", "tagger", "masked_lm")


def register(system):
    """Registers a system; returns it.

    Args:
        system: `System`. If its config's class is a redefinition of another's, as by running a
            notebook cell again, it replaces that system.
    Raises:
        ValueError: if another one has the same `model_type`, or the config is no dataclass or
            lacks an entry of `encoders.EncoderConfig`.
    """
    _check_entries(system)
    known = _SYSTEMS.get(system.model_type)
    if known not in (None, system) and not signatures.is_defined_anew(
        known.config_class, system.config_class
    ):
        raise ValueError(f"There is another encoder of `model_type` {system.model_type!r}.")
    _SYSTEMS[system.model_type] = system
    return system


def _check_entries(system):
    config_class = system.config_class
    if not (isinstance(config_class, type) and dataclasses.is_dataclass(config_class)):
        raise ValueError(
            f"`config_class` must be a dataclass, as `encoders.EncoderConfig` describes. Received: "
            f"{config_class!r}"
        )
    own = {field.name for field in dataclasses.fields(config_class)}
    reads = any(vars(system)[name] for name in _READERS)
    for name in (*_ENTRIES, *["pad_token_id"] * reads):
        if name not in own and not hasattr(config_class, name):
            raise ValueError(
                f"{config_class.__name__}, the config of `model_type` {system.model_type!r}, lacks "
                f"`{name}`, which `encoders.EncoderConfig` describes."
            )


def registered():
    """Returns a tuple of all `System`s."""
    return tuple(_known().values())


def find(model_type):
    """Returns the `System` of a `model_type`, or None; any value from a file is allowed."""
    return _known().get(model_type) if isinstance(model_type, str) else None


def has_added():
    """Whether a program has registered a system of its own, whose runs others cannot read: bool."""
    return any(not _module_of(system).startswith("etcmodel.") for system in _SYSTEMS.values())


def _module_of(system):
    """The module of a system's config, by name, without importing it: str."""
    config_class = vars(system)["config_class"]
    return config_class if isinstance(config_class, str) else config_class.__module__


def having(ability):
    """Returns a tuple of the `System`s whose attribute of this name is set."""
    return tuple(system for system in _known().values() if vars(system)[ability])


def ability(config, name, what):
    """Returns an attribute of the `System` of a config.

    Args:
        config: `EncoderConfig`.
        name: str. The attribute.
        what: str. What it is for, such as "Texts are classified", for the error.
    Raises:
        ValueError: naming the config's type and those that have it, if the system does not.
    """
    system = find(config.model_type)
    if system is None or getattr(system, name) is None:
        known = ", ".join(repr(x.model_type) for x in having(name))
        raise ValueError(
            f"{what} by models of `model_type` {known}. Received: {config.model_type!r}"
        )
    return getattr(system, name)


def _known():
    """The systems by name, the library's own among them, which `encoders` registers."""
    importlib.import_module("etcmodel.models.encoders")
    return _SYSTEMS
