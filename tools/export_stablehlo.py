"""Writes a model's folder as StableHLO with its weights, for runtimes without TensorFlow.

    python -m etcmodel.tools.export_stablehlo --model=films --output=films_hlo --max_length=512

The module computes the outputs, a step of training, or what an encoder-decoder generates, from what
the folder's processor makes of texts, for batches of one size and length. Compiled by XLA, the
files must give TensorFlow's outputs to 1e-4, otherwise nothing is written.
"""

import dataclasses

from etcmodel.options import option, run_program

from .fixed_shapes import FolderOptions, model_and_batch

__all__ = ["StablehloOptions", "run"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StablehloOptions(FolderOptions):
    """What becomes what, and its shapes."""

    output: str = option("", "The folder to write, such as films_hlo.", is_needed=True)
    what: str = option(
        "forward",
        "What the module computes. 'forward': the outputs. 'step': what a step of training gives "
        "to its optimizer, a loss and the gradient of each weight, without dropout; the loss is an "
        "encoder-decoder's own, otherwise the mean square of each output, so that it needs no "
        "labels. 'generate': the sequences of an encoder-decoder, by its generation_config.json.",
        choices=("forward", "step", "generate"),
    )


def run(options):
    """Writes the folder.

    Raises:
        ValueError: if the model has no processor, a length is not known, or the export fails.
    """
    from etcmodel import serving  # TensorFlow takes seconds to import.

    model, batch = model_and_batch(options, with_targets=options.what != "generate")
    difference = serving.export_stablehlo(model, options.output, batch, options.what)
    print(f"{options.output}: XLA's outputs are TensorFlow's to {difference:.1e}")


if __name__ == "__main__":
    run_program(StablehloOptions, run, section="export_stablehlo")
