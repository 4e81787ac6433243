"""Which tokens and sentences are masked, and what is left of them."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.pretrain import masking
from etcmodel.pretrain.config import MaskingConfig
from etcmodel.text import tokenization
from tests.pretrain import windows

MASK, NUM_SPECIAL = 5, 6


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return windows.make_tokenizer(tmp_path_factory.mktemp("vocab"))


@functools.cache
def compiled(mlm_share, cpc_share, **options):
    config = MaskingConfig(
        mask_token_id=MASK,
        special_token_ids=(0, 3, 4, 5),
        random_token_ids=tuple(range(NUM_SPECIAL, len(windows.VOCAB))),
        long_seq_length=windows.LONG,
        global_seq_length=windows.GLOBAL,
        mlm_share=mlm_share,
        cpc_share=cpc_share,
        max_cpc_sentence_length=8,
        **options,
    )
    mask = tf.function(lambda window, seed: masking.mask_window(window, seed, config))
    return config, mask


def draw_window(seed):
    """A window of random words of one to four pieces, with [CLS] and [SEP] here and there."""
    rng = np.random.default_rng(seed)
    ids, starts, sentences = [], [], []
    for sentence in range(rng.integers(1, windows.GLOBAL + 1)):
        for _ in range(rng.integers(1, 5)):
            size = rng.integers(1, 5)
            ids += rng.integers(NUM_SPECIAL, len(windows.VOCAB), size).tolist()
            starts += [1] + [0] * (size - 1)
            sentences += [sentence] * size
        if rng.random() < 0.3:
            ids.append(int(rng.choice([3, 4])))
            starts.append(1)
            sentences.append(sentence)
    length = min(len(ids), windows.LONG)
    padding = [0] * (windows.LONG - length)
    num_sentences = sentences[length - 1] + 1
    return {
        "long_token_ids": ids[:length] + padding,
        "long_word_starts": starts[:length] + padding,
        "sentence_ids": sentences[:length] + [-1] * len(padding),
        "global_token_ids": [1] * num_sentences + [0] * (windows.GLOBAL - num_sentences),
    }


def mask_drawn(seed, mlm_share=0.15, cpc_share=0.2, **options):
    window = draw_window(seed)
    config, mask = compiled(mlm_share, cpc_share, **options)
    masked = mask(windows.tensors(window), tf.constant([seed, 1], tf.int32))
    return (
        {name: np.array(values) for name, values in window.items()},
        {name: values.numpy() for name, values in masked.items()},
        config,
    )


seeds = given(st.integers(0, 10**6))
many = settings(max_examples=60)


def words_of(window):
    """The word that each token belongs to; -1 for padding."""
    real = window["sentence_ids"] >= 0
    return np.where(real, np.cumsum(window["long_word_starts"]) - 1, -1)


@seeds
@many
def test_words_are_predicted_whole(seed):
    window, masked, _ = mask_drawn(seed, mlm_share=0.5, cpc_share=0.5)
    chosen = set(masked["mlm_positions"][masked["mlm_mask"] > 0])
    words = words_of(window)
    for word in {words[position] for position in chosen}:
        assert set(np.flatnonzero(words == word)) <= chosen


@seeds
@many
def test_tokens_are_drawn_one_by_one_without_whole_words(seed):
    window, masked, config = mask_drawn(seed, mlm_share=0.5, cpc_share=0.0, whole_words=False)
    special = np.isin(window["long_token_ids"], config.special_token_ids)
    free = (window["sentence_ids"] >= 0) & ~special
    chosen = masked["mlm_positions"][masked["mlm_mask"] > 0]
    assert free[chosen].all() and abs(len(chosen) - 0.5 * free.sum()) < 1


def test_tokens_of_a_word_are_masked_independently():
    """Of two tokens, of which 0.8 are to be masked: the first, the second or none."""
    window = windows.tensors(
        {
            "long_token_ids": [NUM_SPECIAL, NUM_SPECIAL + 1] + [0] * (windows.LONG - 2),
            "long_word_starts": [1] + [0] * (windows.LONG - 1),
            "sentence_ids": [0, 0] + [-1] * (windows.LONG - 2),
            "global_token_ids": [1] + [0] * (windows.GLOBAL - 1),
        }
    )

    def places(seed, **options):
        _, mask = compiled(0.4, 0.0, **options)
        masked = mask(window, tf.constant([seed, 1], tf.int32))
        return tuple(masked["mlm_positions"][masked["mlm_mask"] > 0].numpy())

    assert {places(seed, whole_words=False) for seed in range(30)} == {(), (0,), (1,)}
    assert {places(seed) for seed in range(5)} == {()}  # The word does not fit into a token.


@seeds
@many
def test_masked_sentences_may_have_a_global_token_of_their_own(seed):
    window, masked, _ = mask_drawn(seed, cpc_share=0.5, cpc_global_token_id=2)
    chosen = masked["cpc_sentences"][masked["cpc_mask"] > 0]
    expected = window["global_token_ids"].copy()
    expected[chosen] = 2
    np.testing.assert_array_equal(masked["global_token_ids"], expected)
    _, plain, _ = mask_drawn(seed, cpc_share=0.5)
    np.testing.assert_array_equal(plain["global_token_ids"], window["global_token_ids"])


@seeds
@many
def test_special_tokens_and_padding_are_never_touched(seed):
    window, masked, config = mask_drawn(seed, mlm_share=0.5, cpc_share=0.5)
    before, after = window["long_token_ids"], masked["long_token_ids"]
    special = np.isin(before, config.special_token_ids) | (window["sentence_ids"] < 0)
    np.testing.assert_array_equal(before[special], after[special])
    positions = masked["mlm_positions"][masked["mlm_mask"] > 0]
    assert not special[positions].any()
    changed = after[(after != before) & (after != MASK)]
    assert not np.isin(changed, config.special_token_ids).any()


@seeds
@many
def test_shares_are_as_asked(seed):
    window, masked, config = mask_drawn(seed, mlm_share=0.3)
    num_sentences = window["sentence_ids"].max() + 1
    lengths = np.bincount(window["sentence_ids"][window["sentence_ids"] >= 0])
    num_fitting = (lengths <= config.max_cpc_sentence_length).sum()
    num_cpc = masked["cpc_mask"].sum()
    asked = config.cpc_share * num_sentences
    assert num_cpc < asked + 1
    assert num_cpc > asked - 1 or num_cpc == num_fitting

    in_cpc = np.isin(window["sentence_ids"], masked["cpc_sentences"][masked["cpc_mask"] > 0])
    special = np.isin(window["long_token_ids"], config.special_token_ids)
    free = (window["sentence_ids"] >= 0) & ~in_cpc & ~special
    words = words_of(window)
    sizes = np.bincount(words[free]) if free.any() else np.zeros(1, int)
    chosen = masked["mlm_positions"][masked["mlm_mask"] > 0]
    assert len(chosen) < config.mlm_share * free.sum() + 1
    # Fewer only where no word fits into what is missing.
    left = [size for word, size in enumerate(sizes) if size and word not in words[chosen]]
    missing = int(config.mlm_share * free.sum()) - len(chosen)
    assert missing <= 0 or missing < max(left) and 1 not in left


@seeds
@many
def test_masked_sentences_are_masked_whole_and_kept_aside(seed):
    window, masked, config = mask_drawn(seed, mlm_share=0.3)
    real = masked["cpc_mask"] > 0
    assert len(set(masked["cpc_sentences"][real])) == real.sum()
    for i in np.flatnonzero(real):
        at = np.flatnonzero(window["sentence_ids"] == masked["cpc_sentences"][i])
        tokens = window["long_token_ids"][at]
        assert len(at) == masked["cpc_lengths"][i] <= config.max_cpc_sentence_length
        np.testing.assert_array_equal(masked["cpc_token_ids"][i, : len(at)], tokens)
        hidden = ~np.isin(tokens, config.special_token_ids)
        assert (masked["long_token_ids"][at][hidden] == MASK).all()
        assert not np.isin(masked["mlm_positions"][masked["mlm_mask"] > 0], at).any()
    assert not masked["cpc_lengths"][~real].any() and not masked["cpc_token_ids"][~real].any()


@seeds
@many
def test_labels_are_the_tokens_before_and_nothing_else_changes(seed):
    window, masked, _ = mask_drawn(seed, cpc_share=0.0)
    real = masked["mlm_mask"] > 0
    positions = masked["mlm_positions"][real]
    assert (np.diff(positions) > 0).all()
    restored = masked["long_token_ids"].copy()
    restored[positions] = masked["mlm_labels"][real]
    np.testing.assert_array_equal(restored, window["long_token_ids"])
    assert masked["cpc_sentences"].shape == (0,)


def make_batch(size):
    """`size` times the same window without special tokens."""
    rng = np.random.default_rng(0)
    row = {
        "long_token_ids": rng.integers(NUM_SPECIAL, len(windows.VOCAB), windows.LONG),
        "long_word_starts": np.ones(windows.LONG),
        "sentence_ids": np.repeat(np.arange(8), windows.LONG // 8),
        "global_token_ids": np.array([1] * 8 + [0] * 2),
    }
    return {name: tf.constant(np.tile(values, (size, 1)), tf.int32) for name, values in row.items()}


def test_over_many_windows_shares_and_replacements_are_right():
    config, _ = compiled(0.15, 0.2)
    batch, size = make_batch(600), 600
    masked = tf.function(masking.mask_batch)(batch, tf.range(size, dtype=tf.int64), 7, config)
    num_sentences = masked["cpc_mask"].numpy().sum()
    assert num_sentences / (8 * size) == pytest.approx(0.2, abs=0.01)
    num_tokens = masked["mlm_mask"].numpy().sum()
    num_left = windows.LONG * size - num_sentences * windows.LONG // 8
    assert num_tokens / num_left == pytest.approx(0.15, abs=0.005)

    real = masked["mlm_mask"].numpy() > 0
    after = tf.gather(masked["long_token_ids"], masked["mlm_positions"], batch_dims=1).numpy()
    before = masked["mlm_labels"].numpy()
    num_ordinary = len(windows.VOCAB) - NUM_SPECIAL
    assert (after[real] == MASK).mean() == pytest.approx(0.8, abs=0.02)
    kept = 0.1 + 0.1 / num_ordinary  # A random token is sometimes the same.
    assert (after[real] == before[real]).mean() == pytest.approx(kept, abs=0.02)


def test_masks_depend_on_seed_and_number_of_the_window_alone():
    config, _ = compiled(0.15, 0.2)
    mask = tf.function(masking.mask_batch)
    whole = mask(make_batch(4), tf.range(4, dtype=tf.int64), 7, config)
    rest = mask(make_batch(4), tf.range(2, 6, dtype=tf.int64), 7, config)
    other = mask(make_batch(4), tf.range(4, dtype=tf.int64), 8, config)
    for name in rest:
        np.testing.assert_array_equal(whole[name][2:], rest[name][:2])
    assert not np.array_equal(whole["mlm_positions"], other["mlm_positions"])
    assert not np.array_equal(whole["mlm_positions"][0], whole["mlm_positions"][1])


def test_ids_come_from_the_vocabulary(tokenizer):
    config = windows.masking_config(tokenizer)
    assert config.mask_token_id == tokenizer.vocab["[MASK]"]
    assert config.special_token_ids == (0, 3, 4, 5)
    assert config.random_token_ids == tuple(range(6, len(windows.VOCAB)))


def test_a_vocabulary_without_a_mask_token_is_refused(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\nrose\n")
    tokenizer = tokenization.FullTokenizer(str(path))
    with pytest.raises(ValueError, match="has no mask token"):
        MaskingConfig.for_tokenizer(tokenizer, long_seq_length=4, global_seq_length=2)


def test_a_share_outside_its_range_is_refused(tokenizer):
    with pytest.raises(ValueError, match=r"`mlm_share` must be between 0 and 1"):
        windows.masking_config(tokenizer, mlm_share=1.5)
