"""Raw examples of a task's data set: the signature `examples`, which the server adds to an export.

Converting and decoding them is the task's Python code. What the model gets are features, which go
through the server's limits and batches as those of other requests.
"""

import dataclasses
import itertools
from collections.abc import Callable

from etcmodel.serving import saved_model
from etcmodel.serving.rest.codec import PredictRequest
from etcmodel.serving.rest.errors import RequestError
from etcmodel.shown_values import shortened

SIGNATURE = "examples"


@dataclasses.dataclass(frozen=True)
class RawExamples:
    """How raw examples of an export's task become features, and outputs become predictions.

    Attributes:
        prepare: function from a raw example, a dict, and the id of one without an id, an int, to
            (records, decode): a list of feature dicts, which is not empty; and a function from the
            model's outputs for them, a list of dicts with the features, to the prediction, a value
            for JSON. It raises a ValueError that names the field, for a malformed example.
        fields: dict. The names of the `question`, the `documents` and the `candidates` in a raw
            example, if it consists of these; the page then has a form for them. Else empty.
        samples: list of dict. Raw examples for the page.

    >>> from etcmodel.serving import rest
    >>> model = rest.ServedModel("my_export")
    >>> examples = rest.RawExamples(lambda raw, default_id: ([{"token_ids": raw["ids"]}], len))
    >>> application = rest.Application(model, rest.Batcher(model), examples=examples)
    >>> body = b'{"signature_name": "examples", "instances": [{"ids": [2, 7]}]}'
    >>> application("POST", "/v1/models/model:predict", body).body
    b'{"predictions": [1]}'
    """

    prepare: Callable
    fields: dict = dataclasses.field(default_factory=dict)
    samples: list = dataclasses.field(default_factory=list)

    def request(self, instances, signature):
        """Converts raw examples to a request for the model.

        Args:
            instances: list of dict.
            signature: `Signature` of the features.
        Returns:
            (`codec.PredictRequest`, function from its outputs to a list of the predictions).
        Raises:
            RequestError: 400, naming the instance and the field, if one is malformed.
        """
        parts = [self._prepared(number, raw) for number, raw in enumerate(instances)]
        records = [record for records, _ in parts for record in records]
        inputs = saved_model.stacked(records, signature.inputs)

        def predictions(outputs):
            rows = saved_model.unstacked(records, {**inputs, **outputs})
            return [decode(list(itertools.islice(rows, len(part)))) for part, decode in parts]

        return PredictRequest(signature, inputs, True, len(records)), predictions

    def _prepared(self, number, raw):
        try:
            return self.prepare(raw, number)
        except ValueError as error:
            line = shortened(" ".join(str(error).split()).rstrip("."))
            raise RequestError(400, f"Item {number} of `instances`: {line}.") from None
