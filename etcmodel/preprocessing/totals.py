"""Statistics over the examples of a job, which may be counted in several parts."""

import collections

__all__ = ["Totals"]


class Totals:
    """Counts and lengths of examples, which can be stored and merged."""

    def __init__(self):
        self.num_read = self.num_written = self.num_bad = 0
        self._counts = collections.Counter()
        self._lengths = collections.defaultdict(lambda: [0, 0])  # Sum and count.

    def add(self, converted, num_records):
        """Counts an example with its `Converted` and its number of records."""
        self.num_read += 1
        self.num_written += num_records
        self.num_bad += bool(converted.problem)
        self._counts.update(converted.counts)
        for name, length in converted.lengths.items():
            self._add_lengths(name, length, 1)

    def _add_lengths(self, name, total, num):
        self._lengths[name][0] += total
        self._lengths[name][1] += num

    def as_dict(self):
        """The state for `merge`: JSON-serializable dict."""
        return {
            "read": self.num_read,
            "written": self.num_written,
            "bad": self.num_bad,
            "counts": dict(self._counts),
            "lengths": dict(self._lengths),
        }

    def merge(self, part):
        """Adds the `as_dict` of another instance."""
        self.num_read += part["read"]
        self.num_written += part["written"]
        self.num_bad += part["bad"]
        self._counts.update(part["counts"])
        for name, (total, num) in part["lengths"].items():
            self._add_lengths(name, total, num)

    def statistics(self):
        """The counts, and the means of the lengths: dict."""
        means = {name: round(total / num, 2) for name, (total, num) in self._lengths.items()}
        return {
            "examples_read": self.num_read,
            "examples_written": self.num_written,
            "examples_bad": self.num_bad,
            **dict(sorted(self._counts.items())),
            **{f"mean_{name}": mean for name, mean in sorted(means.items())},
        }
