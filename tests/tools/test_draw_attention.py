"""The program that draws attention patterns."""

import dataclasses
import json
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib import colors

from etcmodel import attention_picture
from etcmodel.pictures import style
from etcmodel.tools import (
    attention_subjects,
    draw_attention,
    memory_subjects,
    sequence_subjects,
    transient_subjects,
)
from tests.ops import plain_attention
from tests.ops.test_structure import cases

FIELDS = {
    "local_radius": 2,
    "max_distance": 2,
    "use_hard_g2l_mask": True,
    "long_segment_ids": [1, 1, 1, 2, 2, 0],
    "long_example_ids": [1, 1, 1, 1, 1, 0],
    "global_example_ids": [1, 1],
    "links": [[0, 0, 0, 1, 1, -1]],
}


def write_json(tmp_path, fields):
    path = tmp_path / "page.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    return str(path)


def panels_of(figure):
    """The colors that are shown: [queries, keys, 3] by the name of the piece."""
    panels = {axes.get_xlabel(): axes for axes in figure.axes if axes.images}
    return {name: axes.images[0].get_array() for name, axes in panels.items()}


@settings(max_examples=20)
@given(cases(max_long=14, max_global=4))
def test_pairs_have_the_labels_of_the_numpy_twin(case):
    structure, radius, _ = case
    labels = attention_subjects.pair_labels(structure, radius)
    drawn = np.block([[labels["g2g"], labels["g2l"]], [labels["l2g"], labels["l2l"]]])
    twin = plain_attention.pairs_of(structure, radius)
    expected = 0 if twin.labels is None else twin.labels[0]
    is_seen = twin.exists[0] & twin.is_allowed[0]
    np.testing.assert_array_equal(drawn, np.where(is_seen, expected, attention_picture.MASKED))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("example", attention_subjects.EXAMPLES)
def test_the_picture_shows_each_label_in_a_color_of_its_own(example):
    subject = attention_subjects.EXAMPLES[example]()
    labels = attention_subjects.pair_labels(subject.structure, subject.local_radius)
    shown = panels_of(attention_subjects.draw(subject))
    assert list(shown) == ["g2g", "g2l", "l2g", "l2l"]
    seen = {}
    for piece, pairs in labels.items():
        for label, color in zip(pairs.flat, shown[piece].reshape(-1, 3), strict=True):
            assert seen.setdefault(label, colors.to_hex(color)) == colors.to_hex(color)
    assert len(set(seen.values())) == len(seen) >= 9
    assert seen[attention_picture.MASKED] == "#ffffff"


def test_on_a_dark_ground_labels_have_colors_of_their_own_too(tmp_path):
    subject = attention_subjects.EXAMPLES["paragraphs"]()
    labels = attention_subjects.pair_labels(subject.structure, subject.local_radius)
    figure = attention_subjects.draw(subject, theme=style.DARK)
    shown = panels_of(figure)
    seen = {
        (label, colors.to_hex(color))
        for piece, pairs in labels.items()
        for label, color in zip(pairs.flat, shown[piece].reshape(-1, 3), strict=True)
    }
    assert len({label for label, _ in seen}) == len({color for _, color in seen}) == len(seen) >= 9
    assert (attention_picture.MASKED, style.DARK.background) in seen
    output = str(tmp_path / "dark.png")
    draw_attention.run(
        draw_attention.DrawOptions(example="paragraphs", output=output, theme="dark")
    )
    pixels = (matplotlib.image.imread(output)[..., :3] * 255).round()
    assert colors.to_hex(pixels[0, 0] / 255) == style.DARK.background
    assert not (pixels == 255).all(axis=-1).any()  # Nothing is white: no letter, no line, no panel.
    assert not (pixels == 0).all(axis=-1).any()


def test_the_legend_tells_what_occurs_and_words_stand_beside_the_tokens():
    figure = attention_subjects.draw(attention_subjects.EXAMPLES["paragraphs"](), "two paragraphs")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "long and global token, linked",
        "long and global token, not linked",
        "global tokens of different segments",
        "masked: may not attend",
    ]
    words = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert words[:2] == ["question", "paragraph A"]
    title, size, *caption = figure.get_suptitle().splitlines()
    assert (title, size) == ("two paragraphs", "7 global and 28 long tokens, radius 4")
    assert [line.split()[0] for line in caption] == ["A", "l2g:"]
    document = attention_subjects.draw(attention_subjects.EXAMPLES["document"]())
    names = {text.get_text() for text in document.legends[0].get_texts()}
    assert "global tokens of different segments" not in names


def test_in_the_paragraphs_global_tokens_see_what_the_paper_says():
    """The question sees all; a paragraph's and a sentence's token only their own words."""
    subject = attention_subjects.EXAMPLES["paragraphs"]()
    labels = attention_subjects.pair_labels(subject.structure, subject.local_radius)
    num_seen = (labels["g2l"] != attention_picture.MASKED).sum(axis=1)
    np.testing.assert_array_equal(num_seen, [28, 12, 6, 6, 10, 6, 4])
    words = np.array(subject.long_tokens)
    assert list(words[labels["g2l"][6] != attention_picture.MASKED]) == [
        "Salmon",
        "spawn",
        "below",
        ".",
    ]


def test_the_json_of_the_help_text_is_a_structure(tmp_path):
    text = draw_attention.__doc__[draw_attention.__doc__.index("{") :]
    subject = attention_subjects.read_subject(write_json(tmp_path, json.loads(text)))
    assert subject.long_tokens[-1] == "[PAD]" and subject.global_tokens == ("S1", "S2")
    assert len(panels_of(attention_subjects.draw(subject))) == 4


def test_a_file_gives_the_structure_it_describes(tmp_path):
    fields = {**FIELDS, "label_links": [], "ignore_hard_g2l_mask": [0, 1]}
    subject = attention_subjects.read_subject(write_json(tmp_path, fields))
    assert subject.local_radius == 2
    structure = subject.structure
    assert (structure.max_distance, structure.use_hard_g2l_mask) == (2, True)
    assert not structure.use_hard_l2g_mask and structure.global_segment_ids is None
    np.testing.assert_array_equal(structure.long_segment_ids, [FIELDS["long_segment_ids"]])
    np.testing.assert_array_equal(structure.links, [FIELDS["links"]])
    np.testing.assert_array_equal(structure.ignore_hard_g2l_mask, [[0, 1]])


CITES = {"kind": "GlobalEdges", "name": "cites", "label": 9, "ids": [[0, 1]]}
TREE = {"kind": "LongLabels", "name": "tree", "ids": [[-1, -1, -1, 8, -1]] * 6}


def test_the_legend_shows_relations_by_name(tmp_path):
    fields = {**FIELDS, "relations": [CITES, TREE]}
    subject = attention_subjects.read_subject(write_json(tmp_path, fields))
    labels = attention_subjects.pair_labels(subject.structure, 2)
    assert labels["g2g"].tolist() == [[0, 9], [3, 0]] and labels["l2l"][0].tolist()[:3] == [0, 8, 2]
    figure = attention_subjects.draw(subject)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [
        "label 8",
        "long and global token, linked",
        "long and global token, not linked",
        "cites",
        "masked: may not attend",
    ]
    shown = {patch.get_facecolor() for patch in figure.legends[0].get_patches()}
    assert len(shown) == len(names)
    g2g = panels_of(figure)["g2g"]
    assert colors.to_hex(g2g[0, 1]) not in {colors.to_hex(g2g[x]) for x in ((0, 0), (1, 0))}


def test_without_labels_and_without_global_tokens_there_is_one_piece(tmp_path):
    fields = {**FIELDS, "max_distance": 0, "global_example_ids": [], "links": []}
    figure = attention_subjects.draw(attention_subjects.read_subject(write_json(tmp_path, fields)))
    assert list(panels_of(figure)) == ["l2l"]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["may attend", "masked: may not attend"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"links": [[0, 0]]}, r"page.json: 'links' has 2 entries for 6 long tokens"),
        ({"links": 3}, "'links' must be a list of lists"),
        ({"long_segment_ids": ["a"] * 6}, "'long_segment_ids' must hold lists of numbers"),
        ({"long_example_ids": None}, "'long_.*_ids' "),
        ({"global_segment_ids": [1]}, "'global_segment_ids' has 1 entries for 2 global tokens"),
        ({"global_tokens": ["a", 1]}, "'global_tokens' must hold lists of words"),
        ({"local_radius": 0}, "'local_radius' must be a number from 1 up: 0"),
        ({"max_distance": 1.5}, "'max_distance' must be a number from 0 up: 1.5"),
        ({"use_hard_g2l_mask": 1}, "'use_hard_g2l_mask' must be true or false: 1"),
        ({"links": [[0, 0, 2, 0, 0, 0]]}, r"`structure.links\[0\]` .* 2 in example 0 at token 2 "),
        ({"relations": 3}, "'relations' must be a list of relations: 3"),
        ({"relations": [{"kind": "LinkIds"}]}, "a relation must have kind, name and ids, of "),
        ({"relations": [{**CITES, "color": 1}]}, "a relation must have kind, name and ids, of "),
        ({"relations": [{**CITES, "kind": "Edges"}]}, "must be one of .*'GlobalEdges'.*: 'Edges'"),
        ({"relations": [{**CITES, "label": 6}]}, "'cites' has the label of 'linked', 6"),
        ({"relations": [{**CITES, "ids": [["a", "b"]]}]}, "page.json: "),
        (
            {"relations": [{**CITES, "ids": [[0, 2]]}]},
            r"page.json: `structure.relations\[0\] \(edges/cites\)` must hold pairs of global.*"
            r"\[0, 2\] in example 0 at edge 0",
        ),
        ({"radius": 3}, r"unknown fields \['radius'\]; there are \['global_example_ids'"),
    ],
)
def test_a_file_that_is_no_structure_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        attention_subjects.read_subject(write_json(tmp_path, {**FIELDS, **changes}))


def test_so_are_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="absent.json: .*No such file"):
        attention_subjects.read_subject(str(tmp_path / "absent.json"))
    with pytest.raises(ValueError, match="it must hold a JSON object"):
        attention_subjects.read_subject(write_json(tmp_path, [1]))
    with pytest.raises(ValueError, match=r"it lacks \['local_radius', 'long_segment_ids'"):
        attention_subjects.read_subject(write_json(tmp_path, {}))
    (tmp_path / "page.json").write_text("{1", encoding="utf-8")
    with pytest.raises(ValueError, match="page.json: Expecting property name"):
        attention_subjects.read_subject(str(tmp_path / "page.json"))


@pytest.mark.parametrize("num_long, message", [(0, "0 long"), (999, "999 long")])
def test_what_no_one_could_see_is_refused(tmp_path, num_long, message):
    fields = {**FIELDS, "links": []}
    for name in ("long_segment_ids", "long_example_ids"):
        fields[name] = [1] * num_long
    subject = attention_subjects.read_subject(write_json(tmp_path, fields))
    with pytest.raises(ValueError, match=f"at most 1000 tokens. Received: 2 global and {message}"):
        attention_subjects.draw(subject)


def draw_by_program(**arguments):
    flags = [f"--{name}={value}" for name, value in arguments.items()]
    command = [sys.executable, "-m", "etcmodel.tools.draw_attention", *flags]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
def test_the_program_writes_a_picture_1200_pixels_wide(tmp_path):
    output = tmp_path / "new" / "page.png"
    done = draw_by_program(structure=write_json(tmp_path, FIELDS), output=output)
    assert done.returncode == 0, done.stderr
    assert matplotlib.image.imread(output).shape[1] == 1200
    assert [path.name for path in output.parent.iterdir()] == ["page.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Give --example or --structure, one of them."),
        ({"example": "document", "structure": "page.json"}, "Give --example or --structure"),
        ({"example": "circle"}, "flag --example=circle: value should be one of <document|"),
    ],
)
def test_a_refusal_is_a_line_and_leaves_no_file(tmp_path, arguments, message):
    output = tmp_path / "page.png"
    done = draw_by_program(output=output, **arguments)
    assert done.returncode == 1 and not output.exists()
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {message}")


def test_the_built_in_examples_can_all_be_chosen():
    fields = {field.name: field for field in dataclasses.fields(draw_attention.DrawOptions)}
    choices = fields["example"].metadata["choices"]
    subjects = (attention_subjects, memory_subjects, sequence_subjects, transient_subjects)
    assert set(choices) == {name for module in subjects for name in module.EXAMPLES}


def test_on_a_neutral_ground_what_is_masked_is_transparent(tmp_path):
    subject = attention_subjects.EXAMPLES["paragraphs"]()
    labels = attention_subjects.pair_labels(subject.structure, subject.local_radius)
    figure = attention_subjects.draw(subject, theme=style.NEUTRAL)
    for axes in (axes for axes in figure.axes if axes.images):
        is_seen = labels[axes.get_xlabel()] != attention_picture.MASKED
        np.testing.assert_array_equal(axes.images[0].get_alpha(), is_seen)
    output = str(tmp_path / "neutral.png")
    options = draw_attention.DrawOptions(example="paragraphs", output=output, theme="neutral")
    draw_attention.run(options)
    assert matplotlib.image.imread(output)[0, 0, 3] == 0
