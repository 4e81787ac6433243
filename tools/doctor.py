"""Reports versions, devices and missing packages, and runs a self-test.

    python -m etcmodel.tools.doctor

Each line begins with ok, missing (something optional) or broken. If anything is broken, the exit
code is 1. The self-test checks the values of a small encoder and of one training step, and measures
their speed, with oneDNN and without; it takes about half a minute. With --accelerator, each system
is compared on each GPU and TPU with itself on the CPU: the table is what to send with a report.
"""

import dataclasses
import importlib.metadata
import inspect
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time

from packaging import requirements, specifiers

from etcmodel import onednn, posix_only
from etcmodel.options import Options, option, run_program

from .benchmarks import costs, worker

__all__ = [
    "BROKEN",
    "EXPECTED",
    "MISSING",
    "OK",
    "DoctorOptions",
    "Comparison",
    "Finding",
    "accelerators",
    "compare",
    "core_finding",
    "encoder_finding",
    "extra_finding",
    "matrix_finding",
    "memory_finding",
    "of_accelerators",
    "of_installation",
    "of_machine",
    "of_self_test",
    "onednn_finding",
    "print_speeds",
    "python_finding",
    "small_encoder_values",
]

OK, MISSING, BROKEN = "ok", "missing", "broken"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        state: str. `OK`; `MISSING`, for what the package works without; or `BROKEN`.
        what: str. The thing.
        detail: str. Its version or size; what to do, if it is not there.
    """

    state: str
    what: str
    detail: str

    def __str__(self):
        return f"{self.state:8}{self.what}: {self.detail}"


# Installed packages against the requirements.

_NAME = "etcmodel"
_OF_OTHERS = ("all", "dev", "preprocess")  # Extras that combine or repeat others.


def of_installation():
    """Yields a `Finding` for Python, for each package of the core and for each extra."""
    try:
        distribution = importlib.metadata.distribution(_NAME)
    except importlib.metadata.PackageNotFoundError:
        yield Finding(BROKEN, _NAME, "not installed. Run: pip install .")
        return
    yield Finding(OK, _NAME, distribution.version)
    yield python_finding(distribution.metadata["Requires-Python"], platform.python_version())
    asked = [requirements.Requirement(line) for line in distribution.requires or ()]
    for requirement in asked:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield core_finding(requirement, _installed(requirement.name))
    for extra in distribution.metadata.get_all("Provides-Extra") or ():
        if extra not in _OF_OTHERS:
            of_extra = [x for x in asked if _is_of(x, extra)]
            yield extra_finding(extra, of_extra, {x.name: _installed(x.name) for x in of_extra})


def python_finding(allowed, version):
    """Checks the version of Python against the allowed ones, such as ">=3.11,<3.13"."""
    if specifiers.SpecifierSet(allowed or "").contains(version):
        return Finding(OK, "python", version)
    return Finding(BROKEN, "python", f"{version}, but must be {allowed}.")


def core_finding(requirement, version):
    """Checks a required package.

    Args:
        requirement: `packaging.requirements.Requirement`.
        version: str, or None if it is not installed.
    """
    if version is None:
        return Finding(BROKEN, requirement.name, f"missing. Run: {_install(requirement)}")
    if not requirement.specifier.contains(version, prereleases=True):
        told = f"{version}, but must be {requirement.specifier}. Run: {_install(requirement)}"
        return Finding(BROKEN, requirement.name, told)
    return Finding(OK, requirement.name, version)


def extra_finding(extra, asked, versions):
    """Checks that all packages of an extra are installed in the required versions.

    Args:
        extra: str. Its name.
        asked: list of `packaging.requirements.Requirement`.
        versions: dict from a package's name to its version, or None if it is not installed.
    """
    what, install = f"extra {extra}", f"pip install '{_NAME}[{extra}]'"
    lacking = [x.name for x in asked if versions[x.name] is None]
    if lacking:
        return Finding(MISSING, what, f"without {', '.join(lacking)}. Run: {install}")
    others = [
        f"{x.name} {versions[x.name]}, not {x.specifier}"
        for x in asked
        if not x.specifier.contains(versions[x.name], prereleases=True)
    ]
    if others:
        return Finding(MISSING, what, f"has {', '.join(others)}. Run: {install}")
    return Finding(OK, what, ", ".join(f"{x.name} {versions[x.name]}" for x in asked))


def _install(requirement):
    return f"pip install '{requirement.name}{requirement.specifier}'"


def _is_of(requirement, extra):
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and "extra" in str(marker)


def _installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# The devices and the memory of this machine.

_GIB = 2**30
_ENOUGH = 2 * _GIB  # A base model and TensorFlow itself.


def of_machine():
    """Yields a `Finding` for processors, memory and each device that TensorFlow detects."""
    usable = posix_only.usable_cores()
    told = ", ".join(onednn.instructions()) or "instructions unknown"
    yield Finding(OK, "processor cores", f"{usable}; {platform.machine()}, {told}")
    yield memory_finding(*posix_only.memory())
    try:
        import tensorflow as tf
    except Exception as error:  # Importing a broken package may raise anything.
        yield Finding(BROKEN, "tensorflow", f"cannot be imported: {error}".partition("\n")[0])
        return
    for kind in ("GPU", "TPU"):
        devices = tf.config.list_physical_devices(kind)
        names = [tf.config.experimental.get_device_details(x).get("device_name") for x in devices]
        told = ", ".join(name or kind for name in names) or "none that TensorFlow sees"
        yield Finding(OK, f"{kind} devices", told)


def memory_finding(total, available):
    """Total and available memory in bytes, or None where unknown."""
    if total is None:
        return Finding(OK, "memory", "unknown on this system")
    told = f"{total / _GIB:.1f} GiB, of which {available / _GIB:.1f} GiB are free"
    if available < _ENOUGH:
        return Finding(OK, "memory", f"{told}: too little for a model of base size")
    return Finding(OK, "memory", told)


# The self-test: the values of a small encoder, and its speed.

_MATRIX_SIZE = 2048
_RADIUS = 84  # Of ETC's base model.
_SIZES = {"length": 2048, "global_length": 128, "layers": 2, "hidden": 256}
_ROUNDS = 5

# Expected `small_encoder_values`.
EXPECTED = {
    "long": -0.136239,
    "global": 0.123470,
    "loss": 1.346492,
    "loss after a step": 1.326864,
}


def of_self_test():
    """Yields a `Finding` for matrix products, for the encoder's values, and for its speed."""
    finding, flops_per_second = matrix_finding()
    yield finding
    yield onednn_finding({way: _speed_by(way) for way in "01"})
    yield encoder_finding(small_encoder_values())
    yield _speed_finding(flops_per_second)


def matrix_finding():
    """Checks matrix products.

    Returns:
        (`Finding`, floating-point operations per second).
    """
    import numpy as np
    import tensorflow as tf

    rows = np.arange(64 * 64).reshape(64, 64) % 7 - 3.0  # Small integers: the product is exact.
    product = tf.matmul(tf.constant(rows, tf.float32), tf.constant(rows.T, tf.float32)).numpy()
    matrix = tf.random.stateless_normal([_MATRIX_SIZE, _MATRIX_SIZE], seed=[0, 0])
    multiply = tf.function(lambda: tf.matmul(matrix, matrix))
    speed = 2 * _MATRIX_SIZE**3 / _seconds(lambda: multiply()[0, 0].numpy())
    if not np.array_equal(product, rows @ rows.T):
        return Finding(BROKEN, "matrix product", "TensorFlow's differs from NumPy's."), speed
    told = f"right; {speed / 1e9:.0f} GFLOP/s in float32"
    return Finding(OK, "matrix product", told), speed


def onednn_finding(speeds):
    """Says whether the encoder is faster with or without oneDNN, and what is set.

    Args:
        speeds: dict from a value of the variable that turns it on, "0" or "1", to the
            floating-point operations of matrix products per second and the seconds of a forward
            pass; None where they could not be measured.
    """
    if None in speeds.values():
        return Finding(OK, "oneDNN", "not measured")
    (products, seconds), (products_without, seconds_without) = speeds["1"], speeds["0"]
    told = (
        f"{products / 1e9:.0f} GFLOP/s with it, {products_without / 1e9:.0f} without; "
        f"forward pass {seconds:.3f} s, {seconds_without:.3f} s"
    )
    best = "1" if seconds <= seconds_without else "0"
    is_close = 0.95 < seconds / seconds_without < 1 / 0.95
    if os.environ.get(onednn.VARIABLE, "1") not in (best, "") and not is_close:
        told += f"; it would be faster with {onednn.VARIABLE}={best}"
    return Finding(OK, "oneDNN", told)


def _speed_by(way):
    """What `onednn_finding` asks of a value of its variable, of a new process; None if it fails."""
    code = "from etcmodel.tools import doctor; doctor.print_speeds()"
    environment = {**os.environ, onednn.VARIABLE: way}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return tuple(map(float, done.stdout.split()[-2:])) if done.returncode == 0 else None


def print_speeds():
    """Prints the operations of matrix products per second, and the seconds of a forward pass."""
    forward = worker.graph_phases(worker.etc_functions(**_SIZES))["forward"]
    print(matrix_finding()[1], _seconds(forward))


def encoder_finding(values, expected=EXPECTED):
    """Checks the values of a small encoder.

    Args:
        values: dict as from `small_encoder_values`.
        expected: likewise.
    """
    for name, value in expected.items():
        if not math.isclose(values[name], value, rel_tol=1e-3):
            told = f"{name} is {values[name]:.6g}, but must be {value:.6g}."
            return Finding(BROKEN, "ETC's values", told)
    return Finding(OK, "ETC's values", "a forward pass and a step of training are right")


def small_encoder_values():
    """The values of an encoder with fixed weights.

    Returns:
        dict: an element of the long and of the global output, the loss, and the loss after a step
        of gradient descent.
    """
    import numpy as np
    import tensorflow as tf

    from etcmodel.models import input_utils, modeling

    model = modeling.EtcModel(
        modeling.EtcConfig(
            vocab_size=32,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            local_radius=4,
            relative_pos_max_distance=3,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )
    model.build(None)
    random = np.random.RandomState(0)  # Its numbers are the same in all versions of NumPy.
    for variable in model.trainable_variables:
        variable.assign(random.uniform(-0.5, 0.5, variable.shape))
    structure = input_utils.make_structure_from_example_ids(
        tf.ones([1, 24], tf.int32),
        tf.ones([1, 4], tf.int32),
        tf.range(24)[tf.newaxis] // 6,
        model.config.relative_pos_max_distance,
    )

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            long_output, global_output = model(
                tf.range(24)[tf.newaxis], tf.ones([1, 4], tf.int32), structure=structure
            )
            loss = tf.reduce_mean(tf.square(long_output - 1.0))
            loss += tf.reduce_mean(tf.square(global_output))
        for variable, gradient in zip(
            model.trainable_variables,
            tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero"),
            strict=True,
        ):
            variable.assign_sub(0.01 * tf.convert_to_tensor(gradient))
        return long_output[0, 5, 3], global_output[0, 1, 2], loss

    first, second = step(), step()
    found = {"long": first[0], "global": first[1], "loss": first[2], "loss after a step": second[2]}
    return {name: float(value) for name, value in found.items()}


def _speed_finding(flops_per_second):
    phases = worker.graph_phases(worker.etc_functions(**_SIZES))
    seconds = {name: _seconds(run) for name, run in phases.items()}
    share = _flops() / seconds["forward"] / flops_per_second
    told = (
        f"forward pass {seconds['forward']:.3f} s ({share:.2f} of the speed of matrix products), "
        f"training step {seconds['train']:.3f} s"
    )
    size = f"ETC of {_SIZES['layers']} layers of {_SIZES['hidden']} on {_SIZES['length']} tokens"
    return Finding(OK, size, told)


def _flops():
    sizes = {**_SIZES, "intermediate": 4 * _SIZES["hidden"]}
    return costs.forward_flops(**sizes, radius=_RADIUS)


def _seconds(run):
    """Median of several runs, after a tracing run."""
    times = []
    for _ in range(_ROUNDS + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


# Each system on an accelerator, beside itself on the CPU.

_KINDS = ("GPU", "TPU")
_LENGTHS = {"token_ids": 384, "input_ids": 384, "decoder_input_ids": 32}  # By argument.
_LEAST_ID, _BATCH, _NUM_PADDING = 4, 2, 50
_TOLERANCE = 1e-3  # Of the largest value; float32 in another order of sums stays far below.
_COLUMNS = ("system", "forward differs by", "loss", "gradients", "forward: CPU s", "device s")
_COLUMNS += ("ratio", "step: CPU s", "device s", "ratio", "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """A system's numbers and times on a device, beside those on the CPU.

    Attributes:
        system: str. Its `model_type`.
        differences: dict of "forward", "loss" and "gradients" to the largest difference from the
            CPU's values, as a share of the largest of these.
        seconds: dict of "forward" and "step" to the seconds of one on the CPU and on the device.
        error: str. Why there are no numbers; "" if there are.
    """

    system: str
    differences: dict = dataclasses.field(default_factory=dict)
    seconds: dict = dataclasses.field(default_factory=dict)
    error: str = ""

    @property
    def is_right(self):
        return not self.error and all(x <= _TOLERANCE for x in self.differences.values())

    def __str__(self):
        """A row of the table."""
        cells = [self.system, *(f"{x:.1e}" for x in self.differences.values())]
        for cpu, device in self.seconds.values():
            cells += [f"{cpu:.2g}", f"{device:.2g}", f"{device / cpu:.2f}"]
        cells += [""] * (len(_COLUMNS) - 1 - len(cells))
        return _row([*cells, self.error or ("pass" if self.is_right else "FAIL")])


def _row(cells):
    return f"| {' | '.join(cells)} |"


def accelerators():
    """Names of the GPUs and TPUs that TensorFlow sees, such as "/device:GPU:0": list of str."""
    import tensorflow as tf

    return [x.name for kind in _KINDS for x in tf.config.list_logical_devices(kind)]


def of_accelerators(devices, systems=None):
    """Compares systems on devices with the CPU.

    Args:
        devices: list of str. Names of devices, such as those of `accelerators`.
        systems: sequence of `models.systems.System`; by default all that are registered. Those
            without a `small` config are left out.
    Yields:
        lines of a table, str, and a `Finding` for each device; one that is `MISSING` if there is
        no device.
    """
    import tensorflow as tf

    from etcmodel.models import systems as known

    systems = [x for x in systems or known.registered() if x.small is not None]
    if not devices:
        told = f"TensorFlow {tf.__version__} sees none; looked for {' and '.join(_KINDS)}"
        yield Finding(MISSING, "accelerator", told)
    for device in devices:
        yield _about(device)
        yield _row(_COLUMNS)
        yield _row(["---"] * len(_COLUMNS))
        wrong = []
        for system in systems:
            found = compare(system, device)
            if not found.is_right:
                wrong.append(found.system)
            yield str(found)
        told = f"{len(systems) - len(wrong)} of {len(systems)} systems are as on the CPU"
        if wrong:
            yield Finding(BROKEN, device, f"{told}; not {', '.join(wrong)}")
        else:
            yield Finding(OK, device, told)


def _about(device):
    """What TensorFlow tells of a device, and how it computed: a line above the table."""
    import tensorflow as tf

    kind, _, index = device.rpartition("/")[2].removeprefix("device:").partition(":")
    physical = tf.config.list_physical_devices(kind)
    details = {}
    if int(index) < len(physical):
        details = tf.config.experimental.get_device_details(physical[int(index)])
    build = tf.sysconfig.get_build_info()
    told = [device, details.get("device_name", kind)]
    if capability := details.get("compute_capability"):
        told.append(f"compute capability {'.'.join(map(str, capability))}")
    told += [f"{x} {build[f'{x}_version']}" for x in ("cuda", "cudnn") if f"{x}_version" in build]
    told += [f"TensorFlow {tf.__version__}", "float32, without TF32"]
    told.append(f"batches of {_BATCH} x {_LENGTHS['input_ids']} tokens")
    return f"\n{'; '.join(told)}\n"


def compare(system, device):
    """A small model's outputs, loss, gradients and times on a device and on the CPU: `Comparison`.

    Its loss is the mean square of each output: see `serving.stablehlo.step`.
    """
    import tensorflow as tf

    is_tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        (cpu, cpu_seconds), (other, seconds) = (_computed(system, x) for x in ("CPU:0", device))
    except Exception as error:  # Of whatever kind a device has.
        # Keras and traced functions put lines of their own before the message.
        _, mark, rest = str(error).rpartition("Exception encountered when")
        rest = rest.partition("\n")[2] if mark else rest
        kind = re.search(r"^ *(\w+Error: .+)$", rest, re.M)
        told = kind[1] if kind else f"{type(error).__name__}: {rest.strip()}".partition("\n")[0]
        return Comparison(system=system.model_type, error=told)
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(is_tf32)
    return Comparison(
        system=system.model_type,
        differences={name: _difference(other[name], cpu[name]) for name in cpu},
        seconds={name: (cpu_seconds[name], seconds[name]) for name in seconds},
    )


def _difference(found, wanted):
    """The largest of lists of arrays, as a share of the largest value; infinite for no number."""
    import numpy as np

    def largest(arrays):  # NaN if there is one, which Python's `max` may pass over.
        return np.max([np.abs(x).max(initial=0.0) for x in arrays])

    differences = [x - y for x, y in zip(found, wanted, strict=True)]
    share = largest(differences) / max(largest(wanted), 1e-30)
    return float(share) if np.isfinite(share) else math.inf


def _computed(system, device):
    """Values and seconds of a small model on a device: two dicts."""
    import numpy as np
    import tensorflow as tf

    from etcmodel.models import encoders
    from etcmodel.serving import onnx_file, stablehlo

    with tf.device(device):
        model = encoders.build_encoder(system.config_class(**system.small))
        features = _features(model, system.small)
        random = np.random.RandomState(0)  # The same numbers for each device.
        for weight in model.weights:
            is_scale = "gamma" in weight.name
            weight.assign(is_scale + random.uniform(-0.1, 0.1, weight.shape))
        forward = tf.function(lambda: onnx_file.forward(model, features))
        step = tf.function(lambda: stablehlo.step(model, features))
        outputs = [x.numpy() for x in tf.nest.flatten(forward()) if x.dtype.is_floating]
        gradients = {name: x.numpy() for name, x in step().items()}
        values = {"forward": outputs, "loss": [gradients.pop("loss")]}
        values["gradients"] = list(gradients.values())
        runs = {"forward": forward, "step": step}
        return values, {x: _seconds(lambda run=run: _fetch(run())) for x, run in runs.items()}


def _fetch(outputs):
    """Waits for the outputs: copies the smallest."""
    import tensorflow as tf

    min(tf.nest.flatten(outputs), key=lambda x: x.shape.num_elements()).numpy()


def _features(model, sizes):
    """A batch of the arguments that an encoder takes, with padding: dict of tensors."""
    import numpy as np
    import tensorflow as tf

    random, taken = np.random.RandomState(0), inspect.signature(model.call).parameters
    features = {}
    for name, length in _LENGTHS.items():
        if name in taken:
            ids = random.randint(_LEAST_ID, sizes["vocab_size"], [_BATCH, length])
            features[name] = tf.constant(ids, tf.int32)
    if "attention_mask" in taken:
        mask = np.ones([_BATCH, _LENGTHS["input_ids"]], np.int32)
        mask[-1, -_NUM_PADDING:] = 0
        features["attention_mask"] = tf.constant(mask)
    return features


# The program.


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    """The options of the checks."""

    self_test: bool = option(
        True, "Run a self-test that checks values and measures speed; takes about half a minute."
    )
    accelerator: bool = option(
        False,
        "Compare each system's outputs, loss and gradients on each GPU and TPU with those on the "
        "CPU, and time both; prints a table and takes some minutes.",
    )


def run(options):
    """Prints each finding as it is made; exits with 1 if something is broken."""
    num_broken = 0
    for told in _findings(options):
        num_broken += isinstance(told, Finding) and told.state == BROKEN
        print(told, flush=True)
    print(f"broken: {num_broken}" if num_broken else "nothing is broken")
    if num_broken:
        sys.exit(1)


def _findings(options):
    """Yields each `Finding`, and the lines between them."""
    is_broken = False
    for finding in (*of_installation(), *of_machine()):
        is_broken |= finding.state == BROKEN
        yield finding
    if is_broken:
        return
    if options.self_test:
        yield from of_self_test()
    if options.accelerator:
        yield from of_accelerators(accelerators())


if __name__ == "__main__":
    run_program(DoctorOptions, run, section="doctor")
