"""Combines requests of one kind and runs them as one batch."""

import collections
import concurrent.futures
import contextlib
import contextvars
import dataclasses
import select
import threading
import time

import numpy as np

from etcmodel.serving.rest.errors import RequestError
from etcmodel.text import alike

# Checks whether the client of a request is still waiting.
#
# The thread that handles a request sets the check; the code that it calls uses it before starting
# work that may no longer be wanted.


_HAS_LEFT = contextvars.ContextVar("has_left", default=lambda: False)
_NEWS = b"HTTP/1.1 100 Continue\r\n\r\n"


def has_left():
    """Whether the client of this thread's request has disconnected; False if unknown."""
    return _HAS_LEFT.get()()


@contextlib.contextmanager
def watched(function):
    """Sets the function behind `has_left`, within this block and thread."""
    token = _HAS_LEFT.set(function)
    try:
        yield
    finally:
        _HAS_LEFT.reset(token)


class Watch:
    """Checks whether the other end of a connection has disconnected.

    A client that has only closed its sending side looks like a disconnected one until something is
    sent to it. So it is sent `100 Continue`, once, which HTTP/1.1 clients skip; if the client has
    disconnected, the connection breaks.

    Args:
        connection: socket.
        may_ask: bool. Whether the client uses HTTP/1.1.
    """

    def __init__(self, connection, may_ask):
        self._connection, self._may_ask = connection, may_ask
        self._ended = getattr(select, "POLLRDHUP", 0)

    def __call__(self):
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._connection, self._ended)
        ((_, events),) = poll.poll(0) or [(0, 0)]
        if events & (select.POLLERR | select.POLLHUP):
            return True
        if events & self._ended and self._may_ask:
            self._may_ask = False
            with contextlib.suppress(OSError):  # The next check will show it.
                self._connection.send(_NEWS)
        return False


# The batches.


# Inputs of text models whose rows may be padded with "", and outputs that are padded as a result:
# their sentences, as many as in the longest example of the batch.
_PADDED_INPUTS = frozenset({"documents", "sentences"})
_PADDED_OUTPUTS = "evidence"
_PADDING_MARK = "evidence_document"  # -1 where there is no sentence.
# Outputs of generation: as long as the batch's longest, several per input, or sampled by the place
# in the batch.
_GENERATED = "sequences"
# Padding of outputs by kind of dtype, as a model pads the sentences of its examples.
_FILL = {"O": b"", "i": -1}
_LOOK_SECONDS = 0.2  # Interval of checks whether the client still waits.


@dataclasses.dataclass
class _Pending:
    signature: object
    inputs: dict
    sizes: list  # Of the rows, see `_sizes`.
    key: object
    future: concurrent.futures.Future

    @property
    def num_rows(self):
        return len(self.sizes)


def _sizes(inputs, num_rows):
    """Bytes of the texts of each row, which a batch is padded to the most of: list of int."""
    sizes = [0] * num_rows
    for value in inputs.values():
        if value.dtype == np.dtype(object):
            for row, texts in enumerate(value):
                sizes[row] += sum(map(len, np.ravel(texts)))
    return sizes


def joining_key(signature, inputs):
    """The key that two requests must share to be combined, or None if they never are.

    An answer must not depend on its neighbors in the batch: for text inputs, whose lengths are
    hidden, outputs with open axes besides the examples would get a neighbor's padding, and so would
    generated sequences.

    Args:
        signature: `Signature`.
        inputs: dict of name to array.
    """
    if not signature.has_batches or _GENERATED in signature.outputs:
        return None
    if any(info.is_string for info in signature.inputs.values()):
        trimmed = _PADDING_MARK in signature.outputs
        for name, info in signature.outputs.items():
            is_open = None in info.shape[1:]
            if is_open and not (trimmed and name.startswith(_PADDED_OUTPUTS)):
                return None
    shapes = tuple(
        value.ndim if _is_padded(name, value) else value.shape[1:]
        for name, value in sorted(inputs.items())
    )
    return signature.name, shapes


class Batcher:
    """Runs requests in separate threads and combines requests that wait at the same time.

    While a batch runs, the next one is collected; a request that finds the model idle waits
    `wait_seconds` for others. Texts of very different lengths do not share a batch, see
    `text.alike`: the longest would make all as slow as itself.

    Args:
        run: function from a signature's name and a dict of name to array to such a dict.
        max_batch_size: int. Maximum number of examples in a batch, unless a single request has
            more.
        wait_seconds: float.
        num_threads: int. Number of batches that run concurrently.

    >>> from etcmodel.serving import rest
    >>> model = rest.ServedModel("my_export")
    >>> batcher = rest.Batcher(model, max_batch_size=8)
    >>> inputs = {"token_ids": np.array([[2, 7]])}
    >>> batcher(model.signatures["dense_features"], inputs, num_rows=1)["logits"].shape
    (1, 2)
    """

    def __init__(self, run, *, max_batch_size=16, wait_seconds=0.0, num_threads=1):
        self._run = run
        self._max_batch_size, self._wait_seconds = max_batch_size, wait_seconds
        self._pending = collections.deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"batch {number}", daemon=True)
            for number in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def __call__(self, signature, inputs, num_rows):
        """Runs a request and returns its outputs; see `submit`.

        A request that is larger than a batch, or of texts that are not alike, is run in several
        parts, so that others need not wait for all of it. It is run as a whole if it has no
        `joining_key`, or if an output row may depend on other rows, such as pairwise similarities.
        Windows of one example are never separated. If its client has disconnected (`has_left`),
        parts that have not started are dropped.

        Raises:
            RequestError: 499, if the client has disconnected.
        """
        if joining_key(signature, inputs) is None:
            return self._wait_for(signature, inputs, num_rows)
        parts = [*map(sorted, alike.parts(_sizes(inputs, num_rows), self._max_batch_size))]
        answers = []
        for number, rows in enumerate(parts):
            if number and has_left():
                raise _gone()
            part = {name: value[rows] for name, value in inputs.items()}
            answers.append(self._wait_for(signature, part, len(rows)))
        if len(parts) == 1:
            return answers[0]
        if not _are_of_rows(signature, answers, [*map(len, parts)]):
            return self._wait_for(signature, inputs, num_rows)
        order = np.argsort(np.concatenate(parts))
        return {name: value[order] for name, value in _concatenated(answers).items()}

    def _wait_for(self, signature, inputs, num_rows):
        future = self.submit(signature, inputs, num_rows)
        while not _is_done(future):
            if has_left() and future.cancel():
                raise _gone()
        return future.result()

    def submit(self, signature, inputs, num_rows):
        """Submits a request without waiting for the result.

        Args:
            signature: `Signature`.
            inputs: dict of name to array.
            num_rows: int. Number of examples.
        Returns:
            `concurrent.futures.Future` with a dict of name to array, or with the exception that
            `run` raises for this request.
        Raises:
            RuntimeError: after `close`.
        """
        key = joining_key(signature, inputs)
        sizes = [0] * num_rows if key is None else _sizes(inputs, num_rows)
        future = concurrent.futures.Future()
        with self._changed:
            if self._is_closed:
                raise RuntimeError("The batcher is closed.")
            self._pending.append(_Pending(signature, inputs, sizes, key, future))
            self._changed.notify_all()
        return future

    def close(self):
        """Runs pending requests, and ends the threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self):
        while batch := self._next_batch():
            batch = [x for x in batch if x.future.set_running_or_notify_cancel()]
            if not batch:
                continue
            if len(batch) == 1 or not self._run_joined(batch):
                for request in batch:
                    self._run_single(request)

    def _next_batch(self):
        """The requests to run next; none after `close`."""
        with self._changed:
            while not self._pending:
                if self._is_closed:
                    return []
                self._changed.wait()
            batch = [self._pending.popleft()]
            if batch[0].key is None:
                return batch
            deadline = time.monotonic() + self._wait_seconds
            while True:
                self._take_alike(batch)
                left = deadline - time.monotonic()
                is_full = sum(x.num_rows for x in batch) >= self._max_batch_size
                if is_full or self._is_closed or left <= 0:
                    return batch
                self._changed.wait(left)

    def _take_alike(self, batch):
        sizes = [size for x in batch for size in x.sizes]
        others = collections.deque()
        for request in self._pending:
            joined = sizes + request.sizes
            # Without rows there are no sizes.
            sizes_are_alike = alike.are_alike(min(joined, default=0), max(joined, default=0))
            is_alike = request.key == batch[0].key and sizes_are_alike
            if is_alike and len(joined) <= self._max_batch_size:
                batch.append(request)
                sizes = joined
            else:
                others.append(request)
        self._pending = others

    def _run_joined(self, batch):
        """Whether all requests got their results from one run."""
        try:
            outputs = self._run(batch[0].signature.name, _joined([x.inputs for x in batch]))
            start, num_rows = 0, sum(x.num_rows for x in batch)
            if not _are_of_rows(batch[0].signature, [outputs], [num_rows]):
                return False  # Rows that do not match the requests cannot be distributed.
            answers = []
            for request in batch:
                rows = slice(start, start := start + request.num_rows)
                own = {name: value[rows] for name, value in outputs.items()}
                answers.append(_trimmed(own, request.signature))
        except Exception:
            return False  # Each gets its own error or result.
        for request, answer in zip(batch, answers, strict=True):
            request.future.set_result(answer)
        return True

    def _run_single(self, request):
        try:
            outputs = self._run(request.signature.name, request.inputs)
            request.future.set_result(_trimmed(outputs, request.signature))
        except BaseException as error:
            request.future.set_exception(error)


def _is_done(future):
    """Whether a future has ended, or does so within `_LOOK_SECONDS`."""
    try:
        future.exception(_LOOK_SECONDS)  # Quicker than `concurrent.futures.wait`.
    except concurrent.futures.TimeoutError:
        return False
    return True


def _gone():
    return RequestError(499, "The client has gone.")


def _is_padded(name, value):
    return name in _PADDED_INPUTS and value.dtype == np.dtype(object) and value.ndim > 1


def _joined(requests):
    """Concatenates inputs to one dict; shorter text inputs are padded with ""."""
    joined = {}
    for name in requests[0]:
        arrays = [request[name] for request in requests]
        if _is_padded(name, arrays[0]):
            sizes = np.max([array.shape[1:] for array in arrays], axis=0)
            arrays = [_padded(array, sizes) for array in arrays]
        joined[name] = np.concatenate(arrays)
    return joined


def _are_of_rows(signature, parts, sizes):
    """Whether each output row depends on one input row only, as far as shapes show.

    An open axis that is as long as the batch may also be an axis of examples.

    Args:
        signature: `Signature`.
        parts: list of dict of name to array. Outputs of several runs.
        sizes: list of int. Number of rows in each run.
    """
    for name in parts[0]:
        shapes = [part[name].shape for part in parts]
        if any(shape[:1] != (size,) for shape, size in zip(shapes, sizes, strict=True)):
            return False
        if _PADDING_MARK in signature.outputs and name.startswith(_PADDED_OUTPUTS):
            continue
        if len({shape[1:] for shape in shapes}) > 1:
            return False
        axes = [axis for axis, size in enumerate(signature.outputs[name].shape) if size is None]
        if any({shape[axis] for shape in shapes} == {*sizes} for axis in axes[1:]):
            return False
    return True


def _concatenated(parts):
    """Concatenates the outputs of the parts of a request; shorter ones are padded."""
    joined = {}
    for name in parts[0]:
        arrays = [part[name] for part in parts]
        sizes = np.max([array.shape[1:] for array in arrays], axis=0, initial=0).astype(int)
        fill = _FILL.get(arrays[0].dtype.kind, 0)
        joined[name] = np.concatenate([_padded(array, sizes, fill) for array in arrays])
    return joined


def _padded(array, sizes, fill=b""):
    padded = np.full([len(array), *sizes], fill, array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    return padded


def _trimmed(outputs, signature):
    """Drops sentences that are only padding for a neighbor in the batch."""
    mark = signature.outputs.get(_PADDING_MARK)
    if mark is None or not mark.shape or mark.shape[1:] != (None,):
        return outputs
    used = np.flatnonzero((outputs[_PADDING_MARK] >= 0).any(axis=0))
    size = used[-1] + 1 if used.size else 0
    return {
        name: value[:, :size] if name.startswith(_PADDED_OUTPUTS) else value
        for name, value in outputs.items()
    }
