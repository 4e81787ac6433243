"""What works where the core is installed alone, and what names the extra that it needs."""

import importlib.metadata
import pathlib
import subprocess
import sys

import pytest
from packaging import requirements

from etcmodel import extras
from tests import without_extras

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[1]

OWN_TEXT = """
import sys
import etcmodel
from tests import without_extras

for name in etcmodel.__all__:
    getattr(etcmodel, name)
open("vocab.txt", "w").write("\\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "."]))
processor = etcmodel.EtcProcessor("vocab.txt", max_long_len=16, max_global_len=4)
config = etcmodel.EtcConfig(
    vocab_size=7, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
)
model = etcmodel.EtcForSequenceClassification(config, num_labels=2)
model.compile()
reviews = [{"text": "good.", "extra": {"label": 1}}, {"text": "bad.", "extra": {"label": 0}}]
model.fit(processor.dataset(reviews, batch_size=2, targets="label"), verbose=0)
model.save_pretrained("reviews", processor)
loaded = etcmodel.from_pretrained("reviews")
found, wanted = (x(processor(["good. bad."])).numpy() for x in (loaded, model))
assert (found == wanted).all()
print(*sorted(set(without_extras.EXTRAS) & set(sys.modules)))
"""

# What needs an extra, by the package that is missed first.
NEEDY = {
    "official": "import etcmodel.training.evaluator",
    "optuna": "import etcmodel.tools.sweeps.study",
    "rouge_score": (
        "from etcmodel.tasks.summarization import metrics\nmetrics.rouge([('a', 'b')])"
    ),
    "tqdm": "import etcmodel.progress_bar",
    "sentencepiece": (
        "from etcmodel.text import vocabulary\nvocabulary.load_sentencepiece_model('spm.model')"
    ),
    "tokenizers": (
        "from etcmodel.text.byte_bpe import ByteLevelTokenizer\n"
        "open('tokenizer.json', 'w').write('{}')\n"
        "ByteLevelTokenizer('tokenizer.json')"
    ),
    "lxml": "import etcmodel.text.readers.html_pages",
    "matplotlib": (
        "import numpy as np\n"
        "from etcmodel import attention_picture\n"
        "attention_picture.draw({'l2g': np.zeros([2, 1], int)}, None)"
    ),
    "tensorflow_text": "import etcmodel.serving.text.tokenizers",
}


def run(folder, *arguments):
    """A program without what extras bring: (exit status, output, errors)."""
    command = [sys.executable, "-m", "tests.without_extras", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    return done.returncode, done.stdout, done.stderr


def test_the_core_trains_saves_and_loads_a_model_of_own_text(tmp_path):
    (tmp_path / "own_text.py").write_text(OWN_TEXT)
    status, output, errors = run(tmp_path, "own_text.py")
    assert (status, output) == (0, "\n"), errors


def test_prediction_and_reports_need_no_extra_to_begin_with(tmp_path):
    tasks = sorted(path.parent.name for path in (ROOT / "tasks").glob("*/predict.py"))
    assert len(tasks) >= 9
    lines = [f"import etcmodel.tasks.{x}.predict, etcmodel.tasks.{x}.report" for x in tasks]
    (tmp_path / "predictors.py").write_text("\n".join(lines))
    assert run(tmp_path, "predictors.py")[0] == 0, run(tmp_path, "predictors.py")[2][-2000:]


@pytest.mark.parametrize("package", NEEDY)
def test_what_needs_a_package_names_its_extra(tmp_path, package):
    (tmp_path / "needy.py").write_text(NEEDY[package])
    status, _, errors = run(tmp_path, "needy.py")
    extra = without_extras.EXTRAS[package]
    assert status == 1
    last = errors.strip().splitlines()[-1]
    assert last.startswith(f"etcmodel.extras.MissingExtraError: The package '{package}")
    assert last.endswith(f"pip install 'etcmodel[{extra}]'")


@pytest.mark.parametrize(
    ("program", "flags", "extra"),
    [
        ("tools.draw_attention", ["--example=paragraphs", "--output=picture.png"], "plots"),
        (
            "tasks.wikihop.preprocess",
            ["--input_pattern=a", "--output_dir=b", "--vocab_file=c", "--runner=DirectRunner"],
            "beam",
        ),
    ],
)
def test_programs_tell_it_in_one_line(tmp_path, program, flags, extra):
    status, output, errors = run(tmp_path, f"etcmodel.{program}", *flags)
    assert (status, output) == (1, "")
    (line,) = errors.strip().splitlines()
    assert line.startswith("error: The package ")
    assert line.endswith(f"pip install 'etcmodel[{extra}]'")


@pytest.mark.parametrize(
    ("content", "what", "package"),
    [
        (b"PAR1\x15\0 and more", "This is a file of Parquet.", "pyarrow"),
        (b"ARROW1\0\0", "This is a file of Arrow.", "pyarrow"),
        (b"\x28\xb5\x2f\xfd and more", "This file is packed by zstd.", "zstandard"),
    ],
)
def test_a_raw_file_that_needs_a_package_says_what_it_is(tmp_path, content, what, package):
    (tmp_path / "a.data").write_bytes(content)
    (tmp_path / "needy.py").write_text(
        "from etcmodel import opener\nlist(opener.read_rows('a.data'))"
    )
    status, _, errors = run(tmp_path, "needy.py")
    extra = without_extras.EXTRAS[package]
    assert status == 1
    assert errors.strip().splitlines()[-1] == (
        f"etcmodel.extras.MissingExtraError: a.data: {what} The package {package!r} is needed here "
        f"and not installed. It comes with the extra {extra!r}: pip install 'etcmodel[{extra}]'"
    )


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError), extras.needed("text"):
        print(1 // 0)


def own_requirements():
    return [requirements.Requirement(x) for x in importlib.metadata.requires("etcmodel")]


def test_all_extras_that_are_named_exist():
    known = set(importlib.metadata.metadata("etcmodel").get_all("Provides-Extra"))
    assert set(without_extras.EXTRAS.values()) <= known


def test_the_developers_pins_are_within_the_ranges():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = [requirements.Requirement(line) for line in lines if line and line[0] != "#"]
    ranges = {x.name: x.specifier for x in own_requirements()}
    for pin in pins:
        (version,) = (x.version for x in pin.specifier)
        assert version in ranges[pin.name], pin.name
