"""The benchmark of the HTTP server runs whole, with few requests."""

import json
import re
import subprocess

import pytest

from tests.serving.rest import text_models
from tests.warm import python as warm

pytestmark = pytest.mark.slow


def test_it_counts_requests_rates_and_memory(tmp_path):
    export = text_models.export(str(tmp_path / "export"), "classify")
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"instances": ["Route 66"]}), encoding="utf-8")
    command = [warm.python(), "-m", "etcmodel.tools.benchmarks.serving", "--calls=2"]
    arguments = [f"--model_dir={export}", f"--request={request}", "--requests=16", "--clients=2"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    requests, rates, calls, ratio, memory = done.stdout.splitlines()
    assert requests == "requests: 16, lost: 0"
    numbers = [len(re.findall(r"[\d.]+", line.split(":")[1])) for line in (rates, calls, memory)]
    assert numbers == [4, 5, 5]
    assert re.fullmatch(r"ratio: ([\d.]+, ){3}[\d.]+; median [\d.]+", ratio)
