"""HTML pages of one document that loads nothing, put together from the files of this folder."""

import base64
import functools
import hashlib
import importlib.resources
import json
import string

__all__ = ["content_hash", "read", "render"]


@functools.cache
def read(name):
    """The content of a file of this folder: str.

    >>> from etcmodel import pages
    >>> pages.read("attention.js").startswith('"use strict";')
    True
    """
    return (importlib.resources.files(__name__) / name).read_text(encoding="utf-8")


def render(name, data, /, **values):
    """A page with its style sheets, its scripts and its data; no other script or style may act.

    Args:
        name: str. `{name}.html`, `.css` and `.js` are the page's own; all have `base.css`, and
            `attention.css` and `.js`, which show what tokens attend to.
        data: what the script reads, as JSON; without NaN.
        **values: str. HTML for the places `${…}` of the document.
    Returns:
        str.

    >>> from etcmodel import pages
    >>> places = dict.fromkeys(("name", "version", "form", "signatures"), "")
    >>> page = pages.render("serving", {"kind": "other"}, **places)
    >>> '{"kind":"other"}' in page and "default-src 'none'" in page
    True
    """
    style = "".join(read(f"{part}.css") for part in ("base", "attention", name))
    script = "".join(read(f"{part}.js") for part in ("attention", name))
    return string.Template(read(f"{name}.html")).substitute(
        values,
        style=style,
        script=script,
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        data=_script_json(data),
    )


def _script_json(data):
    """JSON that cannot end the element around it; all but ASCII is escaped."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def content_hash(text):
    """What a page's security policy knows an inline script or style by: str.

    >>> from etcmodel import pages
    >>> pages.content_hash("")
    'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
