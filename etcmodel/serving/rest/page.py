"""The page at `/` for using the model in a browser: one self-contained HTML document."""

import html
import json
import string
import urllib.parse

from etcmodel import pages
from etcmodel.serving.rest.signatures import DEFAULT_SIGNATURE

__all__ = ["render_page", "sample_request"]

# Signatures of text exports, in order of preference: each with the file of its form, and the label
# of its button.
_KINDS = {
    "answer": ("serving_answer.html", ""),
    "classify": ("serving_text.html", "Classify"),
    "keyphrases": ("serving_text.html", "Find key phrases"),
}
_OTHER = "other"  # A form for JSON.


def render_page(name, version, signatures, texts=None):
    """Renders the page as str.

    Args:
        name, version: str. The model's.
        signatures: dict of name to `Signature`.
        texts: `model.Texts` of a text export; None for others.
    """
    kind = next((kind for kind in _KINDS if kind in signatures), _OTHER)
    form, send = _KINDS.get(kind, ("serving_other.html", ""))
    values = {"send": send, "request": html.escape(sample_request(signatures))}
    attention = None
    if kind != _OTHER and "attention" in signatures:
        attention = texts.attention if texts else {}
    data = {
        "kind": kind,
        "url": f"/v1/models/{urllib.parse.quote(name, safe='')}:predict",
        "attention": attention,
        "labels": texts.labels if texts else [],
        "examples": texts.examples if texts else [],
    }
    return pages.render(
        "serving",
        data,
        name=html.escape(name),
        version=html.escape(version),
        form=string.Template(pages.read(form)).substitute(values),
        signatures="\n".join(_html_signature(x) for _, x in sorted(signatures.items())),
    )


def _html_signature(signature):
    rows = (
        f"<tr><td>{side}</td><td><code>{html.escape(name)}</code></td>"
        f"<td>{html.escape(str(info))}</td></tr>"
        for side, infos in (("input", signature.inputs), ("output", signature.outputs))
        for name, info in sorted(infos.items())
    )
    return (
        f"<table><caption><code>{html.escape(signature.name)}</code></caption>"
        '<thead><tr><th scope="col">side</th><th scope="col">name</th>'
        f'<th scope="col">type and shape</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def sample_request(signatures):
    """An example request with the names of the inputs."""
    name = DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in signatures else min(signatures)
    example = {key: _sample_value(info) for key, info in sorted(signatures[name].inputs.items())}
    return json.dumps({"signature_name": name, "inputs": example}, indent=1)


def _sample_value(info):
    value = "" if info.is_string else 0
    for size in reversed(info.shape or ()):
        value = [value] * (1 if size is None else min(size, 8))
    return value
