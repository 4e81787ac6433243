"""Draws which tokens may attend to which, with relative labels, like figures 2 and 3 of the paper.

    python -m etcmodel.tools.draw_attention --example=paragraphs --output=attention.png

    python -m etcmodel.tools.draw_attention --structure=page.json --output=page.png

    python -m etcmodel.tools.draw_attention --example=longformer_dilated --output=dilated.png

Rows are queries and columns are keys, of the global and the long input. Pairs in the background
color (white, or nearly black with --theme=dark) are masked; other colors are the relative labels of
the pairs. Systems with one sequence, such as Longformer, or with a memory, which is drawn as the
global input, are drawn from the attention probabilities of a call of the model.

A structure is a JSON object with the fields of `etcmodel.ops.structure.GlobalLocalStructure` for
one example (a number for each token; a list of such lists for `links` and `label_links`),
`local_radius` and, optionally, words to write beside the tokens. Relations have the fields of
`etcmodel.ops.relations.Relation`; the legend shows their names:

    {"local_radius": 2, "max_distance": 2, "use_hard_g2l_mask": true,
     "long_segment_ids": [1, 1, 1, 2, 2, 0], "long_example_ids": [1, 1, 1, 1, 1, 0],
     "global_example_ids": [1, 1], "links": [[0, 0, 0, 1, 1, -1]],
     "relations": [{"kind": "GlobalEdges", "name": "follows", "label": 8, "ids": [[1, 0]]}],
     "long_tokens": ["It", "rains", ".", "Stay", "in", "[PAD]"], "global_tokens": ["S1", "S2"]}
"""

import dataclasses
import pathlib

from etcmodel import atomic_files
from etcmodel.options import Options, option, run_program
from etcmodel.pictures import style

__all__ = ["DrawOptions", "run"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrawOptions(Options):
    """The subject and the output of the program."""

    theme: str = option("light", "Background of the picture.", choices=tuple(style.THEMES))
    example: str | None = option(
        None,
        "Built-in example to draw.",
        choices=(
            "document",
            "fixed_blocks",
            "gmat",
            "longformer",
            "longformer_causal",
            "longformer_dilated",
            "longt5",
            "longt5_local",
            "paragraphs",
            "pegasus_x",
            "pegasus_x_staggered",
        ),
    )
    structure: str | None = option(
        None, "JSON file with the structure to draw, instead of --example."
    )
    output: str | None = option(None, "PNG file to write.", is_needed=True)

    def __post_init__(self):
        super().__post_init__()
        if bool(self.example) == bool(self.structure):
            raise ValueError("Give --example or --structure, one of them.")


def run(options):
    """Writes the picture that `DrawOptions` describe; the file appears when it is complete.

    Raises:
        ValueError: as in `attention_subjects.read_subject` and `attention_subjects.draw`.
    """
    # Imports TensorFlow and Matplotlib, which takes seconds.
    from . import attention_subjects, memory_subjects, sequence_subjects, transient_subjects

    theme = style.THEMES[options.theme]
    for subjects in (memory_subjects, sequence_subjects, transient_subjects):
        if options.example in subjects.EXAMPLES:
            figure = subjects.draw(options.example, theme)
            break
    else:
        figure = _figure_of_structure(options, attention_subjects, theme)
    with atomic_files.new_file(options.output) as unfinished:
        figure.savefig(unfinished, format="png")


def _figure_of_structure(options, attention_subjects, theme):
    if options.example:
        subject = attention_subjects.EXAMPLES[options.example]()
        title = options.example.replace("_", " ")
    else:
        subject = attention_subjects.read_subject(options.structure)
        title = pathlib.Path(options.structure).stem.replace("_", " ")
    return attention_subjects.draw(subject, title, theme)


if __name__ == "__main__":
    run_program(DrawOptions, run)
