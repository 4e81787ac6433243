"""Examples in docstrings as code on the site's pages: an extension of griffe, which reads them.

Markdown takes `>>>` for quotations.
"""

import re

import griffe

# Lines from `>>> ` to the end of the docstring, or to an empty line with no more examples.
_EXAMPLES = re.compile(r"^>>> .*?(?=\n\n(?!>>> )|\Z)", re.MULTILINE | re.DOTALL)


class Examples(griffe.Extension):
    """Puts examples into blocks of code."""

    def on_instance(self, *, obj, **kwargs):
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text):
    """A docstring with its examples as blocks of code."""
    return _EXAMPLES.sub(r"```pycon\n\g<0>\n```", text)
