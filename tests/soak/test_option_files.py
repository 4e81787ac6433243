"""Damaged files of options: refused in one line, at once, or read as YAML says.

`make soak` runs more of them (`make soak COUNT=2000`).
"""

import collections
import math
import os
import random

import yaml

from etcmodel import bounded_yaml
from etcmodel.options import config_files, fields
from etcmodel.tasks.hotpotqa.config import HotpotQAInputConfig
from etcmodel.training import TrainingConfig
from tests.soak import bounds, malformed, wrong

COUNT = int(os.environ.get("SOAK_COUNT", "40"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
SECTIONS = {"training": TrainingConfig, "task": HotpotQAInputConfig}
FIELDS = {x.name: x for kind in SECTIONS.values() for x in fields.option_fields(kind)}
SECONDS, MEMORY = 2.0, 64 << 20
GOOD = {
    "training": {"learning_rate": 0.0001, "train_batch_size": 8, "optimizer": "adamw"},
    "task": {"long_seq_length": 512},
    "random_seed": 3,
    "output_dir": "run",
}
GOOD_TEXT = yaml.safe_dump(GOOD, sort_keys=False)
VALUES = (
    *("", "null", "~", "true", "yes", "'true'", "-3", "0", "1.5", "'8'", "08", "0o17"),
    *("0x1f", "1_0"),
    *("1:30", ".nan", ".inf", "-.inf", "1e999", "1e-4", "1.0e-4", "x", "[]", "[1, 2]", "{a: 1}"),
    *("[[1]]", "2001-01-01", "2001-99-99", "2001-01-01 99:00:00", "!!int ''", "!!float ''"),
    *("!!bool x", "!!map [a]", "!!seq {a: 1}", "!!set {a}", "!!omap [a]", "!!binary ''", "!!str 3"),
    *("!!null x", "!!timestamp x", "!x y", "*nothing", "&a [*a]", "&a {b: *a}", "|\n x\n  y"),
    *("? a",),
    *("'\\ud800'", '"\\ud800"', '"\\x00"', "!!python/object/apply:os.system [ls]", "@", "`", "%"),
    *("9" * 400, "9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, "1" + ":0" * 5000, "x" * 50_000),
    *(
        "é\u2028",
        "[" * 3000,
        "[" * 3000 + "]" * 3000,
        "- " * 3000 + "x",
        "{a: " * 3000,
        "1." + "0" * 999,
    ),
)
LINES = (
    *("learning_rat: 1", "training: 7", "training: [1]", "- a", "random_seed: 4"),
    *("? [a]\n: 3", "? {}"),
    *(
        "---",
        "...",
        "%YAML 9.9",
        "\tx: 1",
        "<<: {random_seed: 9}",
        "task.random_seed: 5",
        "k" * 5000,
    ),
    *("x" * 5000 + ": 1", "null: 1", "1: 1", "true: 1", "'': 1", "training:\n  random_seed: 5"),
)


def bomb(num_levels=9, width=9):
    """Each list has several times the one before: a few bytes, and many values."""
    lines = [f"a0: &a0 [{', '.join('x' * width)}]"]
    for level in range(1, num_levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join([*lines, f"random_seed: *a{num_levels - 1}\n"])


def damaged(rng):
    """A file: bytes."""
    kind = rng.randrange(7)
    if kind < 3:
        value = rng.choice(VALUES)
        if rng.random() < 0.5:
            return f"{rng.choice(sorted(FIELDS))}: {value}\n".encode("utf-8", "replace")
        lines = GOOD_TEXT.splitlines()
        place = rng.choice([i for i, line in enumerate(lines) if not line.endswith(":")])
        lines[place] = f"{lines[place].partition(':')[0]}: {value}"
        return "\n".join(lines).encode("utf-8", "replace")
    if kind == 3:
        return rng.choice(
            (GOOD_TEXT + rng.choice(LINES), rng.choice(LINES) + "\n" + GOOD_TEXT)
        ).encode()
    if kind == 4:
        odd = malformed.mutated(rng, GOOD)
        return yaml.safe_dump(odd, allow_unicode=False).encode("utf-8", "replace")
    if kind == 5:
        return rng.choice(
            (bomb().encode(), GOOD_TEXT.encode("utf-16"), wrong.no_utf8(rng, GOOD_TEXT.encode()))
        )
    return malformed.damaged(rng, GOOD_TEXT.encode())


class Loader(yaml.SafeLoader):
    """YAML's values, but what looks like a date is a text, as in its version 1.2."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith("timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class NoReadingError(ValueError):
    """A file has not one reading."""


def expected(content):
    """The options of a file, read slowly: dict.

    Raises:
        NoReadingError: if they cannot be read in one way.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NoReadingError from None
    if (
        len(content) > bounded_yaml.MAX_BYTES
        or max(map(text.count, "[{&-?")) > 900
        or "*a8" in text
    ):
        raise NoReadingError
    try:
        values = yaml.load(text, Loader)
    except Exception:  # It fails in many ways.
        raise NoReadingError from None
    found = {}
    for name, value in (values or {}).items() if isinstance(values or {}, dict) else [("", 0)]:
        inner = {name: value}
        if name in SECTIONS:
            inner = {} if value is None else value
        for key, item in inner.items() if isinstance(inner, dict) else [("", 0)]:
            key = key.rpartition(".")[2] if isinstance(key, str) else ""
            if key not in FIELDS or (key in found and found[key] != typed(FIELDS[key], item)):
                raise NoReadingError
            found[key] = typed(FIELDS[key], item)
    return found


def typed(field, value):
    """The value of an option."""
    if value is None and fields.is_optional(field):
        return None
    kind, item_kind = fields.kind(field)
    if kind is tuple:
        items = value.split(",") if isinstance(value, str) else value
        return tuple(_typed(item_kind, item) for item in items if isinstance(items, list) or _no())
    return _typed(kind, value)


def _typed(kind, value):
    number = type(value) in (int, float) and abs(value) < 2**63
    if kind is float and isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise NoReadingError from None
        number = True
    if kind is float and number and math.isfinite(value):
        return float(value)
    if kind is int and number and type(value) is int:
        return value
    if kind in (bool, str) and type(value) is kind:
        return value
    raise NoReadingError


def _no():
    raise NoReadingError


def fault(met, content, path):
    """What is wrong with how a file was met: str, "" for nothing."""
    if met.problem or met.value is None:
        return met.problem or ("" if str(path) in met.line else f"no file is named: {met.line!r}")
    try:
        wanted = expected(content)
    except NoReadingError:
        return f"taken for good: {met.value!r:.200}"
    return "" if met.value == wanted else f"silent: {met.value!r:.200}, not {wanted!r:.200}"


def test_damaged_option_files(tmp_path):
    path, outcomes, faults, memory = tmp_path / "options.yaml", collections.Counter(), [], 0
    for number in range(-(-COUNT // 2)):
        content = damaged(random.Random(f"{SEED} options {number}"))
        path.write_bytes(content)
        met = bounds.meet(
            lambda: config_files.load(str(path), SECTIONS), seconds=SECONDS, memory=MEMORY
        )
        outcomes[("refused", "taken")[met.value is not None]] += 1
        memory = max(memory, met.memory)
        if found := fault(met, content, path):
            faults.append(f"case {number}: {content[:120]!r}: {found}")
    print(f"options: {dict(outcomes)}, {memory >> 20} MB")
    assert not faults, "\n".join(faults)


def test_what_is_whole_is_read(tmp_path):
    path = tmp_path / "options.yaml"
    path.write_text(GOOD_TEXT)
    assert config_files.load(str(path), SECTIONS) == expected(GOOD_TEXT.encode())
