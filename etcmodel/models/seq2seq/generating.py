"""Generation with a model that has an encoder and a decoder."""

import dataclasses

import tensorflow as tf

from etcmodel.generation import GenerationSettings, beam_search, sample

__all__ = ["encoder_inputs", "generate"]

_NOT_OF_ENCODER = ("labels", "decoder_input_ids", "decoder_attention_mask")


def encoder_inputs(batch):
    """What of a batch is the encoder's: all but labels and the decoder's inputs.

    Args:
        batch: dict of tensors by name.
    Returns:
        dict.
    """
    return {name: value for name, value in batch.items() if name not in _NOT_OF_ENCODER}


def generate(
    model, input_ids, attention_mask=None, *, of_encoder=None, with_scores=False, **settings
):
    """Sequences for inputs, by one compiled loop.

    Args:
        model: with `config`, `encoder`, `decoder` (methods `begin` and `step`) and `logits`.
        input_ids: int [batch, length].
        attention_mask: 0/1 int [batch, length], or None. 0 for padding.
        of_encoder: dict of further arguments of the encoder, or None.
        with_scores: bool. Of greedy search and sampling: whether to return `step_scores`.
        **settings: of `GenerationSettings`.
    Returns:
        dict: `sequences`, int32 [batch * num_return_sequences, the longest of them], the start
        token first, padded after the end token; of beams `sequences_scores`, float32 [batch *
        num_return_sequences]; with scores `step_scores`: see `generation.sample`.
    Raises:
        ValueError: as `GenerationSettings`, or if the config has no start token.
    """
    settings = GenerationSettings(**settings)
    if model.config.decoder_start_token_id is None:
        raise ValueError(
            "The config has no `decoder_start_token_id`: load the model with "
            "`decoder_start_token_id=0`, say."
        )
    input_ids = tf.convert_to_tensor(input_ids)
    if attention_mask is not None:
        attention_mask = tf.convert_to_tensor(attention_mask)
    # Their fields, since functions of a graph know equal ones again.
    fields = tuple(dataclasses.asdict(settings).items())
    given = {name: x for name, x in (of_encoder or {}).items() if x is not None}
    given = {name: _as_tensor(x) for name, x in given.items()}
    return _compiled(model, input_ids, attention_mask, given, fields, with_scores)


def _as_tensor(x):
    return x if isinstance(x, tf.RaggedTensor) else tf.convert_to_tensor(x)


@tf.function(autograph=False, reduce_retracing=True)
def _compiled(model, input_ids, attention_mask, of_encoder, fields, with_scores):
    settings, config = GenerationSettings(**dict(fields)), model.config
    encoded = model.encoder(input_ids, attention_mask, training=False, **of_encoder)
    encoded = encoded["last_hidden_state"]
    batch = tf.shape(encoded)[0]
    if settings.do_sample and settings.num_return_sequences > 1:
        num_rows = batch * settings.num_return_sequences
    else:
        num_rows = batch * settings.num_beams
    memory, cache = model.decoder.begin(encoded, attention_mask, num_rows, settings.max_length)

    def step(ids, cache):
        hidden, cache = model.decoder.step(ids, memory, cache)
        return model.logits(hidden), cache

    tokens = {
        "start": config.decoder_start_token_id,
        "eos": config.eos_token_id,
        "pad": config.pad_token_id,
    }
    if settings.num_beams > 1:
        outputs = beam_search(step, cache, batch, settings, **tokens)
    else:
        outputs = sample(step, cache, num_rows, settings, **tokens, with_scores=with_scores)
    return {**outputs, "sequences": _trimmed(outputs["sequences"], config.eos_token_id)}


def _trimmed(sequences, eos):
    """Without the places after the longest sequence."""
    ends = tf.equal(sequences[:, 1:], eos)
    places = tf.argmax(tf.cast(ends, tf.int32), axis=1, output_type=tf.int32) + 2
    lengths = tf.where(tf.reduce_any(ends, axis=1), places, tf.shape(sequences)[1])
    return sequences[:, : tf.reduce_max(lengths)]
