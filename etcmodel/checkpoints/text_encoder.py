"""Vectors of texts, and of sentences in their context, as sentence-transformers' folders say.

Such a folder has `modules.json`, which names its modules: a Transformer, which is any encoder that
`from_pretrained` loads; a Pooling of its outputs; and perhaps a Normalize. Source: Reimers and
Gurevych 2019 (arXiv:1908.10084), and the package's file formats.
"""

import contextlib
import dataclasses
import math
import numbers
import os
import typing

import numpy as np
import tensorflow as tf

from etcmodel import bounded_json, extras, hub, shown_values
from etcmodel.autograph import without_autograph
from etcmodel.checkpoints import pretrained, seq2seq, sources
from etcmodel.models import encoders, pooling, processed_batches, systems
from etcmodel.models import features as features_lib
from etcmodel.text import alike, processor_files
from etcmodel.text.sentence_splitting import sentence_splitter
from etcmodel.text.truncation import CutTotals

MODULES_FILE = "modules.json"
_PROMPTS_FILE = "config_sentence_transformers.json"
_KIND = "SentenceTransformer"  # Of vectors: one for each text.
_TRANSFORMER, _POOLING, _NORMALIZE = "Transformer", "Pooling", "Normalize"
_ORDERS = ([_TRANSFORMER, _POOLING], [_TRANSFORMER, _POOLING, _NORMALIZE])
# The names of poolings there, and here.
_POOLINGS = {
    "cls": "first",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len": "mean_sqrt_len",
    "mean_sqrt_len_tokens": "mean_sqrt_len",  # As version 6 writes it.
    "weightedmean": "weighted_mean",
    "lasttoken": "last",
}
# In the older form of a Pooling's config, in the order in which vectors are joined.
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_MANY = 8  # Batches, in all: a graph takes seconds to make, and is then faster.
_SENTENCES = "sentences"  # The feature with the sentence of each token.
_SPLITTER = "multilingual"  # Of documents, if the processor names none.
_SIZES = ("word_embedding_dimension", "embedding_dimension")
_LENGTH = "model_max_length"  # Of a tokenizer, if the file beside the encoder has no limit.
_LONGEST = 10**9  # Tokenizers without a limit have 10 ** 30.
# Entries of the file beside an encoder, whose other values may change vectors.
_AS_USUAL = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
    "query_length": None,
    "document_length": None,
    "query_expansion": None,
}
_WITHOUT_EFFECT = {"unpad_inputs"}  # It saves work.
# Arguments of the loaded model there: where it computes, and by which code.
_OF_LOADING = {"trust_remote_code", "attn_implementation", "torch_dtype", "dtype"}
_ARGUMENTS = {
    "model_args": _OF_LOADING,
    "model_kwargs": _OF_LOADING,
    "tokenizer_args": {"trust_remote_code"},
    "processor_kwargs": {"trust_remote_code"},
    "config_args": {"trust_remote_code"},
    "config_kwargs": {"trust_remote_code"},
    "processing_kwargs": set(),
}


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """What a folder says of its vectors.

    Attributes:
        encoder: str. The folder of the encoder.
        poolings: tuple of str. See `pooling.pool`; their vectors are joined.
        size: int or None. The size of the encoder's outputs that they are for.
        normalize: bool. Whether vectors have length 1.
        max_length: int or None. The most tokens of a text.
        do_lower_case: bool. Whether texts are lower-cased, whatever the vocabulary.
        prompts: dict of str to str, which begin texts of a kind.
        default_prompt: str or None. The name of the prompt of all texts.
        include_prompt: bool. Whether the prompt's tokens are pooled, too.
        truncate_dim: int or None. How many numbers of a vector are kept, the first ones.
    """

    encoder: str
    poolings: tuple = ("mean",)
    size: int | None = None
    normalize: bool = False
    max_length: int | None = None
    do_lower_case: bool = False
    prompts: dict = dataclasses.field(default_factory=dict)
    default_prompt: str | None = None
    include_prompt: bool = True
    truncate_dim: int | None = None


def _recipe(folder):
    """Reads the `_Recipe` of a folder; that of one without `modules.json` is the default."""
    path = os.path.join(folder, MODULES_FILE)
    if not tf.io.gfile.exists(path):
        return _Recipe(folder)
    modules = _modules(path)
    if [kind for kind, _ in modules] not in _ORDERS:
        found = [f"{where!r} ({kind})" for kind, where in modules]
        raise ValueError(
            f"{path} has the modules {', '.join(found)}. Those that can be applied are a "
            "Transformer, a Pooling and then, if there is one, a Normalize"
        )
    (_, inner), (_, of_pooling), *rest = modules
    for _, of_normalize in rest:
        _check_normalize(os.path.join(folder, of_normalize, "config.json"))
    encoder = os.path.join(folder, inner).rstrip("/")
    file = os.path.join(folder, of_pooling, "config.json")
    if not tf.io.gfile.exists(file):
        raise ValueError(f"{path} names a Pooling whose config, {file!r}, is missing.")
    return _Recipe(
        encoder,
        normalize=bool(rest),
        **_pooling(bounded_json.read_object(file), file),
        **_lengths(encoder),
        **_prompts(os.path.join(folder, _PROMPTS_FILE)),
    )


def _modules(path):
    """The (kind, folder below) of each module in a file."""
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read(bounded_json.MAX_BYTES + 1)
    try:
        modules = bounded_json.loads(content)
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(modules, list):
        raise ValueError(f"{path} must hold a list. Received: {shown_values.shown(modules)}")
    found = []
    for module in modules:
        given = module if isinstance(module, dict) else {}
        kind, where = given.get("type"), given.get("path")
        if not (isinstance(kind, str) and isinstance(where, str)):
            raise ValueError(
                f"{path}: a module must have a `type` and a `path`, both str. Received: "
                f"{shown_values.shown(module)}"
            )
        if os.path.basename(where) != where or where in (".", ".."):
            raise ValueError(
                f"{path}: a `path` must be the name of a folder in this one, or ''. Received: "
                f"{shown_values.shown(where)}"
            )
        package, _, name = kind.rpartition(".")
        found.append((name if package.split(".")[0] == "sentence_transformers" else kind, where))
    return found


def _pooling(entries, path):
    """What the config of a Pooling says, in its older or its newer form."""
    # In the newer form the vectors are joined in the order in which the file has them.
    known = {*_FLAGS, *_SIZES, "pooling_mode", "include_prompt"}
    if unknown := sorted(set(entries) - known):
        raise ValueError(f"{path}: unknown entries of a pooling: {shown_values.named(unknown)}")
    for name in {*_FLAGS, "include_prompt"} & set(entries):
        _check(entries[name], bool, name, path)
    modes = entries.get("pooling_mode")
    if modes is None:
        modes = [mode for flag, mode in _FLAGS.items() if entries.get(flag)]
    else:
        modes = [modes] if isinstance(modes, str) else modes
    is_known = isinstance(modes, list) and all(isinstance(x, str) and x in _POOLINGS for x in modes)
    if not is_known or not modes:
        raise ValueError(
            f"{path}: a pooling must be of {shown_values.listed(list(_POOLINGS))}. Received: "
            f"{shown_values.shown(modes)}"
        )
    named = {name: entries[name] for name in _SIZES if name in entries}
    for name, size in named.items():
        _check(size, int, name, path)
    sizes = list(named.values())
    return {
        "poolings": tuple(_POOLINGS[mode] for mode in modes),
        "size": sizes[0] if sizes else None,
        "include_prompt": entries.get("include_prompt", True),
    }


def _check_normalize(path):
    """Checks that a Normalize scales the vectors of texts, not the outputs of tokens."""
    usual = "sentence_embedding"
    entries = bounded_json.read_object(path) if tf.io.gfile.exists(path) else {}
    for name in ("module_input_name", "module_output_name"):
        if entries.get(name) not in (None, usual):
            _fail(path, name, repr(usual), entries[name])


def _lengths(folder):
    """What the file beside an encoder says of its texts, or else its tokenizer."""
    paths = (os.path.join(folder, name) for name in hub.SENTENCE_CONFIGS)
    path = next(filter(tf.io.gfile.exists, paths), None)
    entries = {} if path is None else bounded_json.read_object(path)
    length, is_lower = entries.pop("max_seq_length", None), entries.pop("do_lower_case", False)
    _check(is_lower, bool, "do_lower_case", path)
    _check_encoder_entries(entries, path)
    of_tokenizer = processor_files.foreign_entries(folder)
    if (side := of_tokenizer.get("truncation_side")) not in (None, "right"):
        file = os.path.join(folder, processor_files.TOKENIZER_CONFIG)
        _fail(file, "truncation_side", "'right', since texts are cut at their ends", side)
    if length is None:
        limit = of_tokenizer.get(_LENGTH)
        length = int(limit) if type(limit) in (int, float) and 0 < limit < _LONGEST else None
    else:
        _check(length, int, "max_seq_length", path, least=1)
    return {"max_length": length, "do_lower_case": is_lower}


def _check_encoder_entries(entries, path):
    """Checks that the other entries of the file beside an encoder change no vector."""
    for name, value in entries.items():
        if name in _ARGUMENTS:
            _check(value, dict, name, path)
            if unknown := sorted(set(value) - _ARGUMENTS[name]):
                raise ValueError(
                    f"{path}: these entries of `{name}` are not supported, and may change the "
                    f"vectors: {shown_values.named(unknown)}"
                )
        elif name not in {*_AS_USUAL, *_WITHOUT_EFFECT}:
            raise ValueError(
                f"{path}: unknown entry, which may change the vectors: {shown_values.named([name])}"
            )
        elif name in _AS_USUAL and value not in (None, usual := _AS_USUAL[name]):
            _fail(path, name, shown_values.shown(usual), value)


def _prompts(path):
    """The prompts that a file names, and how long vectors are."""
    if not tf.io.gfile.exists(path):
        return {}
    entries = bounded_json.read_object(path)
    prompts, default = entries.get("prompts") or {}, entries.get("default_prompt_name")
    _check(prompts, dict, "prompts", path)
    for name, prompt in prompts.items():
        _check(prompt, str, f"prompts.{name}", path)
    if default is not None and not (isinstance(default, str) and default in prompts):
        raise ValueError(
            f"{path}: `default_prompt_name` must be one of `prompts`, "
            f"{shown_values.listed(list(prompts))}. Received: {shown_values.shown(default)}"
        )
    if (kind := entries.get("model_type")) not in (None, _KIND):
        _fail(path, "model_type", repr(_KIND), kind)
    if (size := entries.get("truncate_dim")) is not None:
        _check(size, int, "truncate_dim", path, least=1)
    return {"prompts": prompts, "default_prompt": default, "truncate_dim": size}


def _check(value, kind, name, path, least=None):
    if type(value) is not kind:
        _fail(path, name, f"of type {kind.__name__}", value)
    if least is not None and value < least:
        _fail(path, name, f"at least {least}", value)


def _fail(path, name, wanted, value):
    raise ValueError(f"{path}: `{name}` must be {wanted}. Received: {shown_values.shown(value)}")


class TextVectors(typing.NamedTuple):
    """Vectors of texts, and what of the texts they are of.

    Attributes:
        vectors: float32 [num_texts, size].
        num_tokens, num_cut: int32 [num_texts]. Tokens that were read, special ones among them; and
            those of the text that were cut off.
    """

    vectors: np.ndarray
    num_tokens: np.ndarray
    num_cut: np.ndarray


class SentenceVectors(typing.NamedTuple):
    """The sentences of a document, and a vector of each in its context.

    Attributes:
        sentences: tuple of str.
        vectors: float32 [num_sentences, size].
    """

    sentences: tuple
    vectors: np.ndarray


class TextEncoder:
    """Turns texts into vectors, by an encoder and a pooling of its outputs.

    The folder is one of sentence-transformers, whose vectors are then equal to 1e-5; or any other
    one of an encoder, whose outputs are averaged: a BERT, RoBERTa, Longformer, ModernBERT, ETC …

    Args:
        folder: str. As in `from_pretrained`: a folder, or the name of a model of the Hugging Face
            Hub.
        pooling: str. See `models.pool`, except 'sentence'. None: the folder's, by default 'mean'.
        max_length: int. The most tokens of a text, the rest of which is cut off. None: the
            folder's; else as many as the encoder can read, of a BERT or RoBERTa as many as it was
            trained with.
        revision: str. See `from_pretrained`.
    Attributes:
        encoder: the encoder, a Keras layer.
        processor: its processor.
        size: int. Numbers of a vector.
        max_length: int or None. The most tokens of a text; None: any number.
        prompts: dict of str to str. What the folder puts before texts of a kind, such as "query".
    Raises:
        ValueError: naming the file, if it has a module that is not understood, or another entry
            that is wrong; or if the model is no encoder, or has no vocabulary.

    >>> encoder = etcmodel.TextEncoder("my_bert")
    >>> encoder.encode(["A good book.", "It is bad."]).shape
    (2, 8)
    """

    def __init__(self, folder, *, pooling=None, max_length=None, revision=None):
        self.folder = os.fspath(folder)
        local = sources.settled_folder(self.folder, revision)
        recipe = _recipe(local)
        if pooling is not None:
            _check_pooling(pooling)
            recipe = dataclasses.replace(recipe, poolings=(pooling,))
        self._recipe, self.prompts = recipe, dict(recipe.prompts)
        self.encoder = _load(recipe.encoder, self.folder)
        config = self.encoder.config
        if recipe.size not in (None, config.hidden_size):
            raise ValueError(
                f"{self.folder!r}: its pooling is for outputs of {recipe.size} numbers, and the "
                f"encoder's have {config.hidden_size}"
            )
        self.size = min(config.hidden_size * len(recipe.poolings), recipe.truncate_dim or math.inf)
        self._has_global_side = encoders.has_global_input(config)
        self._graphs, self._num_batches = {}, 0
        self._is_plain = _is_plain(self.encoder)
        self.processor, self.max_length = self._limited(max_length)

    def __repr__(self):
        how = "+".join(self._recipe.poolings) + ", length 1" * self._recipe.normalize
        length = "any length" if self.max_length is None else f"{self.max_length} tokens"
        return f"TextEncoder({self.folder!r}: {length}, {how}, {self.size} numbers)"

    def _limited(self, max_length):
        """(the processor of rows of at most so many tokens, one of each text; their number)."""
        processor = self.encoder.processor
        name = "max_long_len" if hasattr(processor.config, "max_long_len") else "max_length"
        most = getattr(processor.config, name)
        if max_length is not None:
            if not isinstance(max_length, numbers.Integral) or max_length < 1:
                raise ValueError(
                    f"`max_length` must be an int of at least 1. Received: {max_length!r}"
                )
            if most is not None and max_length > most:
                raise ValueError(
                    f"`max_length` must be at most {most}, which is all that {self.folder!r} can "
                    f"read. Received: {max_length}"
                )
        elif self._recipe.max_length is not None:
            max_length = self._recipe.max_length
        elif encoders.config_file_in(self._recipe.encoder) is None:
            max_length = self.encoder.config.local_radius  # The length of BERT's table.
        limits = [int(limit) for limit in (max_length, most) if limit is not None]
        limit = min(limits, default=None)
        changes = {name: limit, "stride": None}
        if hasattr(processor.config, "pack"):
            changes |= {"pack": False, "pad_to": "longest"}
        settings = {**dataclasses.asdict(processor.config), **changes}
        return type(processor)(processor.tokenizer, **settings), limit

    def encode(self, texts, batch_size=32, normalize=None, show_progress=True, prompt=None):
        """Computes a vector of each text.

        Texts of similar length are computed together. What was cut off is logged in one line.

        Args:
            texts: str, or a sequence of str.
            batch_size: int. Texts that are computed together.
            normalize: bool. Whether vectors get length 1. None: as the folder says, whose
                `truncate_dim` may then have shortened them.
            show_progress: bool. Whether several batches are counted on standard error. Or a
                function to call with the number of further texts after each batch.
            prompt: str. The name of one of `prompts`, which is put before each text. None: that
                of the folder's default, if it has one.
        Returns:
            float32 NumPy array [num_texts, size], in the order of the texts; [size] for a str.
        Raises:
            ValueError: if a text is not a str, naming it; or an argument is none of these.

        >>> encoder = etcmodel.TextEncoder("my_bert", max_length=6)
        >>> vectors = encoder.encode(["A good book.", "It is bad.", "A good book."], normalize=True)
        >>> (vectors @ vectors[0]).round(3)[[0, 2]]
        array([1., 1.], dtype=float32)
        """
        if isinstance(texts, str):
            return self.encode_counted([texts], batch_size, normalize, show_progress, prompt)[0][0]
        return self.encode_counted(texts, batch_size, normalize, show_progress, prompt).vectors

    def encode_counted(self, texts, batch_size=32, normalize=None, show_progress=True, prompt=None):
        """Computes a vector of each text, as `encode`, and counts its tokens.

        Args:
            texts: sequence of str.
            batch_size, normalize, show_progress, prompt: see `encode`.
        Returns:
            `TextVectors`, in the order of the texts.
        Raises:
            ValueError: see `encode`.

        >>> encoder = etcmodel.TextEncoder("my_bert", max_length=5)
        >>> _, num_tokens, num_cut = encoder.encode_counted(["A good book.", "Good."])
        >>> num_tokens, num_cut
        (array([5, 4], dtype=int32), array([1, 0], dtype=int32))
        """
        texts, _ = self._prepared(texts, prompt)
        texts = [self._cased(text) for text in texts]
        found = TextVectors(
            np.zeros([len(texts), self.size], np.float32),
            *np.zeros([2, len(texts)], np.int32),
        )
        for places, batch, pooled in self._batches(texts, batch_size, show_progress):
            found.vectors[places] = self._finished(pooled(dict(batch)), normalize)
            found.num_tokens[places] = [len(x.token_ids) for x in batch.encodings]
            found.num_cut[places] = [x.cut.num_tokens for x in batch.encodings]
        return found

    def encode_sentences(
        self, documents, batch_size=32, normalize=None, show_progress=True, prompt=None
    ):
        """Computes a vector of each sentence in its context, the document.

        A vector is the mean of the encoder's outputs of the sentence's tokens, whatever the pooling
        of texts. Sentences of which no token fits into `max_length` are left out.

        Args:
            documents: str, or a sequence of str.
            batch_size, normalize, show_progress, prompt: see `encode`; a prompt is no sentence.
        Returns:
            list of `SentenceVectors`, in the order of the documents; one of them for a str.
        Raises:
            ValueError: see `encode`.

        >>> encoder = etcmodel.TextEncoder("my_model")
        >>> found = encoder.encode_sentences("It is good. It was bad.")
        >>> found.sentences, found.vectors.shape
        (('It is good.', 'It was bad.'), (2, 12))
        """
        is_one = isinstance(documents, str)
        written, begin = self._prepared([documents] if is_one else documents, prompt)
        texts = [self._cased(text) for text in written]
        # Where lower-casing changes how many characters there are, sentences are lower-cased, too.
        written = [
            one if len(one) == len(other) else other
            for one, other in zip(written, texts, strict=True)
        ]
        splitter = sentence_splitter(getattr(self.processor.config, "sentence_splitter", _SPLITTER))
        size = min(self.encoder.config.hidden_size, self._recipe.truncate_dim or math.inf)
        found = [SentenceVectors((), np.zeros([0, size], np.float32))]
        found *= len(texts)
        for places, batch, pooled in self._batches(texts, batch_size, show_progress):
            spans = [_sentence_spans(written[place], begin, splitter) for place in places]
            links = _links(batch.encodings, spans, batch.long_shape)
            vectors = self._finished(pooled({**batch, _SENTENCES: links}), normalize).numpy()
            for place, of_text, row, of_row in zip(places, spans, links, vectors, strict=True):
                read = np.intersect1d(row, np.arange(len(of_text)))
                names = tuple(written[place][slice(*of_text[number])] for number in read)
                found[place] = SentenceVectors(names, of_row[read])
        return found[0] if is_one else found

    def _prepared(self, texts, prompt):
        """(the texts with their prompt: list of str; where they begin, behind it)."""
        if not isinstance(texts, (list, tuple)) and not hasattr(texts, "tolist"):
            raise ValueError(
                f"`texts` must be a str or a list of str. Received: {shown_values.shown(texts)}"
            )
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(
                    f"`texts[{number}]` must be a str. Received: {shown_values.shown(text)}"
                )
        name = self._recipe.default_prompt if prompt is None else prompt
        if name is not None and name not in self.prompts:
            raise ValueError(
                f"`prompt` must be one of {list(self.prompts)}, the prompts of {self.folder!r}. "
                f"Received: {shown_values.shown(name)}"
            )
        begin = "" if name is None else self.prompts[name]
        if begin and not self._recipe.include_prompt:
            raise ValueError(
                f"{self.folder!r} leaves the tokens of a prompt out of the pooling "
                "(`include_prompt` of its pooling), which cannot be done."
            )
        return [f"{begin}{text}" for text in texts], len(begin)

    def _finished(self, vectors, normalize):
        """Scales and shortens vectors as the folder and the argument of a call say."""
        # A folder's own scaling is of the whole vector, a caller's of what is left of it.
        is_own = self._recipe.normalize and normalize is not False
        vectors = _scaled(vectors, is_own)[..., : self._recipe.truncate_dim]
        return _scaled(vectors, bool(normalize))

    def _cased(self, text):
        return text.lower() if self._recipe.do_lower_case else text

    def _batches(self, texts, batch_size, show_progress):
        """Yields (indices of texts, their batch, what computes it), the longest texts first."""
        if not isinstance(batch_size, numbers.Integral) or batch_size < 1:
            raise ValueError(f"`batch_size` must be an int of at least 1. Received: {batch_size!r}")
        parts = alike.parts([*map(len, texts)], batch_size)
        self._num_batches += len(parts)
        pooled = self._pooled if self._num_batches < _MANY else self._in_graph
        totals = CutTotals()
        is_shown = show_progress if callable(show_progress) else show_progress and len(parts) > 1
        with counted(len(texts), is_shown) as count:
            for places in parts:
                named = [(f"texts[{place}]", self._example(texts[place])) for place in places]
                yield places, self.processor.make_batch(named, None, totals), pooled
                count(len(places))
        totals.log()

    def _example(self, text):
        """What the processor makes one row of."""
        return {"documents": [{"sentences": [text]}]} if self._is_plain else text

    def trace(self):
        """Makes the graph that computes many batches, so that no later call waits for it.

        >>> encoder = etcmodel.TextEncoder("my_bert")
        >>> encoder.trace()
        >>> encoder.encode("A good book.").shape
        (8,)
        """
        self._num_batches = _MANY
        self.encode([""], show_progress=False)

    def _in_graph(self, features):
        """Computes `_pooled` by a graph for all shapes."""
        features = {name: tf.constant(value, tf.int32) for name, value in features.items()}
        if (names := tuple(features)) not in self._graphs:
            specs = {
                name: tf.TensorSpec([None] * x.shape.rank, x.dtype) for name, x in features.items()
            }
            self._graphs[names] = tf.function(self._pooled, input_signature=[specs])
        return self._graphs[names](features)

    @without_autograph
    def _pooled(self, features):
        """The vectors of a batch's texts, or of the sentences that `_SENTENCES` counts."""
        features = dict(features)
        links = features.pop(_SENTENCES, None)
        long_output, global_output, inputs = self._outputs(features)
        if links is None:
            kinds = self._recipe.poolings
            found = [pooling.pool(long_output, global_output, inputs, kind) for kind in kinds]
            return tf.concat(found, -1)
        by_number = tf.zeros([tf.shape(links)[0], tf.reduce_max(links) + 1, 0])
        inputs = dataclasses.replace(inputs, links=tf.convert_to_tensor(links))
        return pooling.pool(long_output, by_number, inputs, "sentence")

    def _outputs(self, batch):
        """The arguments of `pooling.pool`: outputs of both inputs, and `features.EncoderInputs`."""
        config = self.encoder.config
        if self._has_global_side:
            names = getattr(self.processor, "relation_names", ())
            if self._is_plain:
                names, kept = (), ("token_ids", "segment_ids", "example_ids")
                batch = {name: batch[name] for name in kept}
            inputs = features_lib.completed(batch, config, names)
            return (*self.encoder(**inputs.arguments, training=False), inputs)
        if "token_ids" in batch:  # Of an `EtcProcessor`.
            batch = processed_batches.text_arguments(batch, config)
        outputs = self.encoder(**batch, training=False)
        hidden = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
        mask = tf.cast(batch["attention_mask"], tf.int32)
        nothing = mask[:, :0]  # There is no global input.
        return hidden, nothing, features_lib.EncoderInputs(batch, mask, nothing, mask - 1)


def _is_plain(encoder):
    """Whether an encoder reads a text as a whole, without global tokens: bool.

    So does an ETC that is a BERT, by its config, unless its processor tells that it has been
    trained with a global token for sentences, or with relations.
    """
    if getattr(encoder.config, "global_block_length", None) != 0:
        return False
    settings = encoder.processor.config
    return settings.global_token_id is None and not settings.relation_names


def _check_pooling(kind):
    among = tuple(x for x in pooling.POOLINGS if x != "sentence")
    pooling.check_pooling(kind, among)


def _load(folder, named):
    """The encoder in a folder, with its processor."""
    if seq2seq.is_of(folder):
        raise ValueError(
            f"{named!r} holds an encoder-decoder. A `TextEncoder` needs an encoder, such as a "
            "BERT, a Longformer or an ETC."
        )
    config = pretrained.folder_config(folder, 1, 1)
    system = systems.find(config.model_type)
    encoder = pretrained.from_pretrained(folder, as_class=system.encoder_class)
    if encoder.processor is None:
        raise ValueError(f"{named!r} has no vocabulary, which a `TextEncoder` needs.")
    if not hasattr(encoder.processor, "make_batch"):
        encoder.processor()  # It says why it cannot make batches.
    return encoder


def _scaled(vectors, normalize):
    return tf.math.l2_normalize(vectors, axis=-1) if normalize else vectors


def _sentence_spans(text, begin, splitter):
    """The (start, end) of each sentence of a text behind its prompt."""
    spans = []
    for sentence in splitter(text[begin:]):
        start = text.index(sentence, begin)
        begin = start + len(sentence)
        spans.append((start, begin))
    return spans


def _links(encodings, spans, shape):
    """The sentence of each token: int32 [batch, long_len], -1 for none."""
    links = np.full(shape, -1, np.int32)
    for row, (encoding, of_text) in enumerate(zip(encodings, spans, strict=True)):
        starts, ends = np.array(of_text, np.int64).reshape(-1, 2).T
        # The last character counts: a token of byte-level BPE may begin with the space before it.
        lasts = encoding.offsets[:, 1] - 1
        numbers_of = np.searchsorted(starts, lasts, side="right") - 1
        is_in = (numbers_of >= 0) & (encoding.texts >= 0)
        is_in &= lasts < np.append(ends, 0)[numbers_of]
        links[row, : len(lasts)] = np.where(is_in, numbers_of, -1)
    return links


@contextlib.contextmanager
def counted(total, is_shown=True):
    """Yields a function that takes the number of further texts done, and shows them.

    Args:
        total: int.
        is_shown: bool, or the function itself. Without the package for progress, nothing is shown.
    """
    shown = contextlib.nullcontext(is_shown if callable(is_shown) else lambda number: None)
    if is_shown and not callable(is_shown):
        with contextlib.suppress(extras.MissingExtraError):  # Vectors do not need it.
            from etcmodel import progress_bar

            shown = progress_bar.counted("encoding", total=total, unit="texts")
    with shown as count:
        yield count
