"""Bounds of a step on several devices: counted by hand, and by a ring that is played through."""

import types

import numpy as np
import pytest

from etcmodel.checkpoints import coverage
from etcmodel.models import presets
from etcmodel.tools import estimate
from etcmodel.tools.benchmarks import costs
from tests import page

CONFIG = types.SimpleNamespace(
    local_radius=2, num_hidden_layers=2, hidden_size=5, intermediate_size=11
)
OF = costs.Costs(num_parameters=1000, config=CONFIG)
LENGTHS = 7, 3


def play_ring(arrays):
    """Sums arrays of as many devices, which only talk to the next one: (sums, bytes by device).

    Each array is cut into a part for each device. In the first round of steps, parts are added up
    on their way; in the second, the sums go around.
    """
    devices = len(arrays)
    parts = [list(np.split(array, devices)) for array in arrays]
    sent = [0] * devices
    for step in range(2 * (devices - 1)):
        messages = []
        for device in range(devices):
            part = (device - step) % devices
            sent[device] += parts[device][part].nbytes
            messages.append(((device + 1) % devices, part, parts[device][part]))
        for to, part, values in messages:
            parts[to][part] = values + (parts[to][part] if step < devices - 1 else 0)
    return [np.concatenate(row) for row in parts], sent


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_a_ring_sends_what_is_told(devices):
    arrays = np.random.default_rng(0).integers(0, 9, [devices, 24]).astype(np.float32)
    sums, sent = play_ring(arrays)
    for found in sums:
        np.testing.assert_array_equal(found, arrays.sum(axis=0))
    assert set(sent) == {estimate.sent_bytes(arrays[0].nbytes, devices)}


def test_bytes_through_memory_are_those_of_a_count():
    tokens, kept_floats = 30, (17 * 2 + 7) * 5  # Of each token: see `costs`.
    activations = 2 * 4 * tokens * kept_floats
    reads = ["weight, forward", "weight, backward", "gradient", "weight", "moment 1", "moment 2"]
    writes = ["gradient", "weight", "moment 1", "moment 2"]
    weights = 4 * 1000 * len(reads + writes)
    assert OF.moved_bytes("train", tokens) == activations + weights
    # A layer that is computed again reads its weights again, and keeps fewer floats.
    again = OF.moved_bytes("checkpointed", tokens) - 4 * 1000
    assert weights < again < activations + weights
    assert OF.gradient_bytes == 4000


def options(**changes):
    sizes = {"peak_tflops": 2e-6, "memory_bandwidth": 4e-5, "link_bandwidth": 8e-5, **changes}
    made = estimate.ScalingOptions(devices=(1, 2, 8), hop_microseconds=1e3, utilization=0.5)
    for name, value in sizes.items():  # Below what a device may have, so that sums are easy.
        object.__setattr__(made, name, value)
    return made


def test_bounds_are_the_longest_part_and_the_sum_of_all():
    flops = 3 * OF.flops(*LENGTHS, 4)
    products, memory = flops / 2e6, OF.moved_bytes("train", 40) / 4e4
    for step in estimate.steps(OF, options(), LENGTHS, 4):
        link, hops = step.sent / 8e4, 2e-3 * (step.devices - 1)
        assert step.examples == 4 * step.devices
        assert step.sent == 2 * 4000 * (step.devices - 1) / step.devices
        assert step.least == pytest.approx(max(products, memory, link))
        assert step.most == pytest.approx(2 * products + memory + link + hops)
        alone = max(products, memory)
        assert step.efficiency == pytest.approx(alone / (alone + link + hops))
        assert step.examples_per_second == pytest.approx(step.examples / step.least)


def test_one_device_waits_for_none_and_a_slow_link_bounds_the_step():
    alone, *others = estimate.steps(OF, options(), LENGTHS, 4)
    assert (alone.sent, alone.efficiency) == (0, 1)
    assert 1 > others[0].efficiency > others[1].efficiency > 0
    slow = estimate.steps(OF, options(link_bandwidth=1e-9), LENGTHS, 4)[-1]
    assert slow.least == pytest.approx(slow.sent) and slow.efficiency < 0.01


def test_the_authors_step_is_within_the_bounds():
    """63,000 steps of 512 examples took 11 h 46 min on 256 cores (Ainslie et al. 2020, Table 6)."""
    config = presets.preset("etc_base")
    of = costs.Costs(coverage.num_parameters(config), config)
    (step,) = estimate.steps(of, estimate.ScalingOptions(devices=(256,)), (4096, 230), 2)
    took = (11 * 60 + 46) * 60 / 63_000
    assert step.examples == 512 and step.least < took / 5
    assert step.most == pytest.approx(took, rel=0.05)


def test_the_page_shows_what_is_printed(capsys):
    text = (page.DOCS / "performance.md").read_text(encoding="utf-8")
    estimate.run(estimate.EstimateOptions(batch_size=2, devices=(8, 32, 128, 256, 512)))
    assert capsys.readouterr().out in text


def test_devices_are_numbers_of_at_least_one():
    with pytest.raises(ValueError, match="`devices` must be numbers of at least 1"):
        estimate.EstimateOptions(devices=(8, 0))
