"""Estimates the cost of an ETC before it runs: operations, memory, and the longest input that fits.

    python -m etcmodel.tools.estimate --preset=etc_base --long_seq_length=4096
    python -m etcmodel.tools.estimate --model_config_file=etc_config.json --memory=24
    python -m etcmodel.tools.estimate --devices=8,32,128,512

Operations are counted. Memory is the peak of a TensorFlow process on a CPU, in float32; the
estimate is within a fifth of measured values (benchmarks/RESULTS.md). On a GPU, subtract about 1.2
GB, as the Python process is not in GPU memory.
"""

import dataclasses
import math

from etcmodel.options import check_files, option, run_program

from .benchmarks import scaling

__all__ = ["EstimateOptions", "num_parameters", "run", "table"]

_PHASES = {
    "forward": "forward pass",
    "train": "training step, AdamW",
    "checkpointed": "the same, each layer computed again",
}
_GB = 1e9


@dataclasses.dataclass(frozen=True, kw_only=True)
class EstimateOptions(scaling.ScalingOptions):
    """The model, and the size of its input."""

    preset: str = option(
        "etc_base",
        "Model size from the paper.",
        choices=(
            "etc_base",
            "etc_base_shared",
            "etc_base_2x_local_radius",
            "etc_base_2x_relative_vocab",
            "etc_large",
            "etc_large_shared",
        ),
    )
    model_config_file: str | None = option(
        None, "JSON file with the sizes of an ETC, in place of --preset.", is_file=True
    )
    long_seq_length: int = option(4096, "Length of the long input, in tokens.", lower_bound=1)
    global_seq_length: int = option(230, "Length of the global input, in tokens.", lower_bound=1)
    batch_size: int = option(1, "Number of examples per batch.", lower_bound=1)
    memory: float = option(16.0, "Memory available for the longest input, in GB.", lower_bound=0)

    def __post_init__(self):
        super().__post_init__()
        check_files(self)


def run(options):
    """Prints the table, or that of a training step on several devices.

    Raises:
        ValueError: naming the file, for a config that is not of ETC.
    """
    # Imports TensorFlow, which takes seconds.
    from etcmodel.models import encoders, presets

    from .benchmarks import costs

    name = options.model_config_file or options.preset
    config = presets.preset(options.preset)
    if options.model_config_file:
        config = encoders.read_config(options.model_config_file)
    if config.model_type != "etc":
        raise ValueError(f"{name}: only ETC is estimated. Received: {config.model_type!r}")
    of_model = costs.Costs(num_parameters(config), config)
    if options.devices:
        lengths = options.long_seq_length, options.global_seq_length
        print(_header(name, of_model, options) + " on each device\n")
        print(scaling.table(of_model, options, lengths, options.batch_size))
    else:
        print(table(name, of_model, options))


def num_parameters(config):
    """The number of parameters of an encoder, which is not built: int."""
    from etcmodel.checkpoints import coverage

    return sum(math.prod(shape) for shape in coverage.encoder_shapes(config).values())


def table(name, costs, options):
    """The printed table: str.

    Args:
        name: str. The model's name.
        costs: `benchmarks.costs.Costs`.
        options: `EstimateOptions`.
    """
    lengths = options.long_seq_length, options.global_seq_length
    tokens = options.batch_size * sum(lengths)
    lines = [
        _header(name, costs, options),
        "",
        f"{'':36}  TFLOP     GB  longest long input in {options.memory:g} GB",
    ]
    for phase, title in _PHASES.items():
        flops = costs.step_flops(phase, *lengths, options.batch_size)
        room = costs.most_tokens(phase, options.memory * _GB) // options.batch_size
        longest = room - options.global_seq_length
        fits = f"{longest:,}" if longest > 0 else "does not fit"
        size = costs.num_bytes(phase, tokens) / _GB
        lines.append(f"{title:36}  {flops / 1e12:5.2f}  {size:5.1f}  {fits}")
    return "\n".join(lines)


def _header(name, costs, options):
    return (
        f"{name}: {costs.num_parameters / 1e6:,.1f}M parameters; {options.long_seq_length:,} long "
        f"and {options.global_seq_length:,} global tokens, batch of {options.batch_size}"
    )


if __name__ == "__main__":
    run_program(EstimateOptions, run)
