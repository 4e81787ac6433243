"""Every public docstring has a short example, which shows what it prints.

Examples run eagerly, those of a docstring together in a folder of their own, which holds what
everybody has: vocabularies (`vocab.txt`, `vocab.json` with `merges.txt`, `spiece.model`), a file of
labelled texts, `reviews.csv`, and `my_model`, a classifier of such with its processor.
"""

import ast
import doctest
import importlib
import inspect
import json
import pathlib
import re
import shutil
import string

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from absl import logging

import etcmodel
from etcmodel import finetuning, serving, training
from etcmodel.models.heads import base
from etcmodel.preprocessing import program
from etcmodel.tasks.classification import preprocess
from etcmodel.tasks.classification.task import ClassificationConfig, ClassificationTask
from etcmodel.text import byte_letters
from tests import code_blocks, test_public_signatures
from tests.checkpoints import berts
from tests.reference import cases

ROOT = pathlib.Path(__file__).parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUM_LINES = 6  # At most, of an example, without what it prints.
NUM_SKIPPED = 0  # Examples that cannot run here.
# What people call of models, heads, processors and configs.
METHODS = """
    as_labels batch_of batches compile compress dataset decode decompress embed evaluate explain fit
    from_dict from_json_file from_pretrained functional generate of_encoder predict read
    relation_labels save save_pretrained structure to_dict to_json_string tokenize
"""
LIBRARY = r"etcmodel\b(?!\.(tasks|tools|pretrain))"
WORDS = "good bad book the was it is who wrote emma austen jane by river"
REVIEWS = "text,label\nA good book.,pos\nA bad book.,neg\nGood!,pos\nBad!,neg\n"


def write_files(folder):
    """Writes what examples find where they run."""
    signs = [*string.digits, *string.ascii_lowercase, *"@\\.,?!'"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{x}" for x in signs)]
    (folder / "vocab.txt").write_text("\n".join([*pieces, *WORDS.split()]), encoding="utf-8")
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *byte_letters.BYTES]
    vocab = {token: number for number, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    (folder / "reviews.csv").write_text(REVIEWS, encoding="utf-8")
    shutil.copy(ROOT / "tests" / "fixtures" / "sentence_pieces" / "spiece.model", folder)
    berts.write_folder(folder / "my_bert", [*pieces, *WORDS.split()])
    for name in ("bart", "roberta"):
        shutil.copytree(cases.topic_folder("longformer") / "lift" / name, folder / f"my_{name}")
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


def write_records(folder):
    """Records of the reviews, as `etcmodel preprocess classification` makes them."""
    options = preprocess.PreprocessOptions(
        input_pattern=str(folder / "reviews.csv"),
        output_prefix=str(folder / "my_records" / "train"),
        vocab_file=str(folder / "vocab.txt"),
        long_seq_length=16,
        global_seq_length=4,
        num_shards=1,
        direct_num_workers=1,
    )
    list(program.run(options, preprocess.load_parts))


def write_run(folder):
    """A run of one step."""
    data = {"token_ids": [[2, 7], [2, 8]]}, [0, 1]
    task = training.HeadTask(lambda: etcmodel.from_pretrained(folder / "my_model"), data, data)
    config = training.TrainingConfig(
        output_dir=str(folder / "my_run"), num_train_epochs=1, train_batch_size=2
    )
    training.train(task, config)


def write_export(folder):
    model = etcmodel.from_pretrained(folder / "my_model")
    features = {"token_ids": tf.io.FixedLenFeature([8], tf.int64)}
    serving.export_saved_model(model, str(folder / "my_export"), features=features, assets={})


def write_generator(folder):
    config = etcmodel.LongT5Config(d_model=8, num_layers=1, decoder_start_token_id=0)
    model = etcmodel.LongT5Model(config)
    model.build(None)
    serving.export_generation(model, str(folder / "my_generator"))


def write_classifier(folder):
    """What `--run_mode=export` of the program for classification makes."""
    config = ClassificationConfig(
        encoder_config=etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1),
        labels=("neg", "pos"),
        vocab_file=str(folder / "vocab.txt"),
        long_seq_length=16,
        global_seq_length=4,
    )
    task = ClassificationTask(config)
    finetuning.export(task.build_model(), task, str(folder / "my_classifier"))


# Further ones, which take seconds to make, by the names by which examples call them.
MADE = {
    "my_records": write_records,
    "my_run": write_run,
    "my_export": write_export,
    "my_classifier": write_classifier,
    "my_generator": write_generator,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture
def in_folder(files, tmp_path, monkeypatch):
    """A function that runs examples in a new folder with the files, eagerly and in silence."""
    level = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    # An example that registers a head must not leave it to other tests.
    monkeypatch.setattr(base, "_HEADS", base.head_classes())

    def run(test, out):
        folder = tmp_path / test.name
        shutil.copytree(files, folder, ignore=lambda *_: MADE)
        for name, write in MADE.items():
            if f'"{name}' in test.docstring:
                if not (files / name).exists():
                    write(files)
                shutil.copytree(files / name, folder / name)
        monkeypatch.chdir(folder)
        tf_keras.utils.set_random_seed(0)
        tf.config.run_functions_eagerly(True)
        try:
            doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=out)
        finally:
            tf.config.run_functions_eagerly(False)

    yield run
    logging.set_verbosity(level)


def modules():
    """Path and name of each module of the package."""
    for path in sorted((ROOT / "etcmodel").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield path, name.removesuffix(".__init__")


def docstring_tests(path):
    """A `doctest.DocTest` for each docstring with examples.

    They are read from the source: `doctest.DocTestFinder` does not see what decorators wrap.
    """
    found, parser = [], doctest.DocTestParser()
    everybodys = {"etcmodel": etcmodel, "np": np, "tf": tf}

    def look(node, name):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
                own = f"{name}{child.name}"
                text = ast.get_docstring(child) or ""
                test = parser.get_doctest(text, everybodys, own, str(path), child.lineno)
                found.extend([test] if test.examples else [])
                look(child, f"{own}.")

    look(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


# Whose examples train, export or load what is exported.
SLOW = (
    "etcmodel.finetuning.predict",
    "etcmodel.serving",
    "etcmodel.training.loop",
    "etcmodel.training.loop",
    "etcmodel.training.run_directory",
)
WITH_EXAMPLES = [
    pytest.param(path, id=name, marks=[pytest.mark.slow] * name.startswith(SLOW))
    for path, name in modules()
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly`")
@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_examples_print_what_they_show(path, in_folder):
    said = []
    for test in docstring_tests(path):
        in_folder(test, out=said.append)
    assert not said, "".join(said)


def test_examples_are_short_show_something_and_are_run():
    skipped = []
    for parameters in WITH_EXAMPLES:
        for test in docstring_tests(*parameters.values):
            number = sum(x.source.count("\n") for x in test.examples)
            assert number <= NUM_LINES, f"{test.filename}: {test.name} has {number} lines"
            assert test.examples[-1].want, f"{test.filename}: {test.name} shows nothing at its end"
            skipped += [test.name for x in test.examples if doctest.SKIP in x.options]
    assert len(skipped) == NUM_SKIPPED, skipped


def imported(module, name):
    """What `from module import name` gives: an attribute, or a module of a package."""
    found = importlib.import_module(module)
    return getattr(found, name, None) or importlib.import_module(f"{module}.{name}")


def names_on_pages():
    """(module, name) of what code on the pages of the documentation takes from the package.

    Tasks and tools are programs, which have pages of their own.
    """
    for block in code_blocks.all_blocks():
        code = re.sub(r"^%.*", "", block.text, flags=re.MULTILINE)  # Of notebooks.
        nodes = [*ast.walk(ast.parse(code))] if block.kind == "python" else []
        modules = {}
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and re.match(LIBRARY, node.module or ""):
                for alias in node.names:
                    value = imported(node.module, alias.name)
                    modules[alias.asname or alias.name] = value
                    yield node.module, alias.name
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                owner = modules.get(node.value.id)
                if inspect.ismodule(owner):
                    yield owner.__name__, node.attr


def public_objects():
    """Functions and classes of packages' `__all__`s, of the table of public signatures, of pages.

    Returns:
        dict of "module.qualified name", where it is defined, to the object.
    """
    packages = [name for path, name in modules() if path.name == "__init__.py"]
    packages.append("etcmodel.keras3")
    named = [(x, y) for x in packages for y in getattr(importlib.import_module(x), "__all__", ())]
    for module, line in test_public_signatures.table_lines():
        named.append((module, line.partition(" = ")[0].partition("(")[0]))
    named += names_on_pages()
    found = {}
    for module, name in named:
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
        # A method without a docstring is Keras's, or `call`, which the class documents and shows.
        if "." in name and not value.__doc__:
            continue
        if inspect.isclass(value) or inspect.isroutine(value):
            found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def has_example(value):
    return ">>> " in (value.__doc__ or "")


def test_every_public_name_has_an_example():
    lacking = [name for name, x in public_objects().items() if not has_example(x)]
    assert not lacking, "\n".join(["without an example:", *sorted(lacking)])


def test_methods_that_people_call_have_an_example_where_a_class_defines_them():
    lacking = []
    for owner in (getattr(etcmodel, name) for name in etcmodel.__all__):
        for name in METHODS.split() if inspect.isclass(owner) else ():
            defined = [vars(x)[name] for x in owner.__mro__ if name in vars(x)]
            ours = [x for x in defined if getattr(x, "__module__", "").startswith("etcmodel")]
            if ours and not any(map(has_example, ours)):
                lacking.append(f"{owner.__name__}.{name}")
    assert not lacking, "\n".join(["without an example:", *sorted(lacking)])
