"""Every public docstring has a short example, which shows what it prints.

Examples run eagerly, those of a docstring together in a folder of their own, which holds what
everybody has: vocabularies (`vocab.txt`, `vocab.json` with `merges.txt`, `spiece.model`), a file of
labelled texts, `reviews.csv`, and `my_model`, a classifier of such with its processor.
"""

import doctest
import importlib
import inspect
import json
import os
import pathlib
import shutil
import string

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from absl import logging

import etcmodel
from tests import test_public_signatures

ROOT = pathlib.Path(__file__).parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUM_LINES = 5  # At most, of an example, without what it prints.
NUM_SKIPPED = 0  # Examples that cannot run here.
# What people call of models, heads, processors and configs.
METHODS = """
    as_labels batch_of batches compile compress dataset decode decompress embed evaluate fit
    from_dict from_json_file from_pretrained functional generate of_encoder predict read
    relation_labels save save_pretrained structure to_dict to_json_string tokenize
""".split()
WORDS = "good bad book the was it is who wrote emma austen jane by river"
REVIEWS = "text,label\nA good book.,pos\nA bad book.,neg\nGood!,pos\nBad!,neg\n"


def sources():
    """Names of modules, and their source."""
    for path in sorted((ROOT / "etcmodel").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path.read_text(encoding="utf-8")


def write_files(folder):
    """Writes what examples find where they run."""
    signs = [*string.digits, *string.ascii_lowercase, *"@\\.,?!'"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{x}" for x in signs)]
    (folder / "vocab.txt").write_text("\n".join([*pieces, *WORDS.split()]), encoding="utf-8")
    letters = importlib.import_module("etcmodel.text.byte_letters").BYTES
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters]
    vocab = {token: number for number, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    (folder / "reviews.csv").write_text(REVIEWS, encoding="utf-8")
    shutil.copy(ROOT / "tests" / "fixtures" / "sentence_pieces" / "spiece.model", folder)
    write_model(folder)


def write_model(folder):
    """A classifier that knows two words, of opposite embeddings; its other weights are 0."""
    config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1, intermediate_size=24)
    model = etcmodel.EtcForSequenceClassification(config, labels=["neg", "pos"])
    model.processor = etcmodel.EtcProcessor(str(folder / "vocab.txt"))
    signs = np.array([1, -1] * 6)
    for variable in model.encoder.weights:
        if "gamma" not in variable.name:
            variable.assign(tf.zeros_like(variable))
    words = [model.processor.vocabulary.index(word) for word in ("good", "bad")]
    table = model.encoder.get_token_embedding_table()
    table.assign(tf.tensor_scatter_nd_update(table, [[x] for x in words], [signs, -signs]))
    model.logits.kernel.assign([-signs, signs])
    model.save_pretrained(folder / "my_model")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """A new folder where examples run, eagerly and without warnings."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    level = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    tf.config.run_functions_eagerly(True)
    yield tmp_path
    tf.config.run_functions_eagerly(False)
    logging.set_verbosity(level)


def names_for_all():
    """What everybody has imported: dict of name to module."""
    names = {"etcmodel": "etcmodel", "np": "numpy", "tf": "tensorflow"}
    return {name: importlib.import_module(module) for name, module in names.items()}


def examples_of(text):
    return doctest.DocTestParser().get_examples(text or "")


def own_docstrings(module):
    """`doctest.DocTest`s of what a module defines, by qualified name."""
    found = doctest.DocTestFinder().find(module, extraglobs=names_for_all())
    return [test for test in found if test.examples]


def public_objects():
    """Functions and classes of packages' `__all__`s and of the table of public signatures.

    Returns:
        dict of "module.qualified name", where it is defined, to the object.
    """
    named = [
        (name, attribute)
        for name, _ in sources()
        for attribute in getattr(importlib.import_module(name), "__all__", ())
        if is_package(name)
    ]
    named += [
        (module, line.split("(")[0].partition(" = ")[0])
        for module, line in test_public_signatures.table_lines()
    ]
    found = {}
    for module, name in named:
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
        if inspect.isclass(value) or inspect.isroutine(value):
            found[f"{value.__module__}.{value.__qualname__}"] = value
    return {name: x for name, x in found.items() if x.__name__ != "call"}


def is_package(name):
    return (ROOT / name.replace(".", "/")).is_dir()


def has_example(owner, name):
    """Whether a method has an example in one of the classes that define it."""
    defined = [vars(x)[name] for x in owner.__mro__ if name in vars(x)]
    return any(examples_of(inspect.getdoc(x)) for x in defined)


def test_every_public_name_has_an_example():
    lacking = [name for name, x in public_objects().items() if not examples_of(x.__doc__)]
    assert not lacking, "\n".join(["without an example:", *sorted(lacking)])


def test_methods_that_people_call_have_an_example():
    classes = [x for name in etcmodel.__all__ if inspect.isclass(x := getattr(etcmodel, name))]
    lacking = {
        f"{x.__name__}.{name}"
        for x in classes
        for name in METHODS
        if getattr(getattr(x, name, None), "__module__", "").startswith("etcmodel")
        and not has_example(x, name)
    }
    assert not lacking, "\n".join(["without an example:", *sorted(lacking)])


def test_examples_are_short_show_something_and_are_run():
    skipped = []
    for name, text in sources():
        if ">>> " not in text:
            continue
        for test in own_docstrings(importlib.import_module(name)):
            num_lines = sum(x.source.count("\n") for x in test.examples)
            assert num_lines <= NUM_LINES, f"{test.name} has {num_lines} lines"
            assert test.examples[-1].want, f"{test.name} ends without showing anything"
            skipped += [test.name for x in test.examples if doctest.SKIP in x.options]
    assert len(skipped) == NUM_SKIPPED, skipped


@pytest.mark.parametrize("name", [name for name, text in sources() if ">>> " in text])
def test_examples_print_what_they_show(name, files, folder_of):
    for test in own_docstrings(importlib.import_module(name)):
        with folder_of(test.name):
            tf_keras.utils.set_random_seed(0)
            doctest.DebugRunner(optionflags=FLAGS).run(test)
