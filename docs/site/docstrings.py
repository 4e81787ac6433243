"""Docstrings as the site's parser wants them: an extension of griffe, which reads them.

Markdown takes `>>>` of examples for quotations, and griffe takes a section for part of the text
unless an empty line is above it.
"""

import re

import griffe

# Lines from `>>> ` to the end of the docstring, or to an empty line with no more examples.
_EXAMPLES = re.compile(r"^>>> .*?(?=\n\n(?!>>> )|\Z)", re.MULTILINE | re.DOTALL)


# What begins a section, below a line of text.
_SECTION = re.compile(r"(?<=\S)\n(?=(?:Args|Attributes|Call args|Raises|Returns|Yields):)")


class Docstrings(griffe.Extension):
    """Puts examples into blocks of code, and empty lines above sections."""

    def on_instance(self, *, obj, **kwargs):
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text):
    """A docstring with its examples as blocks of code, and its sections apart."""
    return _SECTION.sub("\n\n", _EXAMPLES.sub(r"```pycon\n\g<0>\n```", text))
