"""Text generation with encoder-decoder models."""

import dataclasses

import tensorflow as tf

from etcmodel.generation import GenerationSettings, beam_search, sample
from etcmodel.generation import settings as generation_settings
from etcmodel.layers import sublayers
from etcmodel.models.seq2seq import generation_config as generation_config_lib
from etcmodel.models.seq2seq import inputs
from etcmodel.ops import argument_checks

_OF_DECODER = ("decoder_input_ids", "decoder_attention_mask")
_PROMPT_AXES = {
    "input_ids": "batch length*",
    "decoder_input_ids": "batch prompt_length",
    "decoder_attention_mask": "batch prompt_length",
}


class Generating:
    """A mixin that adds `generate` to a model with `config`, `encoder`, `decoder` and `logits`.

    Attributes:
        generation_config: `GenerationConfig`, the defaults of `generate`, read from the model's
            folder and saved with it; or None.
        encoder_arguments: tuple of str. The encoder's arguments besides ids and mask.
        max_generated_length: int or None. The most tokens of a sequence, if there is a limit.
    """

    generation_config = None
    encoder_arguments = ()
    max_generated_length = None

    @tf.autograph.experimental.do_not_convert
    def generate(self, input_ids, attention_mask=None, *, with_scores=False, **options):
        """Generates sequences by greedy search, sampling, or beam search, in one compiled loop.

        Args:
            input_ids: int [batch, length]; or a batch as in a call of the model, a dict, whose
                labels are ignored.
            attention_mask: 0/1 int [batch, length], or None. 0 for padding.
            decoder_input_ids: int [batch, prompt_length], or None. Prompts to continue. The start
                token is put in front of those that lack it, as in Hugging Face's library; in a
                graph, they must have it.
            decoder_attention_mask: 0/1 int [batch, prompt_length], or None. Must be all 1: the
                prompts of a batch have the same length.
            with_scores: bool. Whether greedy search and sampling also return `step_scores`.
            **options: fields of `GenerationSettings`; `max_new_tokens` and `min_new_tokens`, which
                do not count the start token or the prompt; and the `encoder_arguments`. Options not
                given are taken from `generation_config`; None stands for Hugging Face's default.
        Returns:
            dict: `sequences`, int32 [batch * num_return_sequences, length of the longest],
            beginning with the start token or the prompt, padded after the end token; with beam
            search `sequences_scores`, float32 [batch * num_return_sequences]; with scores
            `step_scores`: see `generation.sample`. In code that XLA compiles, sequences have length
            `max_length`.
        Raises:
            ValueError: naming the setting, if it is unknown or invalid; if there is no start token;
                or naming the argument, if prompts are not ids of the model, do not match the batch,
                are not shorter than `max_length`, or are padded; or if scores are not numbers.

        >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1, decoder_start_token_id=0)
        >>> model = etcmodel.LongT5Model(config)
        >>> model.generate([[7, 8, 1]], max_new_tokens=4, min_new_tokens=4)["sequences"].shape
        TensorShape([1, 5])
        """
        if hasattr(input_ids, "items"):
            batch = {name: x for name, x in input_ids.items() if name != "labels"}
            if attention_mask is not None:
                batch["attention_mask"] = attention_mask
            return self.generate(**{**batch, "with_scores": with_scores, **options})
        of_encoder = {name: options.pop(name, None) for name in self.encoder_arguments}
        of_encoder = {name: _as_tensor(x) for name, x in of_encoder.items() if x is not None}
        of_decoder = {name: options.pop(name, None) for name in _OF_DECODER}
        start, defaults = self.config.decoder_start_token_id, self.generation_config
        start = generation_config_lib.start_token_of(options, start, defaults)
        of_decoder = {"input_ids": input_ids, **of_decoder}
        prompt = _checked_prompt(of_decoder, start, self.config.vocab_size)
        length = 1 if prompt is None else prompt.shape[1]
        settings = self.generation_settings(**options, prompt_length=length)
        sublayers.build_sublayer(self, None)
        input_ids = tf.convert_to_tensor(input_ids)
        if attention_mask is not None:
            attention_mask = tf.convert_to_tensor(attention_mask)
        # Their fields, since traced functions recognize equal ones; but the seed as an input, so
        # that all seeds share a graph.
        fields = dataclasses.asdict(settings)
        seed = tf.constant(fields.pop("seed"), tf.int32)
        fields = tuple(fields.items())
        is_xla = tf.__internal__.get_enclosing_xla_context() is not None
        key = (is_xla, getattr(self, "_num_resized", 0))
        return _generated(
            self, input_ids, attention_mask, prompt, of_encoder, fields, seed, with_scores, key
        )

    def generation_settings(self, *, prompt_length=1, **given):
        """Returns the `GenerationSettings` of a call: see `generation_config.settings_of`.

        Raises:
            ValueError: see there; also if `max_length` exceeds the model's positions.
        """
        defaults, limit = self.generation_config, self.max_generated_length
        settings = generation_config_lib.settings_of(given, self.config, defaults, prompt_length)
        if limit is not None and settings.max_length > limit:
            raise ValueError(
                f"`max_length` must be at most {limit}, as the decoder has {limit - 1} positions. "
                f"Received: {settings.max_length}"
            )
        return settings


def _checked_prompt(given, start, vocab_size):
    """Checks prompts and puts the start token in front: int32 [batch, length], or None.

    Args:
        given: dict of `input_ids` and the decoder's two inputs, each of which may be None.
        start: int or None. The start token; None if there is none, which is reported elsewhere.
        vocab_size: int.
    Raises:
        ValueError: see `generate`.
    """
    mask, prompt = given["decoder_attention_mask"], given["decoder_input_ids"]
    if prompt is None:
        if mask is not None:
            raise ValueError(
                "`decoder_attention_mask` is of `decoder_input_ids`, which are missing."
            )
        return None
    asserts = []
    sizes = argument_checks.check_shapes(given, _PROMPT_AXES, asserts=asserts)
    argument_checks.check_not_empty("decoder_input_ids", sizes["prompt_length"], asserts=asserts)
    words = f"{vocab_size}, which is `vocab_size`"
    name = "decoder_input_ids"
    prompt = argument_checks.checked_ids(name, prompt, vocab_size, words, asserts=asserts)
    if prompt.shape[1] is None:
        argument_checks.fail(f"`{name}` must have a length that is known when tracing.")
    if mask is not None:
        mask = argument_checks.checked_mask(
            "decoder_attention_mask", mask, inputs.KINDS, asserts=asserts
        )
        words = "`decoder_attention_mask` must be all 1: prompts of a batch are of one length."
        argument_checks.check(tf.reduce_all(mask), words, asserts=asserts)
    prompt = tf.cast(prompt, tf.int32)
    if start is None:
        return prompt
    begins = tf.equal(prompt[:, 0], start)
    if tf.executing_eagerly() and not tf.reduce_any(begins):
        return tf.pad(prompt, [[0, 0], [1, 0]], constant_values=start)
    words = f"`{name}` must all begin with `decoder_start_token_id`, {start}, or none of them."
    argument_checks.check(tf.reduce_all(begins), words, asserts=asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(prompt)


def _as_tensor(x):
    return x if isinstance(x, tf.RaggedTensor) else tf.convert_to_tensor(x)


def _generated(*given):
    """What `_compiled` returns; that tokens have no scores is told in a line."""
    try:
        return _compiled(*given)
    except tf.errors.InvalidArgumentError as error:
        if generation_settings.NOT_SCORED not in str(error):
            raise
        raise ValueError(generation_settings.NOT_SCORED) from None


@tf.function(autograph=False, reduce_retracing=True)
def _compiled(model, input_ids, attention_mask, prompt, of_encoder, fields, seed, with_scores, key):
    del key  # Traces for XLA, or of a table since resized, differ: `tf.function` cannot know.
    settings = GenerationSettings(**dict(fields), seed=seed)
    return search(model, input_ids, attention_mask, of_encoder, settings, with_scores, prompt)


def search(model, input_ids, attention_mask, of_encoder, settings, with_scores=False, prompt=None):
    """The loop of `Generating.generate`, in a graph.

    Args:
        model: `Generating`.
        input_ids, attention_mask, with_scores: see there.
        of_encoder: dict of further arguments of the encoder.
        settings: `GenerationSettings` with all special tokens; the seed may be a scalar tensor.
        prompt: int32 [batch, prompt_length], or None for the start token.
    Returns:
        See there.
    """
    encoded = model.encoder(input_ids, attention_mask, training=False, **of_encoder)
    encoded = encoded["last_hidden_state"]
    return decode(model, encoded, attention_mask, settings, with_scores, prompt)


def decode(model, encoded, attention_mask, settings, with_scores=False, prompt=None):
    """Runs the search alone, on an encoder's output.

    Args:
        model, attention_mask, with_scores, prompt: see `search`.
        encoded: float [batch, length, hidden_size].
        settings: as in `search`; or an object with the same attributes, some of which may be
            tensors: `beam_search` is used if `num_beams` is a tensor or above 1, and else `sample`:
            see there.
    Returns:
        See `search`.
    """
    batch = tf.shape(encoded)[0]
    has_beams = tf.is_tensor(settings.num_beams) or settings.num_beams > 1
    num_rows = batch * (settings.num_beams if has_beams else settings.num_return_sequences)
    memory, cache = model.decoder.begin(encoded, attention_mask, num_rows, settings.max_length)

    def step(ids, cache):
        hidden, cache = model.decoder.step(ids, memory, cache)
        return model.logits(hidden), cache

    tokens = {
        "start": settings.decoder_start_token_id if prompt is None else prompt,
        "eos": settings.eos_token_id,
        "pad": settings.pad_token_id,
    }
    if has_beams:
        outputs = beam_search(step, cache, batch, settings, **tokens)
    else:
        outputs = sample(step, cache, num_rows, settings, **tokens, with_scores=with_scores)
    length = 1 if prompt is None else tf.shape(prompt)[1]
    return {**outputs, "sequences": _trimmed(outputs["sequences"], length, settings.eos_token_id)}


def _trimmed(sequences, prompt_length, eos):
    """Cuts off what is behind the longest sequence."""
    if tf.__internal__.get_enclosing_xla_context() is not None:
        return sequences  # Shapes must be known.
    ends = generation_settings.is_one_of(sequences[:, prompt_length:], eos)
    places = tf.argmax(tf.cast(ends, tf.int32), axis=1, output_type=tf.int32)
    places += prompt_length + 1
    lengths = tf.where(tf.reduce_any(ends, axis=1), places, tf.shape(sequences)[1])
    return sequences[:, : tf.reduce_max(lengths)]
