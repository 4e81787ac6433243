"""Explanations of a batch agree with what the model is told."""

import numpy as np
import pytest
from matplotlib import image

from etcmodel.models import heads, modeling
from etcmodel.ops import relations
from etcmodel.ops.structure import GlobalLocalStructure
from etcmodel.text.processor import EtcProcessor
from etcmodel.tools import attention_subjects
from tests import vocabularies
from tests.models import etcs

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "?", "one", "two", "see", "it", "a", "b", "."]
PAGE = "<h1 id=x>One</h1><p>See <a href=#x>it.</a></p><table><tr><td>a<td>b</table>"
NAMES = ("part_of", "mentions", "link", "row")


@pytest.fixture(scope="module")
def processor(tmp_path_factory):
    return EtcProcessor(
        vocabularies.write(tmp_path_factory.mktemp("vocab"), VOCAB),
        relation_names=NAMES,
        pack=True,
        max_long_len=20,
        max_global_len=12,
        pad_to="max",
        long_relation_names=("row",),
        long_radius=2,
    )


@pytest.fixture(scope="module")
def batch(processor):
    return processor([{"question": "Who?", "html": PAGE}, "Two.", {"question": "A?", "html": PAGE}])


def config(**changes):
    return modeling.EtcConfig(
        vocab_size=20,
        **etcs.sizes(intermediate_size=8),
        **{"local_radius": 4, "relative_pos_max_distance": 3, "relative_vocab_size": 14, **changes},
    )


def structure_of(batch, row, config):
    """What the model gets, written down by the meaning of the features."""
    one = {name: array[row : row + 1] for name, array in batch.items()}
    labels = config.relation_labels(*NAMES)
    kinds = {
        name: relations.LinkPairs if f"links/{name}" in one else relations.GlobalEdges
        for name in NAMES
    }
    named = [
        kind(one.get(f"links/{name}", one.get(f"edges/{name}")), name, labels[name])
        for name, kind in kinds.items()
    ]
    return GlobalLocalStructure(
        long_segment_ids=one["example_ids"],
        long_example_ids=one["example_ids"],
        global_example_ids=one["global_example_ids"],
        links=(one["links"],),
        max_distance=config.relative_pos_max_distance,
        use_hard_g2l_mask=config.use_hard_g2l_mask,
        use_hard_l2g_mask=config.use_hard_l2g_mask,
    ).with_relations(*named, relations.LongEdges(one["long_edges/row"], "row", labels["row"]))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"use_hard_g2l_mask": True, "local_radius": 2},
        {"use_hard_l2g_mask": True, "relative_pos_max_distance": 1},
    ],
    ids=["soft", "hard g2l", "hard l2g"],
)
def test_pairs_have_the_labels_that_the_model_gives_them(processor, batch, changes):
    model_config = config(**changes)
    for row in range(len(batch["token_ids"])):
        structure = structure_of(batch, row, model_config)
        expected = attention_subjects.pair_labels(structure, model_config.local_radius)
        encoding = next(x for x in batch.encodings if x.row == row)
        found = processor.explain(batch, encoding.example, config=model_config).pair_labels()
        assert list(found) == list(expected)
        for piece, labels in expected.items():
            np.testing.assert_array_equal(found[piece], labels, err_msg=piece)


def test_reasons_agree_with_the_pairs(processor, batch):
    model_config = config(use_hard_l2g_mask=True)
    explained = processor.explain(batch, config=model_config)
    for piece, pairs in explained.pair_labels().items():
        for (query, key), label in np.ndenumerate(pairs):
            words = explained.why(f"{piece[0]}{query}", f"{piece[2]}{key}")
            assert (" attends to " in words) == (label != -1), words
            name = processor.config.relation_names[label - 10] if label >= 10 else ""
            assert not name or f"relation '{name}'" in words


def test_reasons_are_told_in_words(processor, batch):
    def why(query, key, **changes):
        return processor.explain(batch, config=config(**changes)).why(query, key)

    assert why("l5", "l7") == "l5 'see' attends to l7 '.': position +2, within the radius of 4."
    assert (
        why("l0", "l7")
        == "l0 '[CLS]' does not attend to l7 '.': 7 places apart, beyond the radius of 4."
    )
    assert why("l5", "g3") == "l5 'see' attends to g3 '[CLS]': linked, its own paragraph."
    assert why("g2", "l6") == (
        "g2 '[CLS]' attends to l6 'it': long and global token of one example, not linked, relation "
        "'mentions'."
    )
    assert why("g0", "l6", use_hard_g2l_mask=True) == (
        "g0 '[CLS]' does not attend to l6 'it': not linked, and `use_hard_g2l_mask` is on."
    )
    assert why("g3", "g2") == (
        "g3 '[CLS]' attends to g2 '[CLS]': global tokens of one example, position -1, relation "
        "'link'."
    )
    assert (
        why("l1", "l11")
        == "l1 'who' does not attend to l11 '[CLS]': examples 1 and 2 of the same row."
    )
    assert why("l1", "l19").endswith("does not attend to l19 '[PAD]': padding.")
    assert why("l8", "l9") == (
        "l8 'a' attends to l9 'b': position +1, within the radius of 4, relation 'row'."
    )


def test_the_table_tells_what_each_token_is(processor, batch):
    lines = str(processor.explain(batch)).splitlines()
    assert lines[0] == "example 0, window 0: row 0, number 1 in it"
    rows = [" ".join(line.split()) for line in lines[2:]]
    assert rows[:8] == [
        "global token is text relations",
        "g0 [CLS] whole",
        "g1 [CLS] question Who?",
        "g2 [CLS] heading One",
        "g3 [CLS] paragraph See it. link: g2",
        "g4 [CLS] table",
        "g5 [CLS] cell a part_of: g4; row: g6",
        "g6 [CLS] cell b part_of: g4; row: g5",
    ]
    assert rows[9:12] == [
        "long token from linked to relations",
        "l0 [CLS] g0 whole",
        "l1 who examples[0].question[0:3] g1 question",
    ]
    assert rows[16] == "l6 it examples[0].html[8:10] g3 paragraph mentions: g2"
    assert rows[18] == "l8 a examples[0].html[12:13] g5 cell row: l9"
    second = str(processor.explain(batch, example=1)).splitlines()
    assert second[0] == "example 1, window 0: row 0, number 2 in it"
    assert second[3].split() == ["g7", "[CLS]", "whole"]


def test_the_picture_shows_the_row(processor, batch, tmp_path):
    explained = processor.explain(batch, config=config())
    explained.save(str(tmp_path / "row.png"), "a row")
    assert image.imread(tmp_path / "row.png").shape == (1050, 1200, 4)
    figure = explained.figure()
    names = {text.get_text() for text in figure.legends[0].get_texts()}
    assert names >= {*NAMES, "long and global token, linked", "masked: may not attend"}
    words = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert words[:4] == ["g0 whole", "g1 question", "g2 heading", "g3 paragraph"]
    assert words[7:9] == ["g7 whole", "g8 sentence"] and words[-1] == "[PAD]"


def test_a_long_row_and_a_part_of_it_can_be_drawn(processor):
    long = processor(
        ["it " * 3000], settings={"pack": False, "max_long_len": None, "pad_to": "longest"}
    )
    explained = processor.explain(long, config=config())
    whole = explained.figure()
    assert "A row or column stands for 5 long tokens. To see a part, " in whole.get_suptitle()
    figure = explained.figure(long_range=(1000, 1020))
    assert "2 global and 20 long tokens" in figure.get_suptitle()
    panels = {axes.get_xlabel(): axes.images[0].get_array() for axes in figure.axes if axes.images}
    assert panels["l2l"].shape == (20, 20, 3) and panels["g2l"].shape == (2, 20, 3)
    assert (panels["l2l"][0, 5] == 1).all() and (panels["l2l"][0, 4] != 1).any()


def test_18_global_and_384_long_tokens_are_readable(tmp_path):
    sentences = [f"it see {'a b ' * 17}." for _ in range(10)]
    documents = [
        {"title": "one", "sentences": sentences[:4]},
        {"title": "two", "sentences": sentences[4:7]},
        {"title": "it", "sentences": sentences[7:]},
    ]
    vocab = vocabularies.write(tmp_path, VOCAB)
    processor = EtcProcessor(vocab, max_long_len=384, max_global_len=18, pad_to="max")
    batch = processor(question="Who see it?", documents=documents)
    assert batch["global_token_ids"].shape == (1, 18) and batch["token_ids"].shape == (1, 384)
    explained = processor.explain(batch)
    lines = str(explained).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("long"))
    *rows, sentence = [" ".join(line.split()) for line in lines[first + 1 : first + 6]]
    assert rows == [
        "l0 [CLS] g0 whole",
        "l1-l4 who see it ? example.question[0:11] g1 question",
        "l5 [SEP] g0 whole",
        "l6 one example.documents[0].title[0:3] g3 title",
    ]
    assert sentence.startswith("l7-l43 it see a b a b ")
    assert sentence.endswith("… example.documents[0].sentences[0][0:76] g4 sentence")
    assert len(lines) < 45
    panels = {x.get_xlabel(): x for x in explained.figure().axes if x.images}
    names = [x.get_text() for x in panels["g2g"].get_yticklabels()]
    assert names[:4] == ["g0 whole", "g1 question", "g2 document", "g3 title"] and len(names) == 18
    names = [x.get_text() for x in panels["l2g"].get_yticklabels()]
    assert names[:3] == ["0 [CLS]", "20 b", "40 b"] and len(names) == 20
    labels = explained.pair_labels()
    shown = panels["l2l"].images[0].get_array()
    np.testing.assert_array_equal((shown == 1).all(axis=-1), labels["l2l"] == -1)
    assert str(processor.explain(batch, blocks=[6])).count("g6 sentence") == 37


def test_what_is_not_there_is_refused(processor, batch):
    with pytest.raises(ValueError, match="no window 0 of an example 3: it has 3 examples"):
        processor.explain(batch, example=3)
    for name in ("l20", "x1", 3, "l", "g12"):
        with pytest.raises(ValueError, match=r"`key` must be a token of a row of 20 long \(l0, l1"):
            processor.explain(batch).why("l0", name)


def test_a_model_of_other_relations_is_refused(processor, batch):
    model = heads.EtcForTokenClassification(config(), relation_names=NAMES)
    assert "radius of 4" in processor.explain(batch, config=model).why("l0", "l7")
    model = heads.EtcForTokenClassification(config(), relation_names=NAMES[::-1])
    line = (
        r"The model's `relation_names` are \['row', .*'part_of'\], those of the batch \['part_of'"
    )
    with pytest.raises(ValueError, match=line):
        processor.explain(batch, config=model)
    with pytest.raises(ValueError, match="relative_vocab_size"):
        processor.explain(batch, config=config(relative_vocab_size=12))
