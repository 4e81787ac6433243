"""What the package says of itself: its versions of Python hold for each pinned requirement."""

import ast
import importlib.metadata
import itertools
import pathlib
import re
import subprocess
import sys

import pytest
import yaml
from packaging import requirements, specifiers

import etcmodel
from tests import versions

ROOT = pathlib.Path(__file__).parents[1]
PYTHONS = [f"3.{minor}" for minor in range(8, 20)]
OF_PINS = specifiers.SpecifierSet(">=3.11,<3.13")  # Of some packages of the tests alone.


def promised():
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    return specifiers.SpecifierSet(re.search(r'python_requires="([^"]+)"', text)[1])


def developed():
    """The versions of Python with which the package is developed: those of all pins."""
    return [version for version in PYTHONS if version in promised() and version in OF_PINS]


def pins():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [requirements.Requirement(line) for line in lines if line and line[0] != "#"]


@pytest.mark.parametrize("pin", pins(), ids=lambda pin: pin.name)
def test_every_pin_supports_all_versions_of_python_that_are_promised_from_some_on(pin):
    distribution = importlib.metadata.distribution(pin.name)
    assert pin.specifier.contains(distribution.version)
    supported = specifiers.SpecifierSet(distribution.metadata.get("Requires-Python") or "")
    assert not [version for version in developed() if version not in supported]


def test_the_python_of_the_tests_is_promised_and_the_linter_knows_the_oldest():
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in promised()
    linted = re.search(r'target-version = "py(\d)(\d+)"', (ROOT / "pyproject.toml").read_text())
    oldest = next(version for version in PYTHONS if version in promised())
    assert f"{linted[1]}.{linted[2]}" == oldest


def test_the_classifiers_name_the_promised_versions():
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    assert named == [version for version in PYTHONS if version in promised()]


def test_the_developers_extra_has_the_ranges_of_their_pins():
    asked = map(requirements.Requirement, importlib.metadata.requires("etcmodel"))
    found = {x.name: x.specifier for x in asked if x.marker and x.marker.evaluate({"extra": "dev"})}
    assert found.pop("etcmodel") == ""
    text = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    pinned = dict(line.split("==") for line in text.splitlines() if "==" in line)
    assert found.keys() == pinned.keys()
    assert all(found[name].contains(version) for name, version in pinned.items())


def test_hosted_ci_does_what_our_own_does_on_all_promised_versions():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    job, ends = workflow["jobs"]["tests"], workflow["jobs"]["versions"]
    matrix = job["strategy"]["matrix"]
    assert matrix["python"] == developed()
    tried = re.search(r"^VERSIONS \?= (.+)$", (ROOT / "Makefile").read_text(), re.M)[1]
    assert ends["strategy"]["matrix"]["versions"] == tried.split()
    oldest, newest, _ = ends["steps"][1]["with"]["python-version"].split()
    ends = [version for version in PYTHONS if version in promised()]
    assert (oldest, newest) == (ends[0], ends[-1])
    ours = re.findall(r"^make (\S+)$", (ROOT / ".ci" / "run").read_text(), re.M)
    assert matrix["target"] == ours
    assert job["steps"][-1]["run"] == "make ${{ matrix.target }}"


def test_the_version_is_the_same_everywhere():
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert re.search(r'version="([^"]+)"', text)[1] == etcmodel.__version__
    assert citation["version"] == etcmodel.__version__
    assert f"## {etcmodel.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for page in ("README.md", "docs/first_model.md"):
        named = re.findall(r"etcmodel-([\d.]+)-py3-none-any\.whl", (ROOT / page).read_text("utf-8"))
        assert named == [etcmodel.__version__], page


def test_environments_are_of_the_ends_of_each_range():
    asked = [
        "numpy>=2.1",
        "h5py<4,>=3.11",
        'lxml>=5.3; extra == "text"',
        'lxml>=5.3; extra == "all"',
        'tf-models-official<2.21,>=2.19.1; extra == "all"',
    ]
    lowest = ["h5py==3.11", "lxml==5.3", "numpy==2.1"]
    assert versions.lines("lowest", asked) == lowest
    assert versions.lines("newest", asked) == ["h5py<4,>=3.11", "lxml>=5.3", "numpy>=2.1"]
    with pytest.raises(ValueError, match="setup.py: dask<3 must say from which version on"):
        versions.lines("lowest", ["dask<3"])
    for line in versions.lines("lowest", importlib.metadata.requires("etcmodel")):
        assert re.fullmatch(r"[\w-]+==[\d.]+", line)


def ranges_of_setup():
    """dict of the names in setup.py, but for those of `dev` and `demo`, to their ranges."""
    statements = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")).body
    lists = {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value)
        for node in statements
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("CORE", "EXTRAS")
    }
    lines = itertools.chain(lists["CORE"], *lists["EXTRAS"].values())
    return {x.name: x.specifier for x in map(requirements.Requirement, lines)}


@pytest.mark.parametrize("which", ["lowest", "newest"])
def test_environments_hold_every_range_of_setup_py_and_the_tests_own_tools(which):
    command = [sys.executable, "-m", "tests.versions", which]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = {x.name: x.specifier for x in map(requirements.Requirement, done.stdout.splitlines())}
    ranges = ranges_of_setup()
    assert found.keys() - ranges.keys() == set(versions.TOOLS)
    ranges = {name: x for name, x in ranges.items() if name not in versions.LEFT_OUT}
    for name, specifier in ranges.items():
        if which == "newest":
            assert found[name] == specifier, name
        else:
            (pin,) = found[name]
            assert pin.operator == "==" and pin.version in specifier, name
            assert any(part.version == pin.version for part in specifier), name


def test_make_installs_these_in_the_environments_and_runs_the_tests_there():
    command = ["make", "--dry-run", "--always-make", "test-versions", "TESTS=tests/ops"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for which in ("lowest", "newest"):
        folder = f".venv/{which}"
        assert f"-m tests.versions {which} > {folder}/requirements.txt\n" in done.stdout
        assert re.search(
            rf"^{folder}/bin/python .* -r {folder}/requirements.txt$", done.stdout, re.M
        )
        assert f"{folder}/bin/python -m pip install --quiet" in done.stdout
    runs = re.findall(r"(\S+)/bin/python -m pytest .* tests/ops$", done.stdout, re.M)
    assert runs == [".venv/lowest", ".venv", ".venv/newest"]
    whole = r'^.venv/wheel/bin/python .* "\$\(ls dist/etcmodel-\*.whl\)\[text,serve\]"$'
    assert re.search(whole, done.stdout, re.M)
    assert "ETCMODEL_WHEEL=.venv/wheel .venv/bin/python -m pytest" in done.stdout
