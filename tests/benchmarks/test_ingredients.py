"""What the generated examples of each kind tell, and to whom; and the tables of their runs."""

import json

import numpy as np
import pytest

from benchmarks import ingredient_data as data
from benchmarks import ingredient_rows as rows
from benchmarks import ingredients
from etcmodel.tools import row_results

COUNT = 400
VALUE, KEY = 2, 2 + data.NUM_VALUES


def rng(seed=0):
    return np.random.default_rng(seed)


def values_in(tokens):
    return [token - VALUE for token in tokens if VALUE <= token < KEY]


def share_right(guesses, labels):
    return np.mean([guess == label for guess, label in zip(guesses, labels, strict=True)])


@pytest.mark.parametrize(("length", "reach"), [(64, 32), (512, 128)])
def test_the_only_value_is_out_of_reach_and_nothing_near_tells_it(length, reach):
    features, labels = data.long_range(2 * COUNT, rng(), length=length, reach=reach)
    tokens, found = features["token_ids"], labels[:, -1]
    assert (labels[:, :-1] == -1).all() and (tokens[:, -1] == KEY).all()
    for row, label in zip(tokens, found, strict=True):
        assert values_in(row) == [label] and not values_in(row[-1 - reach :])
    # What went with each near token in one half predicts the other half no better than guessing.
    tallies = np.zeros([data.vocabulary(), data.NUM_VALUES])
    near = tokens[:, -reach:]
    for row, label in zip(near[:COUNT], found[:COUNT], strict=True):
        np.add.at(tallies, (row, label), 1)
    guesses = [np.argmax(np.log1p(tallies[row]).sum(axis=0)) for row in near[COUNT:]]
    chance = 1 / data.NUM_VALUES
    error = np.sqrt(chance * (1 - chance) / COUNT)
    assert share_right(guesses, found[COUNT:]) < chance + 4 * error
    assert np.bincount(found).max() / len(found) < chance + 4 * error


def test_sentences_of_long_range_are_whole_and_have_global_tokens():
    features, _ = data.long_range(3, rng(), length=128, reach=16)
    for links, is_real in zip(features["links"], features["global_token_ids"], strict=True):
        assert links[0] == 0 and set(np.diff(links)) == {0, 1}
        assert is_real.tolist() == [1] * (links[-1] + 1) + [0] * (len(is_real) - links[-1] - 1)
        sizes = np.bincount(links)
        assert sizes[:-1].min() >= 6 and sizes.max() <= 10


def test_no_room_for_the_value_is_refused():
    with pytest.raises(ValueError, match="above `reach` . 1. Received: length=64, reach=63"):
        data.long_range(1, rng(), length=64, reach=63)
    features, labels = data.long_range(9, rng(), length=64, reach=62)
    assert (features["token_ids"][:, 0] == VALUE + labels[:, -1]).all()


def test_only_the_sentence_of_a_key_tells_its_value():
    features, labels = data.structure(COUNT, rng(), length=32)
    left_guesses, right_guesses, found = [], [], []
    for tokens, links, answers in zip(
        features["token_ids"], features["links"], labels, strict=True
    ):
        for place in np.flatnonzero(answers >= 0):
            (value,) = values_in(tokens[links == links[place]])
            assert tokens[place] == KEY and value == answers[place]
            slot = tokens[place // 16 * 16 : (place // 16 + 1) * 16]
            left, right = values_in(slot)
            assert left != right
            left_guesses.append(left)
            right_guesses.append(right)
            found.append(value)
    assert len(found) == 2 * COUNT
    for guesses in (left_guesses, right_guesses):
        assert abs(share_right(guesses, found) - 0.5) < 4 * np.sqrt(0.25 / len(found))


def test_nothing_in_the_tokens_tells_where_sentences_meet():
    """A tally of all places of both values, made of one half, predicts nothing of the other."""
    features, labels = data.structure(2 * COUNT, rng())
    tallies, right, total = {}, 0, 0
    for row, (tokens, answers) in enumerate(zip(features["token_ids"], labels, strict=True)):
        for place in np.flatnonzero(answers >= 0):
            begin = place // 16 * 16
            slot = tokens[begin : begin + 16]
            at = [i for i, token in enumerate(slot) if VALUE <= token < KEY]
            is_left = slot[at[0]] - VALUE == answers[place]
            key = (place - begin, *at)
            if row < COUNT:
                tallies[key] = tallies.get(key, 0) + (1 if is_left else -1)
            else:
                right += (tallies.get(key, 0) > 0) == is_left
                total += 1
    assert abs(right / total - 0.5) < 4 * np.sqrt(0.25 / total)


def test_structure_needs_whole_slots():
    with pytest.raises(ValueError, match="multiple of 16. Received: 36"):
        data.structure(1, rng(), length=36)


@pytest.mark.parametrize("make", [data.long_range, data.structure])
def test_the_same_seed_makes_the_same_examples(make):
    for name, x in make(3, rng(5))[0].items():
        np.testing.assert_array_equal(x, make(3, rng(5))[0][name])
        assert x.dtype == np.int32
    assert (make(3, rng(5))[1] == make(3, rng(5))[1]).all()
    assert (make(3, rng(5))[0]["token_ids"] != make(3, rng(6))[0]["token_ids"]).any()


def test_the_table_has_the_rows_in_order_and_leaves_out_what_is_not_there():
    found = [
        {"variant": "no CPC", "seed": 1, "accuracy": 0.75, "mlm_loss": 0.5},
        {"variant": "no CPC", "seed": 0, "accuracy": 0.25, "mlm_loss": 0.5},
        {"variant": "no pre-training", "seed": 0, "accuracy": 0.125},
    ]
    names = ("ETC", "no pre-training", "no CPC")
    assert row_results.table(found, names).splitlines() == [
        "| configuration | accuracy | of each seed |",
        "|---|---|---|",
        "| no pre-training | 0.125 | 0.125 |",
        "| no CPC | 0.500 ± 0.354 | 0.250, 0.750 |",
    ]
    assert row_results.table(found, names, ("accuracy", "mlm_loss")).splitlines() == [
        "| configuration | accuracy | mlm_loss | of each seed |",
        "|---|---|---|---|",
        "| no pre-training | 0.125 |  | 0.125 |",
        "| no CPC | 0.500 ± 0.354 | 0.500 ± 0.000 | 0.250, 0.750 |",
    ]


def test_what_is_in_the_file_is_not_run_again(tmp_path, capsys):
    lines = [
        {"kind": kind, "variant": name, "seed": 0, "share": 1.0}
        | dict.fromkeys(rows.FIGURES[kind], 0.5)
        for kind, table in rows.KINDS.items()
        for name in table
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = file.read_text()
    ingredients.main(ingredients.IngredientOptions(output_dir=str(tmp_path), seeds=(0,)))
    printed = capsys.readouterr().out.splitlines()
    assert file.read_text() == before
    assert [line for line in printed if line in rows.KINDS] == list(rows.KINDS)
    assert printed.count("| no global tokens | 0.500 | 0.500 |") == 2
    assert "| absolute positions | 0.500 | 0.500 | 0.500 |" in printed


@pytest.mark.slow
def test_a_run_learns_what_a_flat_one_cannot_and_is_kept(tmp_path, capsys):
    options = ingredients.IngredientOptions(
        output_dir=str(tmp_path), kinds=("structure",), rows=("ETC", "flat"), seeds=(0,)
    )
    ingredients.main(options)
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    accuracies = {result["variant"]: result["accuracy"] for result in results}
    assert accuracies["ETC"] > 0.9 and accuracies["flat"] < 0.6
    row = f"| flat | {accuracies['flat']:.3f} | {accuracies['flat']:.3f} |"
    assert row in capsys.readouterr().out.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("meaning", ("no pre-training", "CPC of projections")),
        ("longer", ("absolute positions",)),  # Which begins with `length`.
    ],
)
def test_a_trial_has_all_figures_and_is_kept(kind, names, tmp_path, capsys):
    options = ingredients.IngredientOptions(
        output_dir=str(tmp_path), kinds=(kind,), rows=names, seeds=(0,), share=0.01
    )
    ingredients.main(options)
    file = tmp_path / "results.jsonl"
    results = [json.loads(line) for line in file.read_text().splitlines()]
    assert [result["variant"] for result in results] == list(names)
    for result in results:
        figures = result.keys() - {"kind", "variant", "seed", "share", "cpu_seconds"}
        is_pretrained = rows.KINDS[kind][result["variant"]].is_pretrained
        assert figures == set(rows.FIGURES[kind] if is_pretrained else rows.FIGURES[kind][:1])
        assert all(np.isfinite(result[name]) for name in figures)
    printed = capsys.readouterr().out
    before = file.read_text()
    ingredients.main(options)
    assert file.read_text() == before
    assert printed.endswith(capsys.readouterr().out)


def test_a_row_runs_only_where_a_table_has_it(tmp_path, capsys):
    key = {"kind": "meaning", "variant": "no CPC", "seed": 0, "share": 1.0}
    line = json.dumps(key | dict.fromkeys(rows.FIGURES["meaning"], 0.5))
    file = tmp_path / "results.jsonl"
    file.write_text(line + "\n")
    options = ingredients.IngredientOptions(
        output_dir=str(tmp_path), kinds=("range", "meaning"), rows=("no CPC",), seeds=(0,)
    )
    ingredients.main(options)
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line in rows.KINDS] == ["meaning"]
    assert file.read_text() == line + "\n"


def test_rows_without_a_table_and_the_seed_of_the_test_examples_are_refused():
    with pytest.raises(ValueError, match=r"None of the tables \('range', 'length'\) has any of"):
        ingredients.IngredientOptions(kinds=("range", "length"), rows=("no CPC",))
    for seed in (-1, rows.TEST_SEED):
        with pytest.raises(ValueError, match=f"between 0 and 999999. Received: {seed}"):
            ingredients.IngredientOptions(seeds=(0, seed))
