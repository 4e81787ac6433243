"""The benchmark of exports on strings."""

from benchmarks import serving_text as benchmark


def test_sides_take_turns_and_the_first_round_is_not_counted():
    calls = []
    sides = {"one": lambda: calls.append(1), "two": lambda: calls.append(2)}
    seconds = benchmark.measure(sides, rounds=2)
    assert calls == [1, 2] * 3 and [len(values) for values in seconds.values()] == [2, 2]
    lines = benchmark.table({"one": [(2, 1), (2, 1)], "two": [(1, 3), (3, 5)]}, "one").splitlines()
    assert lines[2:] == [
        "| one | 2.000 | 1.000 | 1.000 | 1.000 |",
        "| two | 2.000 | 4.000 | 1.000 | 4.000 |",
    ]
