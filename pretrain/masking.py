"""Dynamic masking of windows, with shapes that do not depend on the text.

First, whole sentences are masked for contrastive predictive coding, then whole words of the rest
(or single tokens, as in windows of text) for masked language modeling (paper, section 3.5 and
appendix C). All random draws are stateless: a window's masks depend only on the seed.
"""

import tensorflow as tf

__all__ = ["mask_batch", "mask_window"]

_MASKED_SHARE, _RANDOM_SHARE = 0.8, 0.1  # Devlin et al. 2018, appendix A.1.
_ADDED = (
    "mlm_positions",
    "mlm_labels",
    "mlm_mask",
    "cpc_sentences",
    "cpc_mask",
    "cpc_token_ids",
    "cpc_lengths",
)
_LAST = 2.0  # Sorts after every number drawn from [0, 1).


def mask_batch(features, indices, seed, config):
    """`mask_window` for every window of a batch.

    Args:
        features: dict of int32 [batch, ...], as in `mask_window`.
        indices: int64 [batch]. Indices of the windows; each has different masks.
        seed: int. Seed of the masks.
        config: `MaskingConfig`.
    Returns:
        dict of tensors [batch, ...], as from `mask_window`.
    """

    def mask(row):
        window, index = row
        return mask_window(
            window, tf.random.experimental.stateless_fold_in([seed, 0], index), config
        )

    dtypes = dict.fromkeys((*features, *_ADDED), tf.int32)
    del dtypes["long_word_starts"]  # No longer needed.
    return tf.map_fn(mask, (features, indices), fn_output_signature=dtypes)


def mask_window(features, seed, config):
    """Chooses and masks the sentences and tokens to predict.

    Exactly the requested fractions are chosen, as far as there are short enough sentences and words
    of fitting lengths. Fractional counts are rounded at random, so that the mean is right.

    Args:
        features: dict of int32 `long_token_ids`, `long_word_starts`, `sentence_ids` [long_len],
            `global_token_ids` [global_len]; others are passed on.
        seed: int32 [2].
        config: `MaskingConfig`.
    Returns:
        dict of int32: the features without `long_word_starts`, `long_token_ids` with masks,
        `global_token_ids` with `config.cpc_global_token_id` for the masked sentences, and
        with M = `config.max_mlm_tokens`, C = `config.max_cpc_sentences` and
        S = `config.max_cpc_sentence_length`:
        `mlm_positions`, `mlm_labels` [M]: tokens to predict, from left to right, and their ids;
        `mlm_mask` [M]: 1 for real ones;
        `cpc_sentences` [C]: indices of the masked sentences; `cpc_mask` [C]: 1 for real ones;
        `cpc_token_ids` [C, S], `cpc_lengths` [C]: their tokens, not masked, and how many.
    """
    cpc_seed, mlm_seed, replacement_seed = tf.unstack(
        tf.random.experimental.stateless_split(seed, 3)
    )
    is_special = tf.reduce_any(
        features["long_token_ids"][:, tf.newaxis]
        == tf.constant(config.special_token_ids, tf.int32, [len(config.special_token_ids)]),
        axis=1,
    )
    may_be_masked = (features["sentence_ids"] >= 0) & ~is_special
    cpc = _choose_sentences(features, cpc_seed, config)
    in_cpc = _is_in_sentences(features["sentence_ids"], cpc)
    word_starts = features["long_word_starts"]
    if not config.whole_words:
        word_starts = tf.ones_like(word_starts)
    chosen = _choose_words(
        {**features, "long_word_starts": word_starts}, may_be_masked & ~in_cpc, mlm_seed, config
    )
    token_ids = _replace(features["long_token_ids"], chosen, replacement_seed, config)
    token_ids = tf.where(in_cpc & may_be_masked, config.mask_token_id, token_ids)
    kept = {name: x for name, x in features.items() if name != "long_word_starts"}
    if config.cpc_global_token_id is not None:
        is_masked = _is_in_sentences(tf.range(config.global_seq_length), cpc)
        kept["global_token_ids"] = tf.where(
            is_masked, config.cpc_global_token_id, features["global_token_ids"]
        )
    return {
        **kept,
        "long_token_ids": token_ids,
        **_mlm_targets(features["long_token_ids"], chosen, config.max_mlm_tokens),
        **cpc,
    }


def _choose_sentences(features, seed, config):
    """The `cpc_` features."""
    sentence_ids = features["sentence_ids"]
    num_global, max_length = config.global_seq_length, config.max_cpc_sentence_length
    count_seed, order_seed = tf.unstack(tf.random.experimental.stateless_split(seed, 2))
    # Padding has the index -1, which segment sums leave out.
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(sentence_ids), sentence_ids, num_global)
    positions = tf.range(config.long_seq_length)
    starts = tf.math.unsorted_segment_min(positions, sentence_ids, num_global)
    num_sentences = tf.math.count_nonzero(lengths, dtype=tf.int32)
    num_chosen = _share_of(num_sentences, config.cpc_share, count_seed)
    fits = (lengths > 0) & (lengths <= max_length)
    draws = tf.random.stateless_uniform([num_global], order_seed)
    order = tf.argsort(tf.where(fits, draws, _LAST), stable=True)[: config.max_cpc_sentences]
    num_chosen = tf.minimum(num_chosen, tf.math.count_nonzero(fits, dtype=tf.int32))
    is_real = tf.range(config.max_cpc_sentences) < num_chosen
    lengths = tf.where(is_real, tf.gather(lengths, order), 0)
    offsets = tf.range(max_length)
    # [sentences, 1] + [tokens] -> [sentences, tokens]
    places = tf.where(is_real, tf.gather(starts, order), 0)[:, tf.newaxis] + offsets
    token_ids = tf.gather(
        features["long_token_ids"], tf.minimum(places, config.long_seq_length - 1)
    )
    return {
        "cpc_sentences": tf.where(is_real, order, 0),
        "cpc_mask": tf.cast(is_real, tf.int32),
        "cpc_token_ids": tf.where(offsets < lengths[:, tf.newaxis], token_ids, 0),
        "cpc_lengths": lengths,
    }


def _is_in_sentences(sentence_ids, cpc):
    """bool [tokens]: which tokens, by their sentences, belong to the chosen sentences."""
    chosen = tf.where(cpc["cpc_mask"] > 0, cpc["cpc_sentences"], -2)
    return tf.reduce_any(sentence_ids[:, tf.newaxis] == chosen, axis=1)


def _choose_words(features, may_be_masked, seed, config):
    """bool [long_len]: the tokens of words that are drawn until the requested fraction is reached.

    Words are taken in random order as long as they fit. The rest, which is shorter than the word
    that did not fit, is filled with the next words of one token.
    """
    count_seed, order_seed = tf.unstack(tf.random.experimental.stateless_split(seed, 2))
    length = config.long_seq_length
    word_ids = tf.cumsum(features["long_word_starts"]) - 1
    word_ids = tf.where(features["sentence_ids"] >= 0, word_ids, -1)
    # Sums leave out the index -1.
    sizes = tf.math.unsorted_segment_sum(tf.ones_like(word_ids), word_ids, length)
    num_free = tf.math.unsorted_segment_sum(tf.cast(may_be_masked, tf.int32), word_ids, length)
    is_free = (sizes > 0) & (num_free == sizes)
    num_tokens = tf.reduce_sum(tf.where(is_free, sizes, 0))
    num_chosen = _share_of(num_tokens, config.mlm_share, count_seed)
    draws = tf.random.stateless_uniform([length], order_seed)
    order = tf.argsort(tf.where(is_free, draws, _LAST), stable=True)
    sizes, is_free = tf.gather(sizes, order), tf.gather(is_free, order)
    is_chosen = is_free & (tf.cumsum(sizes) <= num_chosen)
    num_missing = num_chosen - tf.reduce_sum(tf.where(is_chosen, sizes, 0))
    is_single = is_free & ~is_chosen & (sizes == 1)
    is_chosen |= is_single & (tf.cumsum(tf.cast(is_single, tf.int32)) <= num_missing)
    is_chosen = tf.scatter_nd(order[:, tf.newaxis], tf.cast(is_chosen, tf.int32), [length])
    return tf.gather(is_chosen > 0, tf.maximum(word_ids, 0)) & (word_ids >= 0)


def _share_of(count, share, seed):
    """int32 []: `share * count`, randomly rounded up or down, with the right mean."""
    exact = share * tf.cast(count, tf.float32)
    return tf.cast(tf.floor(exact + tf.random.stateless_uniform([], seed)), tf.int32)


def _replace(token_ids, chosen, seed, config):
    """Of the chosen tokens, 80 % become masks, 10 % become random tokens, 10 % stay unchanged."""
    kind_seed, token_seed = tf.unstack(tf.random.experimental.stateless_split(seed, 2))
    shape = tf.shape(token_ids)
    kinds = tf.random.stateless_uniform(shape, kind_seed)
    ordinary = tf.constant(config.random_token_ids, tf.int32)
    draws = tf.random.stateless_uniform(shape, token_seed, 0, len(ordinary), tf.int32)
    replaced = tf.where(
        kinds < _MASKED_SHARE,
        config.mask_token_id,
        tf.where(kinds < _MASKED_SHARE + _RANDOM_SHARE, tf.gather(ordinary, draws), token_ids),
    )
    return tf.where(chosen, replaced, token_ids)


def _mlm_targets(token_ids, chosen, max_tokens):
    """The `mlm_` features."""
    order = tf.argsort(tf.cast(~chosen, tf.int32), stable=True)[:max_tokens]
    is_real = tf.gather(chosen, order)
    return {
        "mlm_positions": tf.where(is_real, order, 0),
        "mlm_labels": tf.where(is_real, tf.gather(token_ids, order), 0),
        "mlm_mask": tf.cast(is_real, tf.int32),
    }
