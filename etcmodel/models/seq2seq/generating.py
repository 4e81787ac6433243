"""Generation with a model that has an encoder and a decoder."""

import dataclasses

import tensorflow as tf

from etcmodel.generation import GenerationSettings, beam_search, sample

__all__ = ["generate"]


def generate(model, input_ids, attention_mask=None, *, with_scores=False, **settings):
    """Sequences for inputs, by one compiled loop.

    Args:
        model: with `config`, `encoder`, `decoder` (methods `begin` and `step`) and `logits`.
        input_ids: int [batch, length].
        attention_mask: 0/1 int [batch, length], or None. 0 for padding.
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
    return _compiled(model, input_ids, attention_mask, fields, with_scores)


@tf.function(autograph=False, reduce_retracing=True)
def _compiled(model, input_ids, attention_mask, fields, with_scores):
    settings, config = GenerationSettings(**dict(fields)), model.config
    encoded = model.encoder(input_ids, attention_mask, training=False)["last_hidden_state"]
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
