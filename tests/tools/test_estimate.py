"""What an ETC costs, as told before it is run: counted by hand, and beside what was measured."""

import pytest

from etcmodel.checkpoints import coverage
from etcmodel.models import encoders, presets
from etcmodel.tools import estimate
from etcmodel.tools.benchmarks import costs
from tests import page

GB = 1e9
# Peaks of processes without an optimizer in GB, from benchmarks/RESULTS.md: of a forward pass, a
# step, and a checkpointed step, by (long and global tokens, hidden size, layers).
MEASURED = {
    (1024 + 128, 256, 2): (0.99, 1.14, 1.16),
    (1024 + 128, 256, 6): (1.02, 1.28, 1.30),
    (1024 + 128, 768, 2): (1.23, 1.59, 1.61),
    (1024 + 128, 768, 6): (1.39, 2.08, 2.12),
    (4096 + 128, 256, 2): (1.02, 1.30, 1.26),
    (4096 + 128, 256, 6): (1.10, 1.66, 1.40),
    (4096 + 128, 768, 2): (1.28, 1.98, 1.84),
    (4096 + 128, 768, 6): (1.59, 3.10, 2.43),
    (4096 + 230, 768, 12): (2.02, 5.67, 3.61),
    (65536 + 512, 768, 12): (None, None, 12.1),
}
WORST = ((4096 + 128, 768, 2), "forward")  # Estimated too high.


def config_of(layers, hidden):
    sizes = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": hidden // 64,
        "intermediate_size": 4 * hidden,
    }
    return encoders.replace(presets.preset("etc_base"), **sizes)


def test_memory_is_what_was_measured():
    for (tokens, hidden, layers), peaks in MEASURED.items():
        config = config_of(layers, hidden)
        of = costs.Costs(coverage.num_parameters(config), config, slots=0)
        for phase, measured in zip(("forward", "train", "checkpointed"), peaks, strict=True):
            within = 0.3 if ((tokens, hidden, layers), phase) == WORST else 0.2
            if measured is not None:
                assert of.num_bytes(phase, tokens) / GB == pytest.approx(measured, rel=within)


def test_parameters_are_those_of_the_model():
    config = config_of(2, 64)
    model = encoders.build_encoder(config)
    assert coverage.num_parameters(config) == model.count_params()


def test_operations_are_those_of_a_count_of_all_products():
    length, global_length, radius, layers, hidden, intermediate = 7, 3, 2, 2, 5, 11
    count = 0
    for own, other in ((length, global_length), (global_length, length)):
        count += 4 * own * hidden * hidden  # Query, key, value and output.
        count += 2 * own * hidden * hidden  # Key and value for the other input.
        count += 2 * own * hidden * intermediate
        count += 2 * own * other * hidden  # Logits, and sums of values, of the other input's keys.
    count += 2 * length * (2 * radius + 1) * hidden
    count += 2 * global_length * global_length * hidden
    found = costs.forward_flops(
        length,
        global_length,
        radius=radius,
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
    )
    assert found == 2 * layers * count


@pytest.mark.parametrize("phase", ["forward", "train", "checkpointed"])
def test_the_longest_input_fits_just_so(phase):
    config = config_of(2, 256)
    of = costs.Costs(coverage.num_parameters(config), config)
    tokens = of.most_tokens(phase, 8 * GB)
    assert of.num_bytes(phase, tokens) <= 8 * GB < of.num_bytes(phase, tokens + 1)
    assert of.most_tokens(phase, 0.5 * GB) == 0


def test_the_page_shows_what_is_printed(capsys):
    text = (page.DOCS / "performance.md").read_text(encoding="utf-8")
    estimate.run(estimate.EstimateOptions())
    assert capsys.readouterr().out in text


def test_other_systems_are_refused_on_many_devices(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "gmat"}')
    with pytest.raises(ValueError, match="only ETC is estimated. Received: 'gmat'"):
        estimate.run(estimate.EstimateOptions(model_config_file=str(path), devices=(8,)))


def test_of_other_systems_the_parameters_are_told(capsys):
    estimate.run(estimate.EstimateOptions(preset="allenai/longformer-base-4096"))
    found = capsys.readouterr().out.splitlines()
    assert found[0] == "allenai/longformer-base-4096: 148,659,456 parameters"
    assert found[3:6] == [
        "weights, float32           0.59",
        "weights, 16 bits           0.30",
        "training, AdamW            2.38  (with gradients and two moments)",
    ]
