"""The pictures of docs/concepts.md are of what the page says."""

import re

import numpy as np
import pytest

from etcmodel import attention_picture
from etcmodel.tools import attention_subjects, draw_attention
from tests import page

MASKED = attention_picture.MASKED
WORDS, SENTENCES = 14, [6, 4, 4]


def labels_of(name):
    subject = attention_subjects.read_subject(str(page.DOCS / "concepts" / f"{name}.json"))
    return attention_subjects.pair_labels(subject.structure, subject.local_radius)


def sees(name):
    return {piece: x != MASKED for piece, x in labels_of(name).items()}


def same(sizes, other_sizes=None):
    """Which pairs are in the same block, of blocks of these sizes: bool [sum, sum]."""
    rows, columns = (np.repeat(np.arange(len(x)), x) for x in (sizes, other_sizes or sizes))
    return rows[:, np.newaxis] == columns


def near(radius):
    return abs(np.subtract.outer(np.arange(WORDS), np.arange(WORDS))) <= radius


def test_global_tokens_see_all_and_are_seen_by_all():
    found = sees("global_local")
    assert found["g2g"].all() and found["g2l"].all() and found["l2g"].all()
    np.testing.assert_array_equal(found["l2l"], near(3))


def test_labels_are_distances_that_are_clipped_and_relations_by_name():
    found = labels_of("relative_labels")
    assert found["l2l"][0, 3] == found["l2l"][0, 4] != found["l2l"][0, 2]
    assert found["l2l"][4, 0] == found["l2l"][4, 1] != found["l2l"][4, 2]
    assert found["l2l"][4, 0] != found["l2l"][0, 4]
    expected = labels_of("global_local")["g2g"].copy()
    expected[2, 0] = 10
    np.testing.assert_array_equal(found["g2g"], expected)


def test_a_hard_mask_leaves_a_sentence_its_own_words():
    found = sees("hard_mask")
    np.testing.assert_array_equal(found["g2l"], same([1, 1, 1], SENTENCES))
    assert found["l2g"].all() and found["g2g"].all()


def test_packed_texts_do_not_see_each_other():
    found = sees("packing")
    np.testing.assert_array_equal(found["l2l"], near(3) & same([6, 8]))
    np.testing.assert_array_equal(found["g2l"], same([1, 2], [6, 8]))
    np.testing.assert_array_equal(found["l2g"], same([6, 8], [1, 2]))
    np.testing.assert_array_equal(found["g2g"], same([1, 2]))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("number", range(6))
def test_the_commands_draw(number, tmp_path):
    text = page.read("concepts.md").replace("\\\n", "")
    given = re.findall(r"draw_attention +--(\w+)=(\S+) --output=(\S+)", text)
    assert len(given) == 6
    name, value, output = given[number]
    value = str(page.DOCS.parent / value) if name == "structure" else value
    options = {name: value, "output": str(tmp_path / output)}
    draw_attention.run(draw_attention.DrawOptions(**options))
    assert (tmp_path / output).read_bytes().startswith(b"\x89PNG")
