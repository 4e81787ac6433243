"""The page at `/`: to ask the model in a browser, in one HTML document that needs nothing else."""

import base64
import hashlib
import html
import json
import urllib.parse

from etcmodel.serving.rest import page_attention, page_form, page_parts, page_script
from etcmodel.serving.rest.signatures import DEFAULT_SIGNATURE

__all__ = ["render_page", "sample_request"]

# Signatures of text exports, in the order in which the page prefers them.
_KINDS = ("answer", "classify", "keyphrases")
_OTHER = "other"
_SCRIPT = page_script.SCRIPT + page_attention.SCRIPT + page_form.SCRIPT


def _kind_of(signatures):
    """Which form the page has: "answer", "classify", "keyphrases", or "other" for JSON."""
    return next((kind for kind in _KINDS if kind in signatures), _OTHER)


def render_page(name, version, signatures):
    """The page as str.

    Args:
        name, version: str. The model's.
        signatures: dict of name to `Signature`.
    """
    kind = _kind_of(signatures)
    data = {
        "kind": kind,
        "url": f"/v1/models/{urllib.parse.quote(name, safe='')}:predict",
        "attention": kind != _OTHER and "attention" in signatures,
    }
    return page_parts.PAGE.substitute(
        name=html.escape(name),
        version=html.escape(version),
        form=page_parts.FORMS[kind].substitute(request=html.escape(sample_request(signatures))),
        signatures="\n".join(_html_signature(x) for _, x in sorted(signatures.items())),
        style=page_parts.STYLE,
        script=_SCRIPT,
        style_hash=_hash(page_parts.STYLE),
        script_hash=_hash(_SCRIPT),
        # Within a script no tag may begin, whatever a model's name is.
        data=json.dumps(data).replace("<", "\\u003c"),
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
    """A request that names the inputs."""
    name = DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in signatures else min(signatures)
    example = {key: _sample_value(info) for key, info in sorted(signatures[name].inputs.items())}
    return json.dumps({"signature_name": name, "inputs": example}, indent=1)


def _sample_value(info):
    value = "" if info.is_string else 0
    for size in reversed(info.shape or ()):
        value = [value] * (1 if size is None else min(size, 8))
    return value


def _hash(text):
    """What allows this text, and no other, as a script or style sheet of the page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
