"""What a training step takes on many devices: bounds from counted operations and bytes.

Every device has all weights and its own part of the batch (data parallel), and the gradients are
summed by a ring (Patarasu and Yuan 2009). It is a model: no step was timed on such devices.
"""

import dataclasses

from etcmodel.options import Options, option

__all__ = ["ScalingOptions", "Step", "sent_bytes", "steps", "table"]

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
        costs: `costs.Costs`.
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


def table(costs, options, lengths, batch_size):
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
