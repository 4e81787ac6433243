"""What the documentation site is made of: a hook of MkDocs, and an extension of griffe.

Pages keep the places that they have in the repository, so that their links are the same in both.
The reference has a page for each public name, made of its docstring.
"""

import functools
import importlib
import inspect
import json
import os
import pathlib
import re

import griffe
from mkdocs.structure import files as mkdocs_files

ROOT = pathlib.Path(__file__).parents[2]
PATTERNS = (
    "benchmarks/*.png",
    "docs/*.md",
    "docs/*.png",
    "docs/concepts/*.png",
    "docs/notebooks/*.ipynb",
)
# What the reference has, by what people look for. A name stands where it is first.
GROUPS = {
    "Models": "etcmodel models models.heads models.presets models.longformer models.bigbird "
    "models.modernbert models.led models.longt5 models.pegasus_x models.bigbird_pegasus "
    "models.gmat models.longformer_char_lm models.modeling models.conveniences",
    "Text": "text.processor text.longformer_processor text.bigbird_processor "
    "text.modernbert_processor text.seq2seq_processor text.gmat_processor "
    "text.gmat_seq2seq_processor text.targets text.answers text.explanation text.readers "
    "text.tokenization text.word_vocabulary",
    "Structure": "models.input_utils models.multihop_utils ops.structure ops.relations",
    "Layers": "layers layers.attention keras3",
    "Attention": "ops.blockwise ops.key_sets ops.reach ops.masks ops.labels ops.sliding_window",
    "Checkpoints": "checkpoints",
    "Inspection": "inspection attention_picture",
    "Generation": "generation models.seq2seq.generation_config",
    "Serving": "serving serving.rest serving.text",
    "Training": "training",
    "Data sets of your own": "preprocessing finetuning options",
}
REFERENCE = "reference"
# Pages that a search is for more often than their length lets one think.
BOOSTS = {"docs/troubleshooting.md": 4, "docs/first_model.md": 2}
# Blocks of code, also within lists, and code spans that hold a link.
CODE = re.compile(r"^ *(`{3,}).*?^ *\1 *$|`[^`\n]*\]\([^`\n]*`", re.M | re.S)
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)#\s]+)\.png\)")
PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]+)" src="([^"]+)">\s*</picture>'
)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
NAME = re.compile(r"(?<![`\w\[])`([A-Za-z_][\w.]*)`(?![`\w\]])")


def on_config(config):
    """Adds the reference to the menu, and the place of the repository where one is named."""
    config.repo_url = os.environ.get("REPOSITORY_URL") or None
    pages = [
        {group: [f"{REFERENCE}/{slug(group)}.md", *({x: page_of(x)} for x in names)]}
        for group, names in public_names().items()
    ]
    config.nav.append({"Reference": [f"{REFERENCE}/index.md", *pages]})
    return config


def on_files(files, config):
    """Adds the repository's pages and those of the reference."""
    for pattern in PATTERNS:
        for path in sorted(ROOT.glob(pattern)):
            add(files, config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        name = path.with_suffix(".md").relative_to(ROOT).as_posix()
        add(files, config, name, content=notebook_page(path))
    for name, content in reference_pages():
        add(files, config, f"{REFERENCE}/{name}.md", content=content)
    return files


def add(files, config, name, **source):
    """Adds a file of that name; see `mkdocs.structure.files.File.generated` for the source."""
    included = mkdocs_files.InclusionLevel.INCLUDED
    files.append(mkdocs_files.File.generated(config, name, inclusion=included, **source))


def on_page_markdown(markdown, page, config, files):
    """The page with pictures of both themes, and links to the reference and the repository."""
    place = page.file.src_uri
    page.meta.setdefault("search", {"boost": BOOSTS.get(place, 1)})
    if place.startswith(f"{REFERENCE}/"):
        return markdown
    linked = set()

    def change(text):
        text = PICTURE.sub(r"![\2](\3)", text)
        text = IMAGE.sub(lambda found: of_both_themes(found, place), text)
        text = LINK.sub(lambda found: within_reach(found, place, config, files), text)
        return with_links(text, linked)

    return outside_code(markdown, change)


def outside_code(text, change):
    """The text, in which a function of str changes what is no code."""
    parts, place = [], 0
    for found in CODE.finditer(text):
        parts += [change(text[place : found.start()]), found[0]]
        place = found.end()
    return "".join([*parts, change(text[place:])])


def of_both_themes(found, place):
    """A picture; if there is one for dark grounds, too, the one that the site's theme asks for."""
    words, name = found.groups()
    if not (ROOT / os.path.dirname(place) / f"{name}_dark.png").exists():
        return found[0]
    return f"![{words}]({name}.png#only-light)\n![{words}]({name}_dark.png#only-dark)"


def within_reach(found, place, config, files):
    """A link; where it leads to a file that the site lacks, to the repository, or its words."""
    words, link, anchor = found[1], found[2], found[3] or ""
    target = os.path.normpath(os.path.join(os.path.dirname(place), link))
    if "://" in link or files.get_file_from_path(target) or not (ROOT / target).exists():
        return found[0]
    url = config.repo_url
    return f"[{words}]({url.rstrip('/')}/blob/main/{target}{anchor})" if url else words


def with_links(text, linked):
    """The text, in which the first place of each public name is a link; adds these to `linked`.

    A bare word in small letters, such as `train`, may be a command's or an argument's, too.
    """

    def link(found):
        path = paths().get(found[1].removeprefix("etcmodel."))
        if path is None or path in linked or ("." not in found[1] and found[1].islower()):
            return found[0]
        linked.add(path)
        return f"[`{found[1]}`][{path}]"

    lines = text.split("\n")
    return "\n".join(line if line.startswith("#") else NAME.sub(link, line) for line in lines)


def notebook_page(path):
    """Markdown of a notebook with its outputs, which its page in the repository lacks."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        parts += [output_text(output) for output in cell.get("outputs", ())]
    title, rest = parts[0].split("\n", 1)
    line = f"This page is a notebook: [download it]({path.name})."
    return "\n\n".join([title, line, rest, *parts[1:]])


def output_text(output):
    """Markdown of what a cell shows: a page in its frame, a picture, or text."""
    data = output.get("data", {})
    if "text/html" in data:
        return "".join(data["text/html"])
    if "image/png" in data:
        return f"![Output](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text") or data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"


def names_of(group):
    """(name, value) of the classes and functions of a group, in order.

    A name is as it is imported, "layers.EmbeddingLookup"; those of the package itself are bare.
    """
    for module in GROUPS[group].split():
        prefix = "" if module == "etcmodel" else f"{module}."
        imported = importlib.import_module(f"etcmodel.{prefix}".rstrip("."))
        for name in sorted(imported.__all__):
            value = getattr(imported, name)
            if callable(value) and getattr(value, "__module__", "").startswith("etcmodel."):
                yield prefix + name, value


@functools.cache
def public_names():
    """dict of dicts, by group: `names_of` it, each thing once, by its first name."""
    found, seen = {}, set()
    for group in GROUPS:
        found[group] = {}
        for name, value in names_of(group):
            if id(value) not in seen:
                seen.add(id(value))
                found[group][name] = value
    return found


@functools.cache
def paths():
    """Where each public name is defined: dict, by the name as imported and, if one has it, bare."""
    found = {}
    for group in GROUPS:
        for name, value in names_of(group):
            path = f"{value.__module__}.{value.__qualname__}"
            found[name] = path
            found.setdefault(name.rpartition(".")[2], path)
    return found


def page_of(name):
    return f"{REFERENCE}/etcmodel.{name}.md"


def slug(group):
    return group.lower().replace(" ", "_")


def reference_pages():
    """(name, Markdown) of each page of the reference; mkdocstrings fills those of single names."""
    parts = ["# Reference\n\nThe public names. Each has a page: its signature and an example.\n"]
    for group, names in public_names().items():
        lines = [f"| [`{x}`](etcmodel.{x}.md) | {summary(value)} |" for x, value in names.items()]
        table = "\n".join(["| name | |", "| --- | --- |", *lines, ""])
        links = " · ".join(f"[`{x}`](etcmodel.{x}.md)" for x in names)
        parts.append(f"## [{group}]({slug(group)}.md)\n\n{links}\n")
        yield slug(group), f"# {group}\n\n{table}"
        for name in names:
            yield f"etcmodel.{name}", f"::: {paths()[name]}\n"
    yield "index", "\n".join(parts)


def summary(value):
    """The first line of a docstring, as a cell of a table."""
    return (inspect.getdoc(value) or "").split("\n", 1)[0].replace("|", "\\|")


# Lines from `>>> ` to the end of the docstring, or to an empty line with no more examples.
_EXAMPLES = re.compile(r"^>>> .*?(?=\n\n(?!>>> )|\Z)", re.MULTILINE | re.DOTALL)
# What begins a section, below a line of text.
_SECTION = re.compile(r"(?<=\S)\n(?=(?:Args|Attributes|Call args|Raises|Returns|Yields):)")
_CALL = re.compile(r"^Call args:\s*$", re.MULTILINE)  # Keras's; griffe knows it by its title alone.


class Docstrings(griffe.Extension):
    """Docstrings as the site's parser wants them, with links, and the line that imports a name.

    Markdown takes `>>>` of examples for quotations, and griffe takes a section for part of the text
    unless an empty line is above it.
    """

    def on_instance(self, *, obj, **kwargs):
        if obj.docstring is None:
            return
        text = _EXAMPLES.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
        text = _CALL.sub("Args: Arguments of a call:", _SECTION.sub("\n\n", text))
        linked = {obj.path}
        text = outside_code(text, lambda part: with_links(part, linked))
        if obj.path in imports():
            first, _, rest = text.partition("\n")
            text = f"{first}\n\n```python\n{imports()[obj.path]}\n```\n{rest}"
        obj.docstring.value = text


@functools.cache
def imports():
    """The line that imports each public name, by where it is defined."""
    found = {}
    for names in public_names().values():
        for name in names:
            module, _, own = f"etcmodel.{name}".rpartition(".")
            found[paths()[name]] = f"from {module} import {own}"
    return found
