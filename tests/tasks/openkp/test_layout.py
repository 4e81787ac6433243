"""Which words of a page get into the inputs: those that a slow loop takes, one after another."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tasks.openkp import examples, features
from etcmodel.tasks.openkp.config import OpenKpInputConfig

LOOKS = 20 * [1]


def tokenize(word):
    """A token for each letter; none for what is no letter."""
    return [ord(char) for char in word if char.isalpha()]


def page(words, cuts):
    """A page with an element from each even cut to the next."""
    cuts = sorted(min(cut, len(words)) for cut in cuts)
    elements = [
        {"start_idx": a, "end_idx": b, "text": " ".join(words[a:b]), "feature": LOOKS}
        for a, b in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    whole = {"start_idx": len(words) - 1, "end_idx": len(words), "text": words[-1]}
    last = [{**whole, "feature": LOOKS}] if cuts[-1] < len(words) else []
    raw = {"url": "u", "text": " ".join(words), "VDOM": elements + last, "KeyPhrases": []}
    return examples.parse_example(raw)


def slowly(words, spans, max_tokens, max_words, has_room):
    """What `laid_out` is, of the spans that fit."""
    tokens, of_word, of_global, num_words, taken = [], [], [], 0, []
    for begin, end in spans:
        if not has_room(words[begin:end], len(tokens)):
            break
        is_begun = is_full = False
        for word in range(begin, end):
            ids = tokenize(words[word])
            if word >= max_words or len(tokens) + len(ids) > max_tokens:
                is_full = True
                break
            is_begun, num_words = True, word + 1
            tokens += ids
            of_word += [word] * len(ids)
            of_global += [len(taken)] * len(ids)
        taken += [(begin, end)] * is_begun
        if is_full:
            break
    return tokens, of_word, of_global, num_words, taken


def laid_out(example, **fields):
    """(token ids, their words, their global tokens, number of words, spans of global tokens)."""
    config = OpenKpInputConfig(kp_max_length=1, **fields)
    inputs = features.lay_out(example, config, tokenize)
    spans = [(element.begin, element.end) for element in inputs.elements]
    size = config.fixed_block_len
    blocks = -(-len(inputs.token_ids) // size) if size else len(spans)
    assert inputs.num_globals == blocks
    return inputs.token_ids, inputs.word_ids, inputs.global_ids, inputs.num_words, spans


WORDS = st.lists(st.sampled_from(["a", "bb", "ccc", "-", "d-"]), min_size=1, max_size=14)
SIZES = (st.integers(4, 16), st.integers(1, 4))  # Long and global tokens.


@given(WORDS, st.lists(st.integers(0, 14), min_size=2, max_size=8), st.booleans(), *SIZES)
@settings(max_examples=300)
def test_elements_are_taken_while_their_words_fit(
    words, cuts, compatible, long_length, global_length
):
    def has_room(of_element, num_tokens):
        """The release takes no part of an element."""
        num_more = sum(len(tokenize(word)) for word in of_element)
        return not compatible or num_tokens + num_more <= long_length

    example = page(words, cuts)
    try:
        elements = features._elements(example)
    except ValueError as error:
        assert "no element with text" in str(error)
        return
    spans = [(element.begin, element.end) for element in elements[:global_length]]
    max_words = len(words) if compatible else long_length
    expected = slowly(words, spans, long_length, max_words, has_room)
    lengths = {"long_seq_length": long_length, "global_seq_length": global_length}
    if expected[3] > long_length:
        with pytest.raises(ValueError, match=f"{expected[3]} words fit .* --release_compatible"):
            laid_out(example, release_compatible=True, **lengths)
    else:
        assert laid_out(example, release_compatible=compatible, **lengths) == expected


@given(WORDS, st.integers(1, 3), *SIZES)
@settings(max_examples=200)
def test_blocks_take_words_while_they_fit(words, size, long_length, global_length):
    most = min(long_length, size * global_length)
    whole = [(0, len(words))]
    tokens, of_word, _, num_words, _ = slowly(words, whole, most, long_length, lambda *_: True)
    assert laid_out(
        page(words, [0, len(words)]),
        long_seq_length=long_length,
        global_seq_length=global_length,
        fixed_block_len=size,
    ) == (tokens, of_word, [place // size for place in range(len(tokens))], num_words, [])


def test_words_far_behind_those_that_fit_are_not_tokenized():
    asked = []
    words = ["abc"] * 4000
    config = OpenKpInputConfig(long_seq_length=4096, global_seq_length=64)
    example = page(words, [0, 4000])
    features.lay_out(example, config, lambda word: asked.append(word) or [1] * 400)
    assert len(asked) <= 256
    damaged = dataclasses.replace(example, vdom="[]")
    with pytest.raises(ValueError, match="no element with text"):
        features.lay_out(damaged, config, asked.append)
    assert len(asked) <= 256
