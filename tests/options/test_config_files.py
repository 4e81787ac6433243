"""Options from YAML files and --override: precedence, errors, and the way back."""

import dataclasses
import subprocess
import sys

import pytest
from absl import flags
from hypothesis import given
from hypothesis import strategies as st

from etcmodel import options
from etcmodel.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training(options.Options):
    rate: float = option(0.5, "Rate.", lower_bound=0)
    steps: int = option(3, "Steps.", lower_bound=1)
    compiled: bool = option(False, "Compiled.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(options.Options):
    aliases = {"data_file": "data", "input_data": "data"}

    data: str | None = option(None, "Data.")
    kind: str = option("a", "Kind.", choices=("a", "b"))
    names: tuple = option(("x", "y"), "Names.")
    sizes: tuple[int, ...] = option((1,), "Sizes.")
    limit: int | None = option(None, "Limit.")


SECTIONS = {"training": Training, "task": Task}


def parse(*arguments):
    """The values of both sections after these arguments, and the flags."""
    values = flags.FlagValues()
    program = options.ProgramFlags(SECTIONS, values)
    program.define()
    values(["program", *arguments])
    program.resolve_aliases()
    program.read_config()
    return program.values("training") | program.values("task"), values


def read(tmp_path, text, *arguments):
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return parse(f"--config={path}", *arguments)[0]


def refused(tmp_path, text):
    with pytest.raises(ValueError) as error_info:
        read(tmp_path, text)
    message = str(error_info.value)
    assert "\n" not in message
    assert message.startswith(f"{tmp_path}/run.yaml")
    return message.removeprefix(f"{tmp_path}/run.yaml")


def test_options_stand_in_their_sections_or_alone(tmp_path):
    text = "training: {rate: 1.0e-3, compiled: true}\ndata: d\ntask:\n  names: [p, q]\n"
    expected = {
        **vars(Training(rate=1e-3, compiled=True)),
        **vars(Task(data="d", names=("p", "q"))),
    }
    assert read(tmp_path, text) == expected
    assert read(tmp_path, "") == {**vars(Training()), **vars(Task())}
    assert read(tmp_path, "training:\ntask:\n  limit: null\n")["limit"] is None


def test_later_files_win_overrides_win_over_files_and_flags_over_all(tmp_path):
    (tmp_path / "first.yaml").write_text("rate: 1.0\nsteps: 10\nkind: b\nlimit: 1\n")
    (tmp_path / "second.yaml").write_text("rate: 2.0\nsteps: 20\nlimit: 2\n")
    arguments = [
        f"--config={tmp_path}/first.yaml",
        "--steps=40",
        "--override=training.rate=3",
        f"--config={tmp_path}/second.yaml",
        "--override=steps=30",
    ]
    values, parsed = parse(*arguments)
    assert (values["rate"], values["steps"], values["kind"], values["limit"]) == (3.0, 40, "b", 2)
    assert parsed["rate"].present and not parsed["compiled"].present
    assert parse(*arguments, "--rate=4")[0]["rate"] == 4.0


def test_a_flag_that_repeats_its_default_wins_too(tmp_path):
    assert read(tmp_path, "steps: 10\n", "--steps=3")["steps"] == 3


def test_overrides_are_read_as_flags_are():
    values, _ = parse("--override=names=p,q", "--override=task.sizes=3,4", "--override=compiled=1")
    assert values["names"] == ("p", "q") and values["sizes"] == (3, 4) and values["compiled"]
    for text, message in (
        ("steps", "--override=steps: give name=value."),
        ("step=3", "--override=step=3: there is no option `step`. The nearest is `steps`."),
        (
            "trainig.steps=3",
            "--override=trainig.steps=3: there is no option `trainig.steps`. The nearest is "
            "`training.steps`.",
        ),
        ("steps=x", "--override=steps=x: invalid literal"),
        ("steps=0", "--override=steps=0: 0 is not"),
        ("kind=c", "--override=kind=c: value should be one of <a|b>"),
        ("rate=inf", "--override=rate=inf: `rate` must be a finite number. Received: inf"),
        ("steps=" + "9" * 400, "--override=steps=99999"),
        ("steps=" + "x" * 9000, "--override=steps=xxxxx"),
        ("x" * 9000 + "=3", "--override=xxxxx"),
    ):
        with pytest.raises(ValueError) as error_info:
            parse(f"--override={text}")
        told = str(error_info.value)
        assert told.startswith(message) and len(told) < 800


def test_numbers_of_flags_are_those_that_a_model_can_have():
    for flag, message in (
        (
            "--limit=" + "9" * 400,
            "`limit` must fit into 64 bits, signed. Received: an integer of 1329 bits",
        ),
        (f"--limit={2**63}", f"`limit` must fit into 64 bits, signed. Received: {2**63}"),
        ("--rate=nan", "`rate` must be at least 0. Received: nan"),
        ("--rate=inf", "`rate` must be a finite number. Received: inf"),
    ):
        values, _ = parse(flag)
        with pytest.raises(ValueError) as error_info:
            Training(**{name: values[name] for name in vars(Training())})
            Task(**{name: values[name] for name in vars(Task())})
        assert str(error_info.value) == message


def test_aliases_are_taken_in_files(tmp_path):
    assert read(tmp_path, "data_file: d\n")["data"] == "d"
    assert read(tmp_path, "task: {data_file: d}\ninput_data: d\n")["data"] == "d"
    assert read(tmp_path, "data_file: d\n", "--data=e")["data"] == "e"
    assert read(tmp_path, "data: d\n", "--data_file=e")["data"] == "e"
    assert refused(tmp_path, "data: d\ninput_data: e\n") == (
        ": `data` and `input_data` are one option with two values: 'd' and 'e'. Give one of them."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stepz: 3", ": there is no option `stepz`. The nearest is `steps`."),
        (
            "training: {step: 3}",
            ": there is no option `training.step`. The nearest is `training.steps`.",
        ),
        (
            "training: {kind: a}",
            ": there is no option `training.kind`. The nearest is `task.kind`.",
        ),
        (
            "trainig: {steps: 3}",
            ": there is no section `trainig`. The nearest is `training`.",
        ),
        ("trainig:", ": there is no option `trainig`. The nearest is the section `training`."),
        ("task: {nams: {a: b}}", ": there is no option `task.nams`. The nearest is `task.names`."),
        ("training: 3", ": `training` is a section: give its options, as `name: value`. Received"),
        ("steps: many", ": `steps` must be an integer. Received: 'many'"),
        ("steps: 1.5", ": `steps` must be an integer. Received: 1.5"),
        ("steps: true", ": `steps` must be an integer. Received: True"),
        ("steps: 0", ": `steps` must be at least 1. Received: 0"),
        ("steps:", ": `steps` must have a value."),
        ("compiled: 1", ": `compiled` must be true or false. Received: 1"),
        ("rate: fast", ": `rate` must be a number. Received: 'fast'"),
        ("data: 5", ": `data` must be text (in quotes, if YAML reads it as something else)."),
        ("kind: c", ": `kind` must be one of ('a', 'b'). Received: 'c'"),
        ("names: {a: b}", ": `names` must be a list. Received: {'a': 'b'}"),
        ("sizes: [1, b]", ": `sizes`, each item, must be an integer. Received: 'b'"),
        ("steps: 3\nsteps: 4", ", line 2: malformed YAML: `steps` stands there twice."),
        ("steps: [", ", line 2: malformed YAML: "),
        ("- steps", ": must be a mapping of options to values, as `name: value`."),
        ("data: !!python/object/apply:os.getcwd []", ", line 1: malformed YAML: 'python/obj"),
        ("? [a, b]\n: 3", ", line 1: malformed YAML: "),
        (
            "a: &a [x,x]\nb: [*a,*a]\n" + "c: [*a]\nd: " + "[" * 3000,
            ", line 4: malformed YAML: nested",
        ),
        ("steps: !!int ''", ", line 1: malformed YAML: '' is no value of the kind `int`."),
        ("compiled: !!bool x", ", line 1: malformed YAML: 'x' is no value of the kind `bool`."),
        ("training: !!map [a]", ", line 1: malformed YAML: expected a mapping node"),
        ("steps: 2001-99-99", ": `steps` must be an integer. Received: '2001-99-99'"),
        ("rate: 3\nsteps: " + "9" * 400, ", line 2: malformed YAML: '999"),
        ("steps: " + "9" * 5000, ", line 1: malformed YAML: '999"),
        ("rate: " + "9" * 5000, ", line 1: malformed YAML: '999"),
        ("rate: 1.0e400", ": `rate` must be a finite number. Received: inf"),
        ("rate: .nan", ": `rate` must be at least 0. Received: nan"),
        ("steps: " + "m" * 9000, ": `steps` must be an integer. Received: 'mmm"),
        ("m" * 900 + ": 3", ": there is no option `mmm"),
        ("training: [" + "[a, b], " * 900 + "]", ": `training` is a section: give its options"),
        ("kind: " + "m" * 9000, ": `kind` must be one of ('a', 'b'). Received: 'mmm"),
        ("data: d\ninput_data: " + "m" * 9000, ": `data` and `input_data` are one option with two"),
        ("#" + "m" * 300_000, ": is longer than 256 KiB."),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_wrong_is_told_in_a_short_line(tmp_path, text, message):
    told = refused(tmp_path, text + "\n")
    assert told.startswith(message) and len(told) < 600


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(ValueError, match="--config: no such file: 'gone.yaml'"):
        parse("--config=gone.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"data: \xff\n")
    with pytest.raises(ValueError, match="bad.yaml: is not UTF-8"):
        parse(f"--config={tmp_path}/bad.yaml")


def test_a_number_as_people_write_it_is_a_number(tmp_path):
    assert read(tmp_path, "rate: 1e-4\n")["rate"] == 1e-4  # Text, to YAML.
    assert read(tmp_path, "rate: 2\n")["rate"] == 2.0


PROGRAM = """
import dataclasses
from etcmodel import options

@dataclasses.dataclass(frozen=True, kw_only=True)
class Told(options.Options):
    steps: int = options.option(3, "Steps.")
    sizes: tuple[int, ...] = options.option((1,), "Sizes.")
    loud: bool = options.option(False, "Loud.")

options.run_program(Told, lambda told: print(told.steps))
"""


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--steps=" + "9" * 400, "error: `steps` must fit into 64 bits, signed."),
        ("--steps=" + "9" * 5000, "error: flag --steps=999"),
        ("--sizes=" + "x" * 5000, "error: --sizes must be integers. Received: xxx"),
        ("--" + "x" * 5000 + "=3", "error: one of these is no flag: --xxx"),
        ("--override=steps=" + "x" * 5000, "error: --override=steps=xxx"),
        ("--loud=my_model", "error: flag --loud=my_model: must be true or false\n"),
    ],
    ids=lambda value: value[:20],
)
def test_a_program_tells_what_is_wrong_with_a_flag_in_a_short_line(flag, message):
    done = subprocess.run([sys.executable, "-c", PROGRAM, flag], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1
    assert len(done.stderr) < 1100


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)
ITEM = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1)
TRAINING = st.builds(
    Training,
    rate=st.floats(0, allow_infinity=False),
    steps=st.integers(1, 2**60),
    compiled=st.booleans(),
)
TASK = st.builds(
    Task,
    data=st.none() | TEXT,
    kind=st.sampled_from("ab"),
    names=st.lists(ITEM).map(tuple),
    sizes=st.lists(st.integers(-(2**40), 2**40)).map(tuple),
    limit=st.none() | st.integers(-10, 10),
)


@given(TRAINING, TASK)
def test_what_is_written_is_read_back(tmp_path_factory, training, task):
    path = tmp_path_factory.mktemp("dump") / "run.yaml"
    path.write_text(options.dump({"training": training, "task": task}), encoding="utf-8")
    values, _ = parse(f"--config={path}")
    assert values == {**vars(training), **vars(task)}
    assert options.load(str(path), SECTIONS) == values


@given(TRAINING, TASK)
def test_options_come_back_from_flags(training, task):
    values = {**vars(training), **vars(task)}
    arguments = []
    for name, value in values.items():
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            arguments.append(f"--{name}={text}")
    parsed, _ = parse(*arguments)
    assert Training(**{name: parsed[name] for name in vars(training)}) == training
    assert Task(**{name: parsed[name] for name in vars(task)}) == task


def test_what_was_kept_is_checked_entry_by_entry():
    kept = {"data_file": "x", "sizes": [1, 2], "limit": None, "kind": "b"}
    found = options.load_kept(Task, kept, "kept.json")
    assert found == {"data": "x", "sizes": (1, 2), "limit": None, "kind": "b"}
    for entry, message in (
        ({"sise": 3}, "there is no option `sise`"),
        ({"sizes": ["x"]}, "`sizes`, each item, must be an integer. Received: 'x'"),
        ({"limit": "3"}, "`limit` must be an integer. Received: '3'"),
        (
            {"limit": 10**400},
            "`limit` must fit into 64 bits, signed. Received: an integer of 1329 bits",
        ),
        ({"kind": "c"}, "`kind` must be one of"),
    ):
        with pytest.raises(ValueError, match=f"^kept.json: {message}"):
            options.load_kept(Task, entry, "kept.json")
