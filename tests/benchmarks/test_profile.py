"""A profile's times are those of operations themselves, and add up to the run."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import profile

# Calls within calls: a number of pauses between them, and the calls.
CALLS = st.recursive(
    st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.just(())),
    lambda calls: st.tuples(
        st.sampled_from("abc"), st.integers(1, 5), st.lists(calls, max_size=3).map(tuple)
    ),
    max_leaves=12,
)


def played(call, start, events, own):
    """When a call ends that does its own work first; adds its events, and its own time by name."""
    name, work, inner = call
    own[name] = own.get(name, 0) + work
    end = start + work
    for other in inner:
        end = played(other, end, events, own)
    events.append((start, end - start, name))
    return end


@given(calls=st.lists(CALLS, max_size=4))
def test_time_within_is_not_counted_twice(calls):
    events, own, end = [], {}, 0
    for call in calls:
        end = played(call, end, events, own)
    found = profile.self_times(events)
    assert {name: time for name, (time, _) in found.items()} == own
    assert sum(number for _, number in found.values()) == len(events)


@pytest.mark.slow
def test_the_products_of_a_layer_are_in_the_table(capsys):
    sizes = {"length": 256, "global_length": 16, "num_layers": 1}
    profile.main(profile.ProfileOptions(**sizes, rounds=2, rows=3))
    printed = capsys.readouterr().out
    seconds = float(re.search(r"^forward: (\S+) s$", printed, re.M)[1])
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\S+) \| (\S+) \|$", printed, re.M)
    (dense,) = (int(number) for kind, number, *_ in rows if "FusedMatMul" in kind)
    # Of each input: query, its key and value and those for the other, output, two of a block.
    assert dense == 2 * (1 + 2 + 2 + 1 + 2)
    assert rows[-1][0] == "others" and len(rows) == 4
    assert 0 < sum(float(own) for *_, own, _ in rows) < 1.05 * seconds


@pytest.mark.slow
@pytest.mark.parametrize("model", ("longformer", "big_bird", "modernbert"))
def test_another_system_has_the_sizes_of_its_config(capsys, model):
    sizes = {"length": 256, "num_layers": 1, "rounds": 1, "rows": 40}
    profile.main(profile.ProfileOptions(model=model, **sizes))
    printed = capsys.readouterr().out
    products = re.findall(r"^\| \w*MatMul\w* \| (\d+) \|", printed, re.M)
    assert sum(map(int, products)) >= 6  # Four projections, and two of the block.
