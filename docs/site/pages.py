"""What the documentation site is made of: a hook of MkDocs.

Pages keep the places that they have in the repository, so that their links are the same in both.
Those of the reference are made of the docstrings of all public names.
"""

import ast
import json
import pathlib

from mkdocs.structure import files as mkdocs_files

ROOT = pathlib.Path(__file__).parents[2]
PATTERNS = (
    "*.md",
    "benchmarks/*.md",
    "benchmarks/*.png",
    "docs/*.md",
    "docs/*.png",
    "docs/concepts/*.png",
    "docs/notebooks/*.ipynb",
    "etcmodel/*/README.md",
    "tasks/*/README.md",
)
REFERENCE = "reference"


def on_config(config):
    """Adds the pages of the reference to the menu."""
    pages = [{package: f"{REFERENCE}/{package}.md"} for package in public_names()]
    config.nav.append({"Reference": pages})
    return config


def on_files(files, config):
    """Adds the repository's pages and those of the reference."""
    for pattern in PATTERNS:
        for path in sorted(ROOT.glob(pattern)):
            add(files, config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        name = path.with_suffix(".md").relative_to(ROOT).as_posix()
        add(files, config, name, content=notebook_page(path))
    for package, modules in public_names().items():
        text = reference_page(package, modules)
        add(files, config, f"{REFERENCE}/{package}.md", content=text)
    return files


def add(files, config, name, **source):
    """Adds a file of that name; see `mkdocs.structure.files.File.generated` for the source."""
    included = mkdocs_files.InclusionLevel.INCLUDED
    files.append(mkdocs_files.File.generated(config, name, inclusion=included, **source))


def notebook_page(path):
    """Markdown of a notebook with its outputs, which its page in the repository lacks."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        parts += [output_text(output) for output in cell.get("outputs", ())]
    title, rest = parts[0].split("\n", 1)
    line = f"This page is a notebook: [{path.name}]({path.name})."
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


def public_names():
    """Names of `__all__` that are defined in the module: dict of dicts of lists, by package."""
    found = {}
    for path in sorted((ROOT / "etcmodel").rglob("*.py")):
        names = defined_names(ast.parse(path.read_text(encoding="utf-8")).body)
        parts = path.relative_to(ROOT).with_suffix("").parts
        if names and parts[-1] != "__init__":  # Whose names are other modules'.
            found.setdefault(".".join(parts[:-1]), {})[".".join(parts)] = names
    return found


def defined_names(statements):
    """Names of `__all__` that the statements of a module define or assign: list of str."""
    assigned = {
        ast.unparse(target): node.value
        for node in statements
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    names = assigned.get("__all__", ast.List([]))
    if not all(isinstance(name, ast.Constant) for name in getattr(names, "elts", [None])):
        return []  # Names that are imported at first use.
    defined = {getattr(node, "name", None) for node in statements} | set(assigned)
    return [name.value for name in names.elts if name.value in defined]


def reference_page(package, modules):
    """Markdown of which mkdocstrings makes the page of a package."""
    parts = [f"# {package}\n"]
    for module, names in modules.items():
        parts.append(f"## {module.removeprefix(package + '.')}\n")
        parts += [f"::: {module}.{name}\n" for name in names]
    return "\n".join(parts)
