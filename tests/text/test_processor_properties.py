"""What holds for every batch: nothing is lost or mixed, and the features are those of a twin."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.processors import lists

TEXTS = st.text(st.sampled_from("ab emma.?! it\n"), max_size=40)


CONTENTS = st.one_of(
    st.fixed_dictionaries({"text": TEXTS}),
    st.fixed_dictionaries({"documents": st.lists(TEXTS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"paragraphs": st.lists(TEXTS, max_size=3)}),
    st.fixed_dictionaries({"question": st.just("who?"), "text": TEXTS}),
)


OPTIONS = st.fixed_dictionaries(
    {
        "max_long_len": st.integers(8, 30),
        "max_global_len": st.integers(5, 12),
        "truncation": st.sampled_from(["tokens", "blocks"]),
        "give_way": st.sampled_from(["end", "start", "longest"]),
        "stride": st.sampled_from([None, 0, 2]),
        "pack": st.booleans(),
        "special_tokens": st.booleans(),
        "whole_token": st.booleans(),
        "question_globals": st.sampled_from(["block", "tokens"]),
        "relation_names": st.just(("part_of",)),
    }
)


@settings(max_examples=200)
@given(st.lists(CONTENTS, min_size=1, max_size=4), OPTIONS)
def test_nothing_is_lost_and_nothing_is_mixed(processor, examples, options):
    batch = processor(examples, settings=options)
    for number in range(len(examples)):
        windows = batch.windows(number)
        source = windows[0].source
        new = []
        for x in windows:
            fresh = np.arange(len(x.pieces)) >= x.first_new
            is_question = (x.window == 0) & (x.pieces < len(source.ids))
            new += x.pieces[(x.pieces >= 0) & (fresh | (is_question & ~fresh))].tolist()
        assert len(new) == len(set(new))
        assert len(new) + windows[0].cut.num_tokens == len(source.ids)
        if options["stride"] is not None:
            assert not windows[0].cut
    used = np.zeros_like(batch["token_ids"])
    for x in batch.encodings:
        where = slice(x.place, x.place + len(x.token_ids))
        used[x.row, where] += 1
        assert (batch["example_ids"][x.row, where] == x.number).all()
        np.testing.assert_array_equal(batch["token_ids"][x.row, where], x.token_ids)
        own = batch["links"][x.row, where]
        linked = batch["global_example_ids"][x.row][own[own >= 0]]
        assert (linked == x.number).all()
    np.testing.assert_array_equal(used, batch["example_ids"] > 0)
    for row, pairs in enumerate(batch["edges/part_of"]):
        ends = batch["global_example_ids"][row][pairs[pairs[:, 0] >= 0]]
        assert (ends[:, 0] == ends[:, 1]).all() and (ends > 0).all()
    assert batch["token_ids"].shape[1] <= options["max_long_len"]
    assert batch["global_token_ids"].shape[1] <= options["max_global_len"]


@given(st.lists(CONTENTS, min_size=1, max_size=4))
def test_a_batch_has_what_its_examples_have_alone(processor, examples):
    together = processor(examples)
    for row, example in enumerate(examples):
        alone = processor([example])
        for name, array in alone.items():
            np.testing.assert_array_equal(together[name][row, : array.shape[1]], array[0])
            assert set(together[name][row, array.shape[1] :].flat) <= {0, -1}


def twin(tokenizer, document):
    """The features of a document, token by token."""
    vocab = tokenizer.vocab
    tokens, links, segments, globals_ = ["[CLS]"], [0], [0], [0]
    is_question = [block.kind == "question" for block in document.blocks]
    for index, block in enumerate(document.blocks):
        globals_.append(1 + index)
        pieces = tokenizer.tokenize(document.block_text(block))
        tokens += pieces
        links += [1 + index] * len(pieces)
        segments += [int(any(is_question) and not is_question[index])] * len(pieces)
        if is_question[index]:
            tokens, links, segments = [*tokens, "[SEP]"], [*links, 0], [*segments, 0]
    if not all(is_question) or not is_question:
        tokens, links = [*tokens, "[SEP]"], [*links, 0]
        segments = [*segments, int(any(is_question))]
    parts = [[1 + i, 1 + x.parent] for i, x in enumerate(document.blocks) if x.parent >= 0]
    return {
        "token_ids": [[vocab[token] for token in tokens]],
        "segment_ids": [segments],
        "global_token_ids": [[vocab["[CLS]"]] * len(globals_)],
        "global_segment_ids": [[0] * len(globals_)],
        "links": [links],
        "example_ids": [[1] * len(tokens)],
        "global_example_ids": [[1] * len(globals_)],
        "edges/part_of": [parts],
    }


@settings(max_examples=150)
@given(CONTENTS)
def test_features_are_those_of_the_twin(processor, content):
    batch = processor([content], settings={"relation_names": ("part_of",)})
    assert lists(batch) == twin(processor.tokenizer, processor.read(content))
