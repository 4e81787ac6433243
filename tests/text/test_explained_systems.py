"""Explanations of all systems alike: pictures, parts of rows, and who attends to whom."""

import functools
import types

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from matplotlib import colors

import etcmodel
from etcmodel import attention_picture, inspection
from etcmodel.models import modeling
from etcmodel.models.gmat import GmatConfig
from etcmodel.models.longformer import LongformerConfig
from etcmodel.models.longt5 import LongT5Config
from etcmodel.models.pegasus_x import PegasusXConfig
from etcmodel.ops import blockwise, key_sets, reach
from etcmodel.text import row_processor
from etcmodel.tools.demos import numerical_reasoning
from tests import page, vocabularies
from tests.models import etcs

MASKED = attention_picture.MASKED
PIECES = page.DOCS.parent / "tests" / "fixtures" / "sentence_pieces" / "spiece.model"
QUESTION = {"question": "How many apples?", "documents": ["The king had 4 apples.", "It was 1."]}
TEXTS = ["Rain fell on the stone bridge. Rain fell."]
CONFIGS = {
    "etc": (
        etcmodel.EtcProcessor,
        modeling.EtcConfig(
            vocab_size=20, local_radius=4, relative_pos_max_distance=3, relative_vocab_size=12
        ),
    ),
    "longformer": (etcmodel.LongformerProcessor, LongformerConfig(attention_window=8)),
    "gmat": (etcmodel.GmatProcessor, GmatConfig(chunk_size=6, num_memory_tokens=3)),
    "gmat_seq2seq": (etcmodel.GmatSeq2SeqProcessor, GmatConfig(chunk_size=6, num_memory_tokens=3)),
    "longt5": (
        etcmodel.Seq2SeqProcessor,
        LongT5Config(
            local_radius=3, global_block_size=4, encoder_attention_type="transient-global"
        ),
    ),
    "pegasus_x": (etcmodel.Seq2SeqProcessor, PegasusXConfig(block_size=6, num_global_tokens=3)),
}
SYSTEMS = pytest.mark.parametrize("system", CONFIGS)


vocab = vocabularies.fixture(numerical_reasoning.vocabulary(), vocabularies.write, "vocab")


@pytest.fixture
def explain(vocab):
    """`explain` of a system's processor, for one batch of it; given texts, of these."""

    def make(system, texts=None):
        kind, config = CONFIGS[system]
        is_seq2seq = kind is etcmodel.Seq2SeqProcessor
        settings = {"relation_names": ["part_of"]} if system == "etc" else {}
        processor = kind(str(PIECES) if is_seq2seq else vocab, **settings)
        batch = processor(texts or (TEXTS if is_seq2seq else [QUESTION]))
        return functools.partial(processor.explain, batch, config=config)

    return make


def panels_of(figure):
    return {axes.get_xlabel(): axes for axes in figure.axes if axes.images}


def lines_of(explained):
    """First words of the lines of the tables, which name tokens."""
    return [line.split()[0] for line in str(explained).splitlines() if line.strip()]


@SYSTEMS
def test_labels_agree_with_the_reasons(explain, system):
    explained = explain(system)()
    labels = explained.pair_labels()
    assert list(labels) == (["l2l"] if system == "longformer" else ["g2g", "g2l", "l2g", "l2l"])
    pieces = labels if system == "etc" else ["l2l"]  # Others have no names for what they add.
    for piece in pieces:
        for (query, key), label in np.ndenumerate(labels[piece]):
            ends = query, key
            if system == "etc":
                ends = f"{piece[0]}{query}", f"{piece[2]}{key}"
            told = explained.why(*ends)
            assert (" does not attend to " not in told) == (label != MASKED), told


@SYSTEMS
def test_a_part_has_the_cells_of_the_whole(explain, system):
    make = explain(system)
    whole = make().pair_labels()
    tokens = [2, 3, 9, 10]
    for part in (make(tokens=[10, 9, 2, 3, 3]), make(tokens=np.array(tokens))):
        for piece, labels in part.pair_labels().items():
            rows, columns = (
                tokens if side == "l" else range(whole[f"{side}2l"].shape[0]) for side in piece[::2]
            )
            np.testing.assert_array_equal(labels, whole[piece][np.ix_(rows, columns)])
    part = make(tokens=range(3, 7))
    prefix = "l" if system == "etc" else ""
    named = [x for x in lines_of(part) if x.removeprefix(prefix).isdigit()]
    assert named == [f"{prefix}{place}" for place in range(3, 7)]
    assert f"shown: 4 of {whole['l2l'].shape[0]} " in str(part)
    assert part.why(*(("l0", "l1") if system == "etc" else (0, 1)))  # Of the whole row, still.


BLOCKS = {  # Some; the column and what it has for their tokens; global tokens, if not all.
    "etc": ([1, 4], "linked to", ("g1 question", "g4 sentence"), [1, 4]),
    "longformer": ([0, 2], "from", ("examples[0].question", "examples[0].documents[1]"), None),
    "gmat": ([1], "chunk", ("1",), None),
    "gmat_seq2seq": ([1], "chunk", ("1",), None),
    "longt5": ([1, 2], "block", ("1", "2"), [1, 2]),
    "pegasus_x": ([1], "block", ("1",), None),
}


def named_by(explained, column, cells):
    """The names of tokens whose cells of a column of the table begin like one of these."""
    lines = str(explained).splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:1] in (["long"], ["place"]))
    start = lines[first].index(column)
    return [line.split()[0] for line in lines[first + 1 :] if line[start:].startswith(cells)]


@SYSTEMS
def test_blocks_are_those_of_the_table(explain, system):
    make, (blocks, column, cells, shown) = explain(system), BLOCKS[system]
    whole, part = make().pair_labels(), make(blocks=blocks)
    names = named_by(make(), column, cells)
    assert named_by(part, column, "") == names
    tokens = [int(name.removeprefix("l")) for name in names]
    assert 3 < len(tokens) < len(whole["l2l"])
    for piece, labels in part.pair_labels().items():
        everything = range(len(whole.get("g2g", ())))
        rows, columns = (tokens if side == "l" else shown or everything for side in piece[::2])
        np.testing.assert_array_equal(labels, whole[piece][np.ix_(rows, columns)])


@SYSTEMS
def test_each_panel_shows_its_labels_and_names(explain, system):
    explained = explain(system)()
    labels, panels = explained.pair_labels(), panels_of(explained.figure())
    assert list(panels) == list(labels)
    seen = {}
    for piece, pairs in labels.items():
        shown = panels[piece].images[0].get_array()
        for label, color in zip(pairs.flat, shown.reshape(-1, 3), strict=True):
            assert seen.setdefault(label, colors.to_hex(color)) == colors.to_hex(color)
    assert len(set(seen.values())) == len(seen) >= 3 - (system == "longformer")
    names = {x.get_text() for x in explained.figure().legends[0].get_texts()}
    assert "masked: may not attend" in names
    outer = panels[next(x for x in labels if x[0] == "l")]
    assert len([x.get_text() for x in outer.get_yticklabels()]) == len(labels["l2l"])


@SYSTEMS
@pytest.mark.parametrize(
    "options, message",
    [
        ({"tokens": range(3, 1000)}, r"`tokens` must be .* from 0 to \d+. .* range\(3, 1000\)"),
        ({"tokens": []}, r"`tokens` must be a range or a list of numbers .* Received: \[\]"),
        ({"tokens": "l3"}, "`tokens` must be a range or a list of numbers .* Received: 'l3'"),
        ({"tokens": [-1]}, r"`tokens` must be .* Received: \[-1\]"),
        ({"tokens": [True]}, r"`tokens` must be .* Received: \[True\]"),
        ({"blocks": [0.5]}, r"`blocks` must be a range or a list of numbers from 0 to \d+\."),
        ({"blocks": [99]}, r"`blocks` must be a range or a list of numbers from 0 to \d+\."),
        ({"blocks": 1}, "`blocks` must be a range or a list of numbers .* Received: 1"),
        ({"tokens": [1], "blocks": [1]}, "Give `tokens` or `blocks`, one of the two."),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_line(explain, system, options, message):
    with pytest.raises(ValueError, match=message) as told:
        explain(system)(**options)
    assert "\n" not in str(told.value) and len(str(told.value)) < 200


@SYSTEMS
def test_of_a_long_row_the_table_has_runs_and_the_picture_says_how_to_see_more(explain, system):
    long = 40 * "The king had 4 apples. "
    is_seq2seq = system in ("longt5", "pegasus_x")
    make = explain(system, [long] if is_seq2seq else [{**QUESTION, "documents": [long, long]}])
    explained = make()
    lines = str(explained).splitlines()
    assert len(explained.pair_labels()["l2l"]) > 400 and len(lines) < 220
    hint = "A line is a run of tokens. To see each, call `explain` with `tokens=range(0, 100)` or "
    assert hint + "`blocks=[0, 1]`." in lines
    hint = "To see a part, call `explain` with `tokens=range(0, 25)` or `blocks=[0, 1]`."
    assert explained.figure().get_suptitle().endswith(hint)
    panels = panels_of(make(tokens=range(30, 55)).figure())
    outer = panels[next(x for x in panels if x[0] == "l")]
    named = [x.get_text().split()[0] for x in outer.get_yticklabels()]
    assert named == [str(place) for place in range(30, 55)]


SMALL = {"vocab_size": 1000, **etcs.sizes(num_hidden_layers=2, intermediate_size=8)}
MODELS = {  # By system: the processor, and a model whose windows or blocks have about some size.
    "etc": (
        functools.partial(etcmodel.EtcProcessor, relation_names=["part_of"]),
        lambda size: etcmodel.EtcForTokenClassification(
            modeling.EtcConfig(
                **SMALL,
                local_radius=size,
                relative_pos_max_distance=2,
                relative_vocab_size=12,
                use_hard_g2l_mask=size % 2 == 0,
                use_hard_l2g_mask=size > 2,
            ),
            relation_names=["part_of"],
        ),
    ),
    "longformer": (
        etcmodel.LongformerProcessor,
        lambda size: etcmodel.LongformerModel(
            LongformerConfig(
                **SMALL, attention_window=(2, 2 * size), attention_dilation=(1, (1, size))
            )
        ),
    ),
    "modernbert": (
        etcmodel.ModernBertProcessor,
        lambda size: etcmodel.ModernBertModel(
            etcmodel.ModernBertConfig(
                **SMALL,
                local_attention=2 * size,
                pad_token_id=0,
                global_attn_every_n_layers=None,
                layer_types=["sliding_attention", f"{'full' if size > 3 else 'sliding'}_attention"],
            )
        ),
    ),
    "bigbird": (
        etcmodel.BigBirdProcessor,
        lambda size: etcmodel.BigBirdModel(
            etcmodel.BigBirdConfig(**SMALL, block_size=size, num_random_blocks=0)
        ),
    ),
    "gmat": (
        etcmodel.GmatProcessor,
        lambda size: etcmodel.GmatModel(
            GmatConfig(**SMALL, chunk_size=size + 1, num_memory_tokens=size - 1)
        ),
    ),
    "longt5": (
        etcmodel.Seq2SeqProcessor,
        lambda size: etcmodel.LongT5EncoderModel(
            LongT5Config(
                vocab_size=1000,
                d_model=8,
                d_kv=4,
                d_ff=8,
                num_layers=1,
                num_heads=2,
                local_radius=size,
                global_block_size=size + 1,
                encoder_attention_type="transient-global",
            )
        ),
    ),
    "pegasus_x": (
        etcmodel.Seq2SeqProcessor,
        lambda size: etcmodel.PegasusXForConditionalGeneration(
            PegasusXConfig(
                vocab_size=1000,
                d_model=8,
                encoder_layers=2,
                decoder_layers=1,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=8,
                decoder_ffn_dim=8,
                block_size=2 * size,
                num_global_tokens=3,
            )
        ),
    ),
}


def seen_by(model, batch, row, labels):
    """Whether any head of any layer attends, by its probabilities: bool by piece of `labels`."""
    found = {piece: np.zeros(x.shape, bool) for piece, x in labels.items()}
    for part in inspection.attention(model, batch, example=row):
        for number, side in enumerate(inspection.SIDES):
            has_side = part.key_side == number
            if has_side.any():
                seen = found[f"{part.query_side[0]}2{side[0]}"]
                seen[part.query[has_side], part.key[has_side]] = True
    return found


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("system", MODELS)
@hypothesis.settings(max_examples=3)
@hypothesis.given(size=st.integers(1, 4), row=st.integers(0, 1))
def test_who_attends_to_whom_is_as_the_probabilities_of_a_model_say(vocab, system, size, row):
    kind, make_model = MODELS[system]
    processor, model = (
        kind(str(PIECES) if kind is etcmodel.Seq2SeqProcessor else vocab),
        make_model(size),
    )
    batch = processor(["The king had 4 apples. How many?", "It was 1. Rain fell."])
    labels = processor.explain(batch, row, config=model).pair_labels()
    seen = seen_by(model, batch, row, labels)
    is_token = np.asarray(batch["token_ids" if system == "etc" else "attention_mask"])[row] > 0
    if system == "longt5":  # What its blocks are made of is no attention.
        del labels["g2l"]
    for piece, told in labels.items():
        queries = is_token if piece[0] == "l" else slice(None)
        np.testing.assert_array_equal((told != MASKED)[queries], seen[piece][queries], piece)
    assert seen["l2l"].any() and not seen["l2l"].all()


class EveryThird(reach.Reach):
    """A pattern that the library has not."""

    def sees(self, queries, keys):
        return (queries - keys) % 3 == 0


def test_a_new_pattern_is_explained_by_its_reach(vocab):
    processor = row_processor.RowProcessor(vocab)
    config = types.SimpleNamespace(reaches=[reach.Window(1, 0), EveryThird()])
    batch = processor([QUESTION, "It was 1."])
    explained = processor.explain(batch, config=config)
    size = batch["input_ids"].shape[1]
    probs = sum(
        blockwise.attention_probs(x, [key_sets.KeySet(x, x, of_layer)])[0][0, 0].numpy()
        for x in [np.zeros([1, size, 1, 4], np.float32)]
        for of_layer in config.reaches
    )
    np.testing.assert_array_equal(explained.pair_labels()["l2l"] != MASKED, probs > 0)
    names = [f"{place} {explained._token('l', place)!r}" for place in range(7)]
    assert explained.why(6, 3) == (
        f"{names[6]} attends to {names[3]}: 3 places apart, within the reach of 1 of 2 layers."
    )
    assert explained.why(2, 4).endswith("2 places apart, within the reach of 0 of 2 layers.")
    with pytest.raises(ValueError, match="Give the `config`, whose `reaches` say who attends"):
        processor.explain(batch)
    with pytest.raises(ValueError, match="`config` must have `reaches`, which decides"):
        processor.explain(batch, config=GmatConfig())


def test_of_a_local_longt5_there_are_no_blocks(explain):
    local = LongT5Config(local_radius=3, encoder_attention_type="local")
    explained = explain("longt5")(config=local)
    assert list(explained.pair_labels()) == ["l2l"]
    with pytest.raises(ValueError, match=r"`blocks` must be None here. Received: \[0\]"):
        explain("longt5")(config=local, blocks=[0])


def test_a_part_of_another_example_of_a_packed_row_has_no_line_in_the_table(vocab):
    settings = {"pack": True, "max_long_len": 40, "max_global_len": 20, "pad_to": "max"}
    processor = etcmodel.EtcProcessor(vocab, **settings)
    batch = processor(["The king.", "How many?"])
    (first, second) = (processor.explain(batch, number, tokens=[6, 7]) for number in (0, 1))
    assert "l6" not in lines_of(first) and {"l6", "l7"} <= set(lines_of(second))
    np.testing.assert_array_equal(first.pair_labels()["l2l"], second.pair_labels()["l2l"])


def test_of_a_packed_row_the_hint_begins_with_the_example(vocab):
    settings = {"pack": True, "max_long_len": 800, "max_global_len": 120, "pad_to": "max"}
    processor = etcmodel.EtcProcessor(vocab, **settings)
    batch = processor(2 * [30 * "The king had 4 apples. "])
    first, second = (processor.explain(batch, number) for number in (0, 1))
    (length,) = {len(x.token_ids) for x in batch.encodings}
    assert "`tokens=range(0, 100)` or `blocks=[0, 1]`" in str(first)
    place = batch.encodings[1].global_place
    hint = f"`tokens=range({length}, {length + 100})` or `blocks=[{place}, {place + 1}]`"
    assert hint in str(second)
    part = str(second.zoomed(tokens=range(length, length + 100)))
    assert f"l{length} " in part and f"l{length + 99} " in part
    later = second.zoomed(tokens=range(length + 10, length + 150))
    assert f"`tokens=range({length + 10}, {length + 110})`" in str(later)


@SYSTEMS
def test_a_config_of_a_model_that_attends_in_another_way_is_refused(explain, system):
    other = GmatConfig if system == "longformer" else LongformerConfig
    with pytest.raises(ValueError, match="^`config` must (be that of|have `).* Received: ") as told:
        explain(system)(config=other(vocab_size=100))
    assert "\n" not in str(told.value)
