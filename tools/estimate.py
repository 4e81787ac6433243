"""Estimates the cost of an ETC before it runs: operations, memory, and the longest input that fits.

    python -m etcmodel.tools.estimate --preset=etc_base --long_seq_length=4096
    python -m etcmodel.tools.estimate --model_config_file=etc_config.json --memory=24
    python -m etcmodel.tools.estimate --devices=8,32,128,512

Operations are counted. Memory is the peak of a TensorFlow process on a CPU, in float32; of 28
measured values (benchmarks/RESULTS.md), 27 are within a fifth, one within a third. About 1.2 GB of
it is the process itself at base size, which a GPU would not hold; no GPU was tried.
"""

import dataclasses

from etcmodel.models import presets
from etcmodel.options import Options, check_files, option, run_program

__all__ = [
    "EstimateOptions",
    "ScalingOptions",
    "Step",
    "run",
    "scaling_table",
    "sent_bytes",
    "steps",
    "table",
    "weights_table",
]

_PHASES = {
    "forward": "forward pass",
    "train": "training step, AdamW",
    "checkpointed": "the same, each layer computed again",
}
_TERA, _GIGA, _MEGA, _MICRO = 1e12, 1e9, 1e6, 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScalingOptions(Options):
    """How many devices, and what they can do; by default a core, half a chip, of TPU v3."""

    devices: tuple[int, ...] = option(
        (),
        "Numbers of devices that train together, such as 8,32,128,512: prints bounds of the step "
        "time for each, with --batch_size on every device. None: no bounds.",
    )
    peak_tflops: float = option(
        61.5, "Peak of a device in TFLOP/s: 123 per chip, bfloat16.", lower_bound=0.01
    )
    memory_bandwidth: float = option(
        450.0, "Memory bandwidth of a device in GB/s: 900 per chip.", lower_bound=0.01
    )
    link_bandwidth: float = option(
        82.0,
        "Bandwidth between devices in GB/s: one of the chip's four links of 656 Gbit/s.",
        lower_bound=0.01,
    )
    hop_microseconds: float = option(
        1.0,
        "Latency of a message in microseconds; assumed, and used only in upper bounds.",
        lower_bound=0,
    )
    utilization: float = option(
        0.15,
        "Fraction of the peak assumed in upper bounds: with it, a step of the base model takes as "
        "long as in the authors' pre-training (Ainslie et al. 2020, Table 6).",
        lower_bound=0.01,
        upper_bound=1,
    )
    examples_per_core: float = option(
        3000.0,
        "Examples per second that a CPU core reads from records, as measured by `etcmodel "
        "benchmark input_rate`.",
        lower_bound=0.01,
    )

    def __post_init__(self):
        super().__post_init__()
        if any(number < 1 for number in self.devices):
            raise ValueError(
                f"`devices` must be numbers of at least 1, such as 8,32. Received: {self.devices}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EstimateOptions(ScalingOptions):
    """The model, and the size of its input."""

    preset: str = option(
        "etc_base",
        "Model size from the paper, or a released checkpoint of another system, of which only "
        "the parameters are counted.",
        choices=(*presets.PRESETS, *presets.CHECKPOINTS),
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
    from etcmodel.checkpoints import coverage
    from etcmodel.models import encoders

    from .benchmarks import costs

    name = options.model_config_file or options.preset
    config = presets.preset(options.preset)
    if options.model_config_file:
        config = encoders.read_config(options.model_config_file)
    number = coverage.num_parameters(config)
    if config.model_type != "etc":
        if options.devices:
            raise ValueError(f"{name}: only ETC is estimated. Received: {config.model_type!r}")
        print(weights_table(name, number))
        return
    of_model = costs.Costs(number, config)
    if options.devices:
        lengths = options.long_seq_length, options.global_seq_length
        print(_header(name, of_model, options) + " on each device\n")
        print(scaling_table(of_model, options, lengths, options.batch_size))
    else:
        print(table(name, of_model, options))


def weights_table(name, number):
    """What is known of any model: its parameters, and the memory that they take: str."""
    return "\n".join(
        [
            f"{name}: {number:,} parameters",
            "",
            f"{'':24}     GB",
            f"{'weights, float32':24}  {4 * number / _GIGA:5.2f}",
            f"{'weights, 16 bits':24}  {2 * number / _GIGA:5.2f}",
            f"{'training, AdamW':24}  {16 * number / _GIGA:5.2f}  (with gradients and two moments)",
            "",
            "Operations and the memory of activations are estimated for ETC alone.",
        ]
    )


def table(name, costs, options):
    """The printed table: str.

    Args:
        name: str. The model's name.
        costs: `tools.benchmarks.costs.Costs`.
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
        room = costs.most_tokens(phase, options.memory * _GIGA) // options.batch_size
        longest = room - options.global_seq_length
        fits = f"{longest:,}" if longest > 0 else "does not fit"
        size = costs.num_bytes(phase, tokens) / _GIGA
        lines.append(f"{title:36}  {flops / _TERA:5.2f}  {size:5.1f}  {fits}")
    return "\n".join(lines)


def _header(name, costs, options):
    return (
        f"{name}: {costs.num_parameters / 1e6:,.1f}M parameters; {options.long_seq_length:,} long "
        f"and {options.global_seq_length:,} global tokens, batch of {options.batch_size}"
    )


# What a training step takes on many devices: bounds from counted operations and bytes. Every device
# has all weights and its own part of the batch (data parallel), and the gradients are summed by a
# ring (Patarasu and Yuan 2009). It is a model: no step was timed on such devices.


@dataclasses.dataclass(frozen=True)
class Step:
    """A training step on several devices.

    Attributes:
        devices: int.
        examples: int. Of all devices.
        sent: float. Bytes that a device sends.
        least, most: float. Seconds: with all at its peak at the same time; and with products at
            their share of the peak, then memory, then messages.
        efficiency: float. At least so much of the work of one device, times their number, is done
            in the same time: of work at its peak, with no message beside it.
    """

    devices: int
    examples: int
    sent: float
    least: float
    most: float
    efficiency: float

    @property
    def examples_per_second(self):
        """What the input has to give, so that no device ever waits: float."""
        return self.examples / self.least


def sent_bytes(num_bytes, devices):
    """What each device sends so that all have the sum of an array: float.

    In a ring it sends each other device's part once to be added and its own sum around.

    Args:
        num_bytes: int. Size of the array.
        devices: int.
    """
    return 2 * num_bytes * (devices - 1) / devices


def steps(costs, options, lengths, batch_size, *, phase="train"):
    """The `Step` for each of `options.devices`.

    Args:
        costs: `tools.benchmarks.costs.Costs`.
        options: `ScalingOptions`.
        lengths: (int, int). Long and global tokens.
        batch_size: int. Examples on a device.
        phase: "train" or "checkpointed".
    """
    products = costs.step_flops(phase, *lengths, batch_size) / (options.peak_tflops * _TERA)
    moved = costs.moved_bytes(phase, batch_size * sum(lengths))
    memory = moved / (options.memory_bandwidth * _GIGA)
    alone = max(products, memory)
    found = []
    for devices in options.devices:
        sent = sent_bytes(costs.gradient_bytes, devices)
        link = sent / (options.link_bandwidth * _GIGA)
        hops = 2 * (devices - 1) * options.hop_microseconds * _MICRO
        found.append(
            Step(
                devices=devices,
                examples=devices * batch_size,
                sent=sent,
                least=max(alone, link),
                most=products / options.utilization + memory + link + hops,
                efficiency=alone / (alone + link + hops),
            )
        )
    return found


def scaling_table(costs, options, lengths, batch_size):
    """What is printed: str. The arguments are those of `steps`."""
    tokens = batch_size * sum(lengths)
    lines = [
        f"A step on a device: {costs.step_flops('train', *lengths, batch_size) / _TERA:.2f} TFLOP, "
        f"{costs.moved_bytes('train', tokens) / _GIGA:.1f} GB through its memory; gradients of "
        f"{costs.gradient_bytes / _MEGA:,.0f} MB",
        "",
        "devices  batch  MB sent  step, ms  efficiency  examples/s needed  CPU cores for them",
    ]
    for step in steps(costs, options, lengths, batch_size):
        bounds = f"{1e3 * step.least:.0f}-{1e3 * step.most:.0f}"
        efficiency = f">= {step.efficiency:.2f}"
        cores = step.examples_per_second / options.examples_per_core
        lines.append(
            f"{step.devices:7,}  {step.examples:5,}  {step.sent / _MEGA:7,.0f}  {bounds:>8}  "
            f"{efficiency:>10}  {step.examples_per_second:17,.0f}  {cores:18,.1f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    run_program(EstimateOptions, run)
