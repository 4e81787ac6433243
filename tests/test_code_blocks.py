"""Every block of code in README.md and docs is run by a test, or marked as not run."""

import importlib
import inspect
import re
import shlex

import pytest
from absl import flags

from etcmodel import options
from tests import code_blocks

BLOCKS = code_blocks.all_blocks()
MARKED = [block for block in BLOCKS if block.mark]
REASONS = {
    "it installs the package",
    "it needs a cluster",
    "it needs Docker and a download",
    "it needs a TPU",
    "it needs a download",
    "it needs a download and a GPU",
    "it needs a run of one's own",
    "it takes minutes",
}
# What `tests/tasks/test_options.py` parses, in all blocks.
PARSED_THERE = re.compile(r"\.(preprocess|run_\w+)$")


def place(block):
    return f"{block.page}:{block.line}"


@pytest.mark.parametrize("block", BLOCKS, ids=place)
def test_a_block_has_one_test_that_runs_it_or_says_why_there_is_none(block):
    tests = [runner.test for runner in code_blocks.RUNNERS if runner.runs(block)]
    if block.mark:
        assert not tests and block.mark in REASONS
    else:
        assert len(tests) == 1, "add a `Runner` to tests/code_blocks.py, or a mark to the page"


@pytest.mark.parametrize("runner", code_blocks.RUNNERS, ids=str)
def test_who_runs_blocks_is_there_and_reads_the_page(runner):
    assert any(runner.runs(block) for block in BLOCKS)
    path = code_blocks.ROOT / runner.test
    text = path.read_text(encoding="utf-8")
    name = runner.page.rpartition("/")[2].partition(".md")[0]
    shared = ("DOCS", "page.code(", "TASK_PAGES")
    assert name in text or any(word in text for word in shared)


def test_a_mark_is_of_the_block_behind_it_alone():
    for page in {block.page for block in BLOCKS}:
        text = (code_blocks.ROOT / page).read_text(encoding="utf-8")
        assert text.count("<!-- Not run") == sum(block.page == page for block in MARKED), page


def programs():
    """(place, module, arguments) of the marked blocks' commands, but for those parsed elsewhere."""
    for block in MARKED:
        text = block.text.replace("\\\n", " ")
        for module, arguments in re.findall(r"^python -m (etcmodel\.\S+)(.*)$", text, re.M):
            if not PARSED_THERE.search(module):
                yield place(block), module, arguments


@pytest.mark.parametrize("where, module, arguments", [*programs()])
def test_the_flags_of_what_is_not_run_are_flags_of_the_program(where, module, arguments):
    made = importlib.import_module(module)
    (found,) = (
        value
        for value in vars(made).values()
        if inspect.isclass(value)
        and issubclass(value, options.Options)
        and value.__module__ == made.__name__
    )
    values = flags.FlagValues()
    program = options.ProgramFlags({"options": found}, values)
    program.define()
    values(["program", *shlex.split(arguments)])
    assert found(**program.values("options"))
