"""The server's responses, independent of sockets: TensorFlow Serving's URLs, and a page."""

import dataclasses
import html
import json
import logging
import re
import string
import urllib.parse

import tensorflow as tf

from etcmodel import pages, program_end
from etcmodel.generation import settings as generation_settings
from etcmodel.serving.rest import codec, raw_examples, reading, work
from etcmodel.serving.rest.codec import DEFAULT_SIGNATURE
from etcmodel.serving.rest.errors import RequestError
from etcmodel.serving.rest.metrics import CONTENT_TYPE
from etcmodel.serving.rest.model import EMBED
from etcmodel.serving.saved_model import FEATURES_SIGNATURE

# Signatures of text exports, in order of preference: each with the file of its form, and the label
# of its button.
_KINDS = {
    "answer": ("serving_answer.html", ""),
    "classify": ("serving_text.html", "Classify"),
    "keyphrases": ("serving_text.html", "Find key phrases"),
}
# Forms without such a signature: of raw examples that have candidates, and for JSON.
_CHOOSE, _OTHER = "choose", "other"
_FORMS = {**_KINDS, _CHOOSE: _KINDS["answer"], _OTHER: ("serving_other.html", "")}


def render_page(name, version, signatures, texts=None, examples=None, path_prefix=""):
    """Renders the page as str.

    Args:
        name, version: str. The model's.
        signatures: dict of name to `Signature`.
        texts: `model.Texts` of a text export; None for others.
        examples: `RawExamples`, if the server takes raw examples.
        path_prefix: str. Where the server is, such as "/models".
    """
    fields = examples.fields if examples else {}
    samples = examples.samples if examples else []
    filled = [{name: sample[field] for name, field in fields.items()} for sample in samples]
    other = _CHOOSE if fields else _OTHER
    kind = next((kind for kind in _KINDS if kind in signatures), other)
    form, send = _FORMS[kind]
    values = {
        "send": send,
        "request": html.escape(sample_request(signatures, samples)),
        "candidates": pages.read("serving_candidates.html") if kind == _CHOOSE else "",
    }
    attention = None
    if kind in _KINDS and "attention" in signatures:
        attention = texts.attention if texts else {}
    data = {
        "kind": kind,
        "url": f"{path_prefix}/v1/models/{urllib.parse.quote(name, safe='')}:predict",
        "attention": attention,
        "labels": texts.labels if texts else [],
        "examples": texts.examples if texts else filled,
        "fields": fields,
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


def sample_request(signatures, samples=()):
    """An example request: with the first raw sample, or with the names of the inputs."""
    if samples:
        request = {"signature_name": raw_examples.SIGNATURE, "instances": [samples[0]]}
        return json.dumps(request, indent=1, ensure_ascii=False)
    name = DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in signatures else min(signatures)
    example = {key: _sample_value(info) for key, info in sorted(signatures[name].inputs.items())}
    return json.dumps({"signature_name": name, "inputs": example}, indent=1)


def _sample_value(info):
    value = "" if info.is_string else 0
    for size in reversed(info.shape or ()):
        value = [value] * (1 if size is None else min(size, 8))
    return value


_LOG = logging.getLogger(__name__)
_MODEL_PATH = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?(/metadata|:\w+)?")
_JSON = "application/json"
_EMBEDDINGS = "embeddings"
_MESSAGE_SIZE = 500
# TensorFlow errors that are not the client's fault, and all others, are 500.
_STATUS_OF_ERROR = (
    (tf.errors.InvalidArgumentError, 400),
    (tf.errors.FailedPreconditionError, 400),
    (tf.errors.OutOfRangeError, 400),
    (tf.errors.ResourceExhaustedError, 503),
    (MemoryError, 503),
)


@dataclasses.dataclass(frozen=True)
class Response:
    """A response: status code, body (bytes), its type, and further headers."""

    status: int
    body: bytes
    content_type: str = _JSON
    headers: dict = dataclasses.field(default_factory=dict)
    route: str = "other"  # For logs, which must not contain what a client sent.


class Application:
    """Handles requests for one model.

    Args:
        model: `ServedModel`.
        predict: function from a `Signature`, a dict of name to array and the number of examples to
            a dict of name to array, such as a `Batcher` of the model.
        max_rows, max_tokens, max_windows: int. Larger requests are rejected: see `work.Limits`.
        examples: `RawExamples` of an export whose signature `dense_features` takes their features.
            They are the signature `examples`, unless the export has one of its own. None: no raw
            examples.
        path_prefix: str. The path, such as "/models", below which a proxy has the server's
            addresses, whether or not it removes it from what it passes on.
        metrics: `Metrics`, answered at /metrics; None: not.

    >>> from etcmodel.serving import rest
    >>> model = rest.ServedModel("my_export", name="reviews")
    >>> application = rest.Application(model, rest.Batcher(model))
    >>> application("GET", "/v1/models/reviews").status
    200
    """

    def __init__(
        self,
        model,
        predict,
        *,
        max_rows=64,
        max_tokens=1 << 18,
        max_windows=64,
        examples=None,
        path_prefix="",
        metrics=None,
    ):
        self._model, self._predict = model, predict
        self._path_prefix, self._metrics = path_prefix, metrics
        self._limits = work.Limits(max_rows, max_tokens, max_windows)
        self._examples = None if raw_examples.SIGNATURE in model.signatures else examples
        self._page = render_page(
            model.name, model.version, model.signatures, model.texts, self._examples, path_prefix
        ).encode()

    def __call__(self, method, path, body=b""):
        """The `Response` to a request; errors become responses, too.

        Args:
            method: str, such as "GET".
            path: str. As the client sent it.
            body: bytes.
        """
        route = "other"
        try:
            route, allowed, answer = self._route(reading.target_parts(path)[1])
            if method not in allowed:
                raise RequestError(
                    405,
                    f"Use {' or '.join(allowed)} here, not {method:.20}.",
                    {"Allow": ", ".join(allowed)},
                )
            response = answer(body)
        except Exception as error:
            response = error_response(_request_error(error), is_object=route == _EMBEDDINGS)
        return dataclasses.replace(response, route=route)

    def _route(self, path):
        """The route's name, its allowed methods, and a function of the body."""
        read = ("GET", "HEAD")
        if f"{path}/".startswith(f"{self._path_prefix}/"):
            path = path.removeprefix(self._path_prefix) or "/"
        if path == "/":
            return "page", read, lambda body: Response(200, self._page, "text/html; charset=utf-8")
        if path == "/healthz":
            return "health", read, lambda body: _json({"status": "ok"})
        if EMBED in self._model.signatures:  # As clients of OpenAI ask.
            if path == "/v1/embeddings":
                return _EMBEDDINGS, ("POST",), self._answer_embeddings
            if path == "/v1/models":
                listed = [{"id": self._model.name, "object": "model"}]
                return "models", read, lambda body: _json({"object": "list", "data": listed})
        if path == "/metrics" and self._metrics:
            return "metrics", read, self._answer_metrics
        match = _MODEL_PATH.fullmatch(urllib.parse.unquote(path))
        if not match:
            raise RequestError(
                404,
                "There is nothing at this address; ask "
                f"POST /v1/models/{self._model.name}:predict, or open / in a browser.",
            )
        name, version, what = match.groups()
        self._check_model(name, version)
        if what is None:
            return "status", read, lambda body: _json(self._model.status())
        if what == "/metadata":
            return "metadata", read, lambda body: _json(self._model.metadata())
        if what == ":predict":
            return "predict", ("POST",), self._answer
        raise RequestError(404, f"There is no method {what[1:]!r:.40}; this server has :predict.")

    def _check_model(self, name, version):
        if name != self._model.name:
            raise RequestError(
                404, f"There is no model {name!r:.80}; this server has {self._model.name!r}."
            )
        if version is not None and version.lstrip("0") != self._model.version.lstrip("0"):
            raise RequestError(
                404,
                f"There is no version {version:.20} of {name!r}; this server has version "
                f"{self._model.version}.",
            )

    def _answer(self, body):
        given = codec.load(body)
        if self._examples and given.get("signature_name") == raw_examples.SIGNATURE:
            return self._answer_examples(codec.instances_of(given))
        others = [raw_examples.SIGNATURE] if self._examples else []
        request = codec.decode(given, self._model.signatures, others)
        self._limits.check(request, self._model.windows)
        outputs = self._predict(request.signature, request.inputs, request.num_rows)
        return Response(200, codec.encode(outputs, request.is_row))

    def _answer_embeddings(self, body):
        given = codec.load(body)
        if given.get("model") is not None:
            self._check_model(str(given["model"]), None)
        request, is_base64 = codec.decode_embeddings(given, self._model.signatures[EMBED])
        self._limits.check(request)
        outputs = self._predict(request.signature, request.inputs, request.num_rows)
        return Response(200, codec.encode_embeddings(outputs, self._model.name, is_base64))

    def _answer_metrics(self, body):
        return Response(200, self._metrics.text().encode(), CONTENT_TYPE)

    def _answer_examples(self, instances):
        self._limits.check_rows(len(instances))  # Before they are converted.
        signature = self._model.signatures[FEATURES_SIGNATURE]
        request, predictions = self._examples.request(instances, signature)
        self._limits.check_work(request, self._model.windows)
        outputs = self._predict(request.signature, request.inputs, request.num_rows)
        answer = {"predictions": predictions(outputs)}
        return Response(200, json.dumps(answer, ensure_ascii=False).encode())


def error_response(error, is_object=False):
    """The `Response` for a `RequestError`: JSON with one sentence, in an object as of OpenAI."""
    told = error.message
    if is_object:
        kind = "invalid_request_error" if error.status < 500 else "server_error"
        told = {"message": told, "type": kind, "param": None, "code": None}
    body = json.dumps({"error": told}, ensure_ascii=False)
    return Response(error.status, body.encode("utf-8", "replace"), headers=error.headers)


def _request_error(error):
    if isinstance(error, RequestError):
        return error
    for kind, status in _STATUS_OF_ERROR:
        if isinstance(error, kind):
            line = " ".join(program_end.error_line(error).split())
            status = 500 if generation_settings.NOT_SCORED in line else status
            return RequestError(status, f"The model says: {line[:_MESSAGE_SIZE]}")
    _LOG.error("The model failed: %s", type(error).__name__)  # The message may quote texts.
    return RequestError(500, f"The model failed with {type(error).__name__}.")


def _json(value):
    return Response(200, json.dumps(value).encode())
