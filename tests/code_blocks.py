"""The blocks of code of README.md and docs: who runs each, or by which mark it is not run."""

import dataclasses
import re

from tests import page

ROOT = page.DOCS.parent
MARK = re.compile(r"<!-- Not run: ([^\n]+)\. -->\n\Z")
_FENCE = re.compile(r"^(`{3,})(\w*)[^\n]*\n(.*?)^\1$", re.M | re.S)
COMMANDS = ("", "sh", "bash")


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page: str. The path from the repository's root.
        sections: list of str. The anchors of the sections that hold it.
        line: int. Of its text, from 1.
        kind: str. The language that it names.
        text: str.
        mark: str. Why it is not run, "" without a mark.
    """

    page: str
    sections: list[str]
    line: int
    kind: str
    text: str
    mark: str


@dataclasses.dataclass(frozen=True)
class Runner:
    """Blocks of one page that a test runs, or compares with what is printed.

    Attributes:
        test: str. The path of the test's module.
        page: str. A part of the page's path; after a "#" the anchor of a section.
        kinds: tuple of str. Languages.
        having: str. A regular expression that the block's text matches.
    """

    test: str
    page: str
    kinds: tuple = ("python", "text")
    having: str = ""

    def runs(self, block):
        path, _, section = self.page.partition("#")
        return (
            path in block.page
            and (not section or section in block.sections)
            and block.kind in self.kinds
            and bool(re.search(self.having, block.text))
        )


# Of the tasks whose pages share one form.
TASK_PAGES = {
    "majority_tagging": "docs/gmat.md#majority-tagging",
    "numerical_reasoning": "docs/gmat.md#numerical-reasoning",
    "summarization": "docs/summarization.md#the-program",
}
RUNNERS = [
    Runner("tests/test_wheel.py", "README.md"),
    Runner("tests/test_wheel.py", "docs/site/index.md"),
    Runner(
        "tests/models/test_first_model_page.py",
        "docs/first_model.md",
        having=r"(?s)\A(?!.*opinions\.csv)",
    ),
    Runner("tests/test_wheel.py", "docs/first_model.md", ("python", *COMMANDS), "opinions.csv"),
    *(
        Runner("tests/models/test_systems_pages.py", f"docs/{place}", ("python", "text", *COMMANDS))
        for place in ("systems.md", "gmat.md#gmat", "summarization.md#longt5")
    ),
    *(
        Runner("tests/models/test_systems_pages.py", f"docs/{place}", kinds)
        for place, kinds in (
            ("longformer.md", ("python", "text")),
            ("summarization.md#led", ("python",)),
            ("summarization.md#pegasus-x", ("python", *COMMANDS)),
        )
    ),
    Runner("tests/test_notebooks.py", "docs/notebooks/", ("python",)),
    *(Runner("tests/test_page_blocks.py", place, ("",), r"\A\{") for place in TASK_PAGES.values()),
    Runner("tests/test_page_blocks.py", "docs/inspection.md", COMMANDS),
    Runner("tests/test_page_blocks.py", "docs/programs.md#options", ("yaml", *COMMANDS)),
    Runner("tests/tools/test_recipe.py", "docs/programs.md#recipes", ("yaml",)),
    Runner(
        "tests/test_page_blocks.py",
        "docs/programs.md#the-command-line",
        COMMANDS,
        "completion bash",
    ),
    Runner("tests/test_page_blocks.py", "docs/pretraining.md", ("python",)),
    Runner(
        "tests/pretrain/char_lm/test_program.py",
        "docs/longformer.md#training-a-character-model",
        ("json",),
    ),
    Runner(
        "tests/pretrain/char_lm/test_program.py",
        "docs/longformer.md#training-a-character-model",
        COMMANDS,
        "small.json",
    ),
    Runner("tests/models/test_coming_from_page.py", "docs/checkpoints.md"),
    Runner("tests/tools/test_embed.py", "docs/checkpoints.md#vectors-of-texts", COMMANDS),
    Runner("tests/tasks/test_model_folders.py", "docs/checkpoints.md", COMMANDS, "my_bert"),
    Runner("tests/tasks/test_released_runs.py", "docs/checkpoints.md", COMMANDS, "their_run"),
    Runner("tests/test_pages.py", "docs/keras3.md"),
    Runner("tests/cli/test_page.py", "docs/programs.md#the-command-line", ("text",)),
    Runner(
        "tests/cli/test_whole_way.py",
        "docs/programs.md#the-command-line",
        COMMANDS,
        "etcmodel demo data",
    ),
    Runner("tests/tools/test_concepts.py", "docs/concepts.md", COMMANDS),
    *(
        Runner("tests/tools/test_fit.py", f"docs/{name}.md", COMMANDS, "etcmodel fit")
        # SQuAD's command is on TriviaQA's page, those of tags and coreference on classification's.
        for name in ("classification", "hotpotqa", "summarization", "triviaqa", "wikihop")
    ),
    *(
        Runner("tests/tasks/test_every_page.py", "docs/classification.md", kinds, having)
        for task in ("classification", "token_classification", "coreference")
        for kinds, having in (
            (COMMANDS, rf"dataset={task}\b"),
            (("python",), rf"tasks\.{task}\b"),
        )
    ),
    *(
        Runner("tests/tasks/program_rows.py", f"docs/{name}.md", having=having)
        for name, having in (
            ("hotpotqa", "HotpotQaPredictor|prefer_labels"),
            ("openkp", ""),
            ("wikihop", "WikiHopPredictor"),
        )
    ),
    Runner("tests/tasks/hotpotqa/test_marks.py", "docs/hotpotqa.md#two-stages-longformer", ("sh",)),
    Runner("tests/ops/test_patterns.py", "docs/extending.md", ("python",)),
    Runner("tests/test_extending_dataset.py", "docs/extending.md", ("markdown",)),
    Runner("tests/inspection/test_documentation.py", "docs/inspection.md"),
    Runner("tests/tools/test_estimate.py", "docs/performance.md", ("text", *COMMANDS)),
    Runner("tests/pretrain/text_runs.py", "docs/pretraining.md", ("sh",), "windows=text"),
    Runner("tests/test_pages.py", "docs/processor.md"),
    Runner("tests/test_pages.py", "docs/serving.md#strings-in-answers-out"),
    Runner("tests/tools/test_sweep_page.py", "docs/training.md#sweeps", ("text", *COMMANDS)),
    Runner("tests/training/test_callbacks.py", "docs/training.md#callbacks"),
    Runner(
        "tests/serving/rest/test_raw_examples.py",
        "docs/serving.md#raw-examples-of-a-task",
        ("sh", "json"),
    ),
    Runner("tests/serving/test_stablehlo.py", "docs/serving.md#stablehlo"),
    Runner("tests/serving/rest/test_embeddings.py", "docs/serving.md#vectors-of-texts", ("sh",)),
    Runner("tests/tools/test_serve.py", "docs/serving.md#over-http", ("sh", "json", "text")),
    *(
        Runner("tests/tasks/test_every_page.py", place, kinds, having)
        for task, place in {**TASK_PAGES, "triviaqa": "docs/triviaqa.md"}.items()
        for kinds, having in ((COMMANDS, "dataset=" + task), (("python",), r"(?s)\A(?!.*squad)"))
    ),
    *(
        Runner("tests/tasks/test_every_page.py", "docs/triviaqa.md#squad", kinds, having)
        for kinds, having in ((COMMANDS, "dataset=squad"), (("python",), ""))
    ),
]


def all_blocks():
    """The `Block`s of README.md and of the pages in docs, in order."""
    found = []
    for path in [ROOT / "README.md", *sorted(page.DOCS.rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            before = text[: match.start()]
            mark = MARK.search(before)
            name = path.relative_to(ROOT).as_posix()
            line = before.count("\n") + 1
            sections = page.anchors(text, match.start())
            found.append(Block(name, sections, line, match[2], match[3], mark[1] if mark else ""))
    return found
