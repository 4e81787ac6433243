"""Draws who may attend to whom, and as what, like figures 2 and 3 of the paper.

    python -m etcmodel.tools.draw_attention --example=paragraphs --output=attention.png

    python -m etcmodel.tools.draw_attention --structure=page.json --output=page.png

Rows of the picture are queries and columns are keys, of the global and of the long input. White is
masked; a colour is the relative label of the pair. A structure is a JSON object with the fields of
`etcmodel.ops.structure.GlobalLocalStructure` for one example (a number for each token; a list of
such lists for `links` and `label_links`), with `local_radius`, and with words to write beside the
tokens if wanted:

    {"local_radius": 2, "max_distance": 2, "use_hard_g2l_mask": true,
     "long_segment_ids": [1, 1, 1, 2, 2, 0], "long_example_ids": [1, 1, 1, 1, 1, 0],
     "global_example_ids": [1, 1], "links": [[0, 0, 0, 1, 1, -1]],
     "long_tokens": ["It", "rains", ".", "Stay", "in", "[PAD]"], "global_tokens": ["S1", "S2"]}
"""

import os

import numpy as np
from absl import app, flags
from matplotlib import cm, colors
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from etcmodel import atomic_files
from etcmodel.models.side_inputs import side_inputs_of

from . import attention_subjects

__all__ = ["MASKED", "draw", "pair_labels", "run"]

MASKED = -1
_MOST_TOKENS = 1000  # With more, a token is narrower than a pixel.
_MOST_WORDS = 48  # With more, words overlap.
_MOST_LINES = 100  # With more, the lines between tokens hide them.

# From the farthest left to the farthest right; none of them is near white, which is masked.
_POSITION_COLOURS = colors.LinearSegmentedColormap.from_list(
    "positions", ["#0b2545", "#1f7a8c", "#9ad1c4"]
)
_NOT_LINKED, _LINKED, _OTHER_SEGMENT = "#f6d9b0", "#d95f02", "#c7a6d8"
_BORDER = "#6b7280"


def pair_labels(structure, local_radius):
    """The relative label of every pair of tokens.

    Args:
        structure: `GlobalLocalStructure` of a batch of one.
        local_radius: int.
    Returns:
        dict of int arrays [queries, keys] by piece ('g2g', 'g2l', 'l2g', 'l2l'); `MASKED` where
        the query may not attend to the key, 0 for pairs of a structure without labels.
    """
    dense = side_inputs_of(structure, local_radius)
    labels = {}
    for piece in ("g2g", "g2l", "l2g", "l2l"):
        att_mask = getattr(dense, f"{piece}_att_mask")[0].numpy()
        ids = getattr(dense, f"{piece}_relative_att_ids")
        ids = np.zeros_like(att_mask) if ids is None else ids[0].numpy()
        labels[piece] = np.where(att_mask, ids, MASKED)
    labels["l2l"] = _from_windows(labels["l2l"], local_radius)
    return labels


def _from_windows(local, radius):
    """[tokens, 2 * radius + 1] to [tokens, tokens]; masked beyond the radius."""
    length = len(local)
    full = np.full([length, length], MASKED)
    for query in range(length):
        first, last = max(0, query - radius), min(length, query + radius + 1)
        full[query, first:last] = local[query, first - query + radius : last - query + radius]
    return full


def draw(subject, title=""):
    """A `matplotlib.figure.Figure` of 1200 pixels, with the four pieces and a legend.

    Args:
        subject: `attention_subjects.Subject`.
        title: str.
    Raises:
        ValueError: if there are no long tokens, or too many tokens to be seen.
    """
    num_global, num_long = (
        np.shape(ids)[1]
        for ids in (subject.structure.global_example_ids, subject.structure.long_example_ids)
    )
    if num_long == 0 or num_global + num_long > _MOST_TOKENS:
        raise ValueError(
            f"A picture shows at least 1 long token and at most {_MOST_TOKENS} tokens. Received: "
            f"{num_global} global and {num_long} long tokens"
        )
    labels = pair_labels(subject.structure, subject.local_radius)
    figure = Figure(figsize=(12, 10.5), dpi=100, layout="constrained")
    figure.suptitle(
        f"{title}\n{num_global} global and {num_long} long tokens, radius {subject.local_radius}; "
        "rows are queries, columns keys".strip()
    )
    sides = [(x, n) for x, n in (("g", num_global), ("l", num_long)) if n]
    grid = figure.subplots(
        len(sides),
        len(sides),
        squeeze=False,
        gridspec_kw={f"{x}_ratios": [n for _, n in sides] for x in ("width", "height")},
    )
    has_lines = num_global + num_long <= _MOST_LINES
    words = {"g": subject.global_tokens, "l": subject.long_tokens}
    max_distance = subject.structure.max_distance
    table = _colour_table(max_distance)
    for row, (query_side, _) in enumerate(sides):
        for column, (key_side, _) in enumerate(sides):
            panel, piece = grid[row, column], f"{query_side}2{key_side}"
            panel.imshow(table[labels[piece]], interpolation="none", aspect="auto")
            panel.set_xlabel(piece, fontsize=13, fontweight="bold")
            num_queries, num_keys = labels[piece].shape
            _name_tokens(panel.yaxis, words[query_side], num_queries, column == 0, has_lines)
            _name_tokens(panel.xaxis, words[key_side], num_keys, row == 0, has_lines)
    _add_legend(figure, grid, table, max_distance, {x for y in labels.values() for x in y.flat})
    return figure


def _colour_table(max_distance):
    """Colours by label: float [2 * max_distance + 5, 3]; the last one, at `MASKED`, is white."""
    k = max_distance
    offsets = np.array([*range(k + 1), *range(-1, -k - 1, -1)])
    positions = _POSITION_COLOURS((offsets + k) / (2 * k) if k else 0.5)
    others = colors.to_rgba_array([_NOT_LINKED, _LINKED, _OTHER_SEGMENT, "white"])
    return np.concatenate([np.reshape(positions, [-1, 4]), others])[:, :3]


def _name_tokens(axis, words, length, is_outer, has_lines):
    """Words or numbers at the outer panels, and thin lines between tokens."""
    if has_lines:
        axis.set_ticks(np.arange(1, length) - 0.5, minor=True)
        axis.grid(which="minor", color="#d1d5db", linewidth=0.5)
    axis.set_tick_params(which="both", length=0, labelsize=9)
    if axis.axis_name == "x":
        axis.tick_top()
        axis.set_tick_params(rotation=90)
        axis.set_label_position("bottom")
    if not is_outer:
        axis.set_tick_params(labelleft=False, labeltop=False)
    elif words and length <= _MOST_WORDS:
        axis.set_ticks(range(length), words)


def _add_legend(figure, grid, table, max_distance, labels):
    """Tells what the colours of the labels that occur mean."""
    k = max_distance
    meanings = {
        2 * k + 2: "long and global token, linked",
        2 * k + 1: "long and global token, not linked",
        2 * k + 3: "global tokens of different segments",
        MASKED: "masked: may not attend",
    }
    if not k:
        meanings = {0: "may attend", MASKED: meanings[MASKED]}
    handles = [
        Patch(facecolor=table[label], edgecolor=_BORDER, label=meaning)
        for label, meaning in meanings.items()
        if label in labels
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=11)
    if k:
        norm = colors.BoundaryNorm(np.arange(-k, k + 2) - 0.5, 256)
        ramp = cm.ScalarMappable(norm, _POSITION_COLOURS.resampled(256))
        bar = figure.colorbar(ramp, ax=grid, ticks=range(-k, k + 1), aspect=40, shrink=0.6)
        names = [f"{offset:+d}" for offset in range(-k, k + 1)]
        names[0], names[k], names[-1] = f"{-k} and below", "0", f"+{k} and above"
        bar.set_ticklabels(names)
        bar.set_label("position of the key minus that of the query (same input)", fontsize=11)


def define_flags(flag_values):
    """Defines this program's flags in `flag_values`."""
    flags.DEFINE_enum(
        "example",
        None,
        sorted(attention_subjects.EXAMPLES),
        "Built-in example to draw.",
        flag_values=flag_values,
    )
    flags.DEFINE_string(
        "structure", None, "JSON file of the structure to draw, instead.", flag_values=flag_values
    )
    flags.DEFINE_string(
        "output", None, "PNG file to write.", required=True, flag_values=flag_values
    )


def run(options):
    """Writes the picture as the flags' values say; it appears when it is complete.

    Raises:
        ValueError: as `attention_subjects.read_subject` and `draw`; if not one of the two inputs is
            chosen.
    """
    if bool(options.example) == bool(options.structure):
        raise ValueError("Give --example or --structure, one of them.")
    if options.example:
        subject = attention_subjects.EXAMPLES[options.example]()
        title = options.example.replace("_", " ")
    else:
        subject = attention_subjects.read_subject(options.structure)
        title = os.path.basename(options.structure)
    figure = draw(subject, title)
    with atomic_files.new_file(options.output) as unfinished:
        figure.savefig(unfinished, format="png")


def main(unused_argv):
    try:
        run(flags.FLAGS)
    except ValueError as error:
        raise SystemExit(f"draw_attention: {error}") from None


if __name__ == "__main__":
    define_flags(flags.FLAGS)
    app.run(main)
