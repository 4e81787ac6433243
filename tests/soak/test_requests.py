"""Damaged requests: refused by a JSON error of the client's, or answered as they say.

`make soak` runs more of them (`make soak COUNT=2000`).
"""

import collections
import functools
import json
import os
import random

import pytest

from etcmodel import bounded_json
from etcmodel.serving import rest
from etcmodel.serving.rest.application import Application
from tests.serving.rest import text_models, twin
from tests.soak import attacks, bounds, malformed, wrong
from tests.soak.folder_damage import strict_json

COUNT = int(os.environ.get("SOAK_COUNT", "40"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
SECONDS, MEMORY = 5.0, 128 << 20
MAX_ROWS = 8
ROWS = [
    {"question": "How long?", "documents": ["It is 88 km long. It is 7 old.", "No."]},
    {"question": "How old?", "documents": ["Old.", "It is 9."]},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
GOOD = (
    {"instances": ROWS},
    {"inputs": COLUMNS},
    {"signature_name": "serving_default", "instances": ROWS[:1]},
    {"inputs": {"question": [{"b64": "SG93Pw=="}], "documents": [["88 km"]]}},
)
SHAPES = {"question": [None], "documents": [None, None]}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    directory = tmp_path_factory.mktemp("requests") / "1"
    model = rest.ServedModel(text_models.export(str(directory), "answer"))

    def predict(signature, inputs, num_rows):
        del num_rows
        return model(signature.name, inputs)

    return Application(model, predict, max_rows=MAX_ROWS)


def damaged(rng):
    """The body of a request: bytes."""
    good = rng.choice(GOOD)
    text = json.dumps(good).encode()
    kind = rng.randrange(6)
    if kind < 3:
        return json.dumps(malformed.mutated(rng, good)).encode()
    if kind == 3:
        return rng.choice(
            (wrong.cut_text, wrong.no_utf8, wrong.utf16, wrong.other_json, wrong.too_deep)
        )(rng, text)
    if kind == 4:
        name = rng.choice(sorted(good))
        other = json.dumps(rng.choice((good[name], [], malformed.mutated(rng, good).get(name))))
        return text[:-1] + f", {json.dumps(name)}: {other}}}".encode()
    return malformed.damaged(rng, text)


def expected(body):
    """The answers, one for each example: list of (answer, document, start, end); None for none."""
    request = strict_json(body)
    if not isinstance(request, dict) or ("instances" in request) == ("inputs" in request):
        return None
    if request.get("signature_name", "serving_default") not in ("", "serving_default", "answer"):
        return None
    columns = request.get("inputs")
    if "instances" in request:
        rows = request["instances"]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return None
        if not all(row.keys() == SHAPES.keys() for row in rows):
            return None
        columns = {name: [row[name] for row in rows] for name in SHAPES}
    if not isinstance(columns, dict) or columns.keys() != SHAPES.keys():
        return None
    columns = _packed(columns)
    found = {name: twin.decode(columns[name], "string", shape) for name, shape in SHAPES.items()}
    sizes = {len(x) for x in found.values() if x is not None}
    if None in found.values() or len(sizes) != 1 or not 0 < min(sizes) <= MAX_ROWS:
        return None
    texts = [[x.decode("utf-8", "replace") for x in row] for row in found["documents"]]
    return [text_models.answer_of(row) for row in texts]


def _packed(value):
    """The value with base64 as the twin wants it: no white space, and padded."""
    if isinstance(value, list):
        return [_packed(item) for item in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["b64"] and isinstance(value["b64"], str):
        digits = "".join(value["b64"].split()).rstrip("=")
        return {"b64": digits + "=" * (-len(digits) % 4)}
    return {name: _packed(item) for name, item in value.items()}


def fault(met, body):
    """What is wrong with the answer to a request: str, "" for nothing."""
    if met.problem or met.value is None:
        return met.problem or f"raised: {met.line}"
    status, answer = met.value.status, bounded_json.loads(met.value.body)
    if 400 <= status < 500:
        line = answer.get("error", "")
        is_told = set(answer) == {"error"} and line and "\n" not in line
        return "" if is_told and len(line) <= bounds.LONGEST_LINE else f"message: {line[:300]!r}"
    wanted = expected(body)
    if status != 200 or wanted is None:
        return f"{status}: {met.value.body[:200]!r}"
    outputs = answer.get("outputs") or {
        name: [row[name] for row in answer["predictions"]] for name in answer["predictions"][0]
    }
    names = ("answer", "document", "start", "end")
    found = list(zip(*(outputs[name] for name in names), strict=True))
    return "" if found == wanted else f"silent: {found}, not {wanted}"


def test_damaged_requests(application):
    outcomes, faults, memory = collections.Counter(), [], 0
    for number in range(-(-COUNT // 2)):
        body = damaged(random.Random(f"{SEED} requests {number}"))
        ask = functools.partial(application, "POST", attacks.PREDICT, body)
        met = bounds.meet(ask, seconds=SECONDS, memory=MEMORY)
        outcomes[met.value.status if met.value else "raised"] += 1
        memory = max(memory, met.memory)
        if found := fault(met, body):
            faults.append(f"case {number}: {body[:160]!r}: {found}")
    print(f"requests: {dict(outcomes)}, {memory >> 20} MB")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("request_", GOOD)
def test_what_is_whole_is_answered(application, request_):
    body = json.dumps(request_).encode()
    assert expected(body) is not None
    assert not fault(bounds.meet(lambda: application("POST", attacks.PREDICT, body)), body)
