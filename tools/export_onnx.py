"""Writes a model's folder as an ONNX file, for runtimes without TensorFlow.

    python -m etcmodel.tools.export_onnx --model=films --output=films.onnx --max_length=512

The file computes the outputs from what the folder's processor makes of texts, for batches of one
size and length. onnxruntime must give TensorFlow's outputs to 1e-4, otherwise nothing is written;
with --weights=int8, which quantizes that file, the difference is printed.
"""

import dataclasses

from etcmodel.options import option, run_program

from .fixed_shapes import FolderOptions, model_and_batch

__all__ = ["OnnxOptions", "run"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnnxOptions(FolderOptions):
    """What becomes what, and its shapes."""

    output: str = option("", "The file to write, such as films.onnx.", is_needed=True)
    weights: str = option(
        "float32",
        "How the file has kernels and tables. 'float32': as they are. 'int8': in a quarter of the "
        "bytes, by onnxruntime's quantization; by how much outputs differ then is printed.",
        choices=("float32", "int8"),
    )


def run(options):
    """Writes the file.

    Raises:
        ValueError: if the folder has no processor, a length is not known, or the export fails.
    """
    from etcmodel import serving  # TensorFlow takes seconds to import.

    model, batch = model_and_batch(options)
    difference = serving.export_onnx(model, options.output, batch, options.weights)
    print(f"{options.output}: onnxruntime's outputs are TensorFlow's to {difference:.1e}")


if __name__ == "__main__":
    run_program(OnnxOptions, run, section="export_onnx")
