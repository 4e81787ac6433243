"""Positions of an HTML table's cells, some of which span several rows and columns."""

__all__ = ["Grid"]

_MOST_COLUMNS, _MOST_ROWS = 1000, 65534  # HTML's own limits of spans.
_MOST_FROM_ABOVE = 256  # No table made by a person has more.


class Grid:
    """Finds the rows and columns of cells, in the order of the page.

    Attributes:
        number: int or None. The table's number, once it is known.
    """

    def __init__(self):
        self.number = None
        self._row = -1
        self._column = 0
        self._from_above = []  # (first column, last column, last row) of cells that go on.
        self._pending = []  # Those that begin in this row.
        self._group = None  # The element around the current rows, once it had to be known,
        self._last_row = 0  # and the number of its last row.

    def next_row(self):
        self._row += 1
        self._column = 0
        going_on = [span for span in self._from_above + self._pending if span[2] >= self._row]
        self._from_above, self._pending = sorted(going_on)[:_MOST_FROM_ABOVE], []

    def place(self, element):
        """((first row, last row), (first column, last column)) of a `td` or `th`."""
        self._row = max(self._row, 0)
        for begin, end, _ in self._from_above:
            if begin <= self._column <= end:
                self._column = end + 1
        width = _span(element, "colspan", _MOST_COLUMNS)
        height = self._height(element)
        first, last = self._column, self._column + width - 1
        rows = self._row, self._row + height - 1
        if height > 1 and len(self._pending) < _MOST_FROM_ABOVE:
            self._pending.append((first, last, rows[1]))
        self._column = last + 1
        return rows, (first, last)

    def _height(self, element):
        row = element.getparent()
        if _number(element, "rowspan") != 0 or row.tag != "tr":
            return _span(element, "rowspan", _MOST_ROWS)
        # 0 stands for all rows that are left of those that are grouped, as in a `tbody`.
        if row.getparent() is not self._group:
            self._group = row.getparent()
            self._last_row = self._row + sum(1 for _ in row.itersiblings("tr"))
        return min(self._last_row - self._row + 1, _MOST_ROWS)


def _span(element, name, most):
    return min(max(_number(element, name), 1), most)


def _number(element, name):
    """An attribute's number; 1 if it has none."""
    value = (element.get(name) or "").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 9 else 1
