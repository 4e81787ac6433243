"""Self-contained HTML pages, assembled from the files in this folder."""

import base64
import functools
import hashlib
import importlib.resources
import json
import string

__all__ = ["content_hash", "read", "render"]


@functools.cache
def read(name):
    """Reads a file of this folder, as str.

    >>> from etcmodel import pages
    >>> pages.read("attention.js").startswith('"use strict";')
    True
    """
    return (importlib.resources.files(__name__) / name).read_text(encoding="utf-8")


def render(name, data, /, **values):
    """Renders a page with its style sheets, scripts and data; its policy blocks all others.

    Args:
        name: str. `{name}.html`, `.css` and `.js` are the page's own; all share `base.css`, and
            `attention.css` and `.js`, which show what tokens attend to.
        data: input of the script, as a JSON-serializable value without NaN.
        **values: str. HTML for the placeholders `${…}` of the document.
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
    """JSON that cannot close the enclosing element; non-ASCII characters are escaped."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def content_hash(text):
    """The hash of an inline script or style in a page's security policy, as str.

    >>> from etcmodel import pages
    >>> pages.content_hash("")
    'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
