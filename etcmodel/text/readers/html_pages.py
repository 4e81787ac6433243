"""Reads web pages: headings, paragraphs, lists, tables and links, in the structure of the DOM.

The page is parsed by lxml (libxml2), which repairs malformed HTML. Its text is what a browser
shows, a line for each block; offsets count the characters of that text.
"""

import codecs
import os
import re

from etcmodel import bounded_json, extras
from etcmodel.text.documents import Cell, Mention
from etcmodel.text.readers import fields

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


with extras.needed("text"):
    from lxml import etree, html


MAX_DEPTH = 200  # libxml2 stops at 256.

# How other files begin: libxml2 would read any bytes, and find a text of noise in these.
_OTHER_FILES = {
    b"%PDF-": "a PDF",
    b"\x1f\x8b\x08": "a gzip file",
    b"BZh": "a bzip2 file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PK\x03\x04": "a zip file, as those of Word and of e-books are",
    b"\xd0\xcf\x11\xe0": "a file of an older Word or Excel",
    b"\x89PNG\r\n\x1a\n": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF87a": "a GIF picture",
    b"GIF89a": "a GIF picture",
    b"RIFF": "a WebP picture or a sound",
    b"II*\0": "a TIFF picture",
    b"MM\0*": "a TIFF picture",
    b"ID3\x03": "a sound",
    b"ID3\x04": "a sound",
    b"OggS": "a sound or a film",
    b"\x1aE\xdf\xa3": "a film",
    b"\xfd7zXZ\0": "an xz file",
    b"7z\xbc\xaf\x27\x1c": "a 7z file",
    b"Rar!\x1a\x07": "a RAR file",
    b"\x7fELF": "a program",
    b"MZ\x90\0": "a program",
    b"SQLite format 3\0": "an SQLite database",
    b"PAR1": "a Parquet file",
}
# These are text throughout: only their beginnings tell them from a page.
_OTHER_TEXTS = {b"{\\rtf": "a file of RTF", b"%!PS-Adobe-": "a PostScript file"}
_OTHER_STARTS = {**_OTHER_FILES, **_OTHER_TEXTS}
_BEFORE = b"\xef\xbb\xbf \t\r\n"  # A mark of UTF-8, or white space.
# In them, near their beginnings: a text may begin with the same letters.
_NO_TEXT = re.compile("[\0-\x08\x0e-\x1f\x80-\x9f\ufffd]")
_PATH = re.compile(r"[^<>\s]+\.x?html?", re.IGNORECASE)
_DECLARED = re.compile(
    rb"<meta\b[^>]*\bcharset\s*=|<\?xml\b[^>]*\bencoding\s*=|\A\xef\xbb\xbf", re.IGNORECASE
)
_SPACES = re.compile(r"[ \t\n\r\f]+")
_SKIPPED = {"script", "style", "template", "noscript", "iframe", "object", "svg", "math", "select"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# Blocks of text by element; inside those that contain all of their text, others only break lines.
_WHOLE_KINDS = {
    **dict.fromkeys(_HEADINGS, "heading"),
    "title": "title",
    "li": "list_item",
    "dt": "list_item",
    "dd": "list_item",
    "td": "cell",
    "th": "header",
    "caption": "caption",
    "figcaption": "caption",
}
_TEXT_KINDS = {"p": "paragraph", "pre": "paragraph", "blockquote": "paragraph"}
_CONTAINERS = {"ul": "list", "ol": "list", "dl": "list", "table": "table"}
_CONTAINERS |= {x: x for x in ("section", "article", "nav", "main", "header", "footer", "aside")}
_BREAKS = {"div", "body", "html", "head", "form", "fieldset", "address", "figure", "hr", "tr"}
_BREAKS |= {"tbody", "thead", "tfoot", "details", "summary", "br", "option", "center"}


# What `main_only` leaves out: elements, and parts by their role.
_ASIDES = {"nav", "aside", "dialog", "form", "button", "menu"}
_OF_PAGES = {"header", "footer"}  # Within an article, or a section of it, they are its own.
_HAS_OWN = {"main", "article", "section"}
_ASIDE_ROLES = {"navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar"}
_ASIDE_ROLES |= {"dialog", "alert", "alertdialog", "toolbar", "tablist", "tooltip"}
_MAYBE_MENUS = {"ul", "ol", "dl", "div", "table", "p", "section"}
_MAX_LINK_SHARE = 0.6  # Of the characters of a part that is not a menu.
_UNSEEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)


def add_page(builder, page, where, parent=-1):
    """Adds a page.

    Args:
        builder: `documents.Builder`. With its `main_only`, navigation, headers and footers of the
            page, asides and lists of links are left out; from a page with a `main` element,
            everything else.
        page: str or bytes. HTML; the encoding of bytes is that of the page's own declaration, or
            without one UTF-8, if they are such, else Latin-1. Or a `pathlib.Path` of a file with
            these.
        where, parent: as in `sections.add_sections`.
    Raises:
        ValueError: if it is not text, or begins as a file of another kind, such as a PDF; longer
            than `bounded_json.MAX_BYTES` or nested deeper than `MAX_DEPTH`; or a path given as str,
            which would be read as a page.
        OSError: if a file cannot be read.
    """
    root = _tree(page, where)
    if root is not None and builder.main_only:
        _leave_out(root)
    _Page(builder, where, parent).read(root)


def _leave_out(root):
    """Removes all but the main text from a page; its title stays."""
    mains = root.xpath("//main | //*[@role='main']")
    kept = {
        *mains,
        *(x for main in mains for x in (*main.iterancestors(), *main.iterdescendants())),
    }
    for element in list(root.iter(etree.Element)):
        is_title = element.tag in ("head", "title", "html", "body")
        is_out = bool(mains) and element not in kept and element.getparent() not in mains
        if not is_title and (is_out or _is_aside(element)) and element.getparent() is not None:
            element.drop_tree()
    for element in list(root.iter(*_MAYBE_MENUS)):
        if root in element.iterancestors() and _is_menu(element):
            element.drop_tree()


def _is_aside(element):
    is_own = any(x.tag in _HAS_OWN for x in element.iterancestors())
    return (
        element.tag in _ASIDES
        or (element.tag in _OF_PAGES and not is_own)
        or (element.get("role") or "").strip().lower() in _ASIDE_ROLES
        or (element.get("aria-hidden") or "").strip().lower() == "true"
    )


def _is_menu(element):
    """Whether most of the text is links (Kohlschütter et al. 2010), and there is no heading."""
    if next(element.iter(*_HEADINGS), None) is not None:
        return False
    links = sum(_num_letters(x) for x in element.iter("a") if x.get("href"))
    return links > _MAX_LINK_SHARE * _num_letters(element)


def _num_letters(element):
    return len("".join(element.text_content().split()))


def _is_unseen(element):
    return element.get("hidden") is not None or bool(_UNSEEN.search(element.get("style") or ""))


def _content(page, where):
    """The page as given, or read from a file."""
    if isinstance(page, os.PathLike):
        with open(page, "rb") as file:
            return file.read(bounded_json.MAX_BYTES + 1)
    if not isinstance(page, (str, bytes)):
        fields.fail(where, "a page of HTML, str or bytes, or a pathlib.Path", page)
    if isinstance(page, str) and _PATH.fullmatch(page):
        raise ValueError(
            f"`{where}` must be a page, and {page!r} is a path: give `pathlib.Path({page!r})`."
        )
    return page


def _is_undeclared_utf_8(page):
    """Whether libxml2 would take bytes for Latin-1, since they do not say that they are UTF-8."""
    if _DECLARED.search(page):
        return False
    try:
        page.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _tree(page, where):
    page = _content(page, where)
    head = page[:1024] if isinstance(page, str) else page[:1024].lstrip(_BEFORE)
    shown = head if isinstance(head, str) else head.decode("utf-8", "replace")
    for start, kind in _OTHER_STARTS.items():
        is_text = start in _OTHER_TEXTS
        start = start.decode("latin-1") if isinstance(head, str) else start
        if head.startswith(start) and (is_text or _NO_TEXT.search(shown)):
            raise ValueError(
                f"`{where}` must be a page of HTML, and is {kind}. Give the page, or its text."
            )
    if isinstance(page, str):
        page = page.encode("utf-8", "replace")
        parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    else:
        encoding = "utf-8" if _is_undeclared_utf_8(page) else None
        parser = html.HTMLParser(encoding=encoding, remove_comments=True, remove_pis=True)
    if problem := bounded_json.problem_of_size(len(page)):
        raise ValueError(f"`{where}` is {problem}.")
    if not page.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        page = page.replace(b"\0", b"")
    root = None
    try:
        if page.strip():
            root = html.document_fromstring(page, parser=parser)
    except etree.ParserError:
        pass  # A page of comments, for example; or one too deep, which the log reports.
    except (etree.LxmlError, AssertionError) as error:
        raise ValueError(f"`{where}` cannot be read as HTML: {error}") from None
    if any("depth" in entry.message.lower() for entry in parser.error_log):
        raise ValueError(f"`{where}` is nested deeper than {MAX_DEPTH} levels.")
    return root


class _Frame:
    """An element being read, with the block that stands for it."""

    def __init__(self, tag, kind=None, container=None):
        self.tag = tag
        self.kind = kind  # Of the text directly in it; None for that of the frame above.
        self.container = container  # The kind of the block that contains its content.
        self.block = None
        self.grid = Grid() if container == "table" else None
        self.place = None  # For a cell: its grid, rows and columns.


class _Page:
    """Reads elements one after the other and makes blocks of the text between them."""

    def __init__(self, builder, where, parent):
        self.builder = builder
        self.where = where
        self.number = builder.add_text("", where)
        self.frames = [_Frame("page", "paragraph")]
        self.frames[0].block = parent
        self.lines, self.length = [], 0  # The text of the page so far.
        self.parts, self.part_length = [], 0  # The text of the block that is being read.
        self.anchors, self.open_anchors = [], []
        self.targets, self.waiting = {}, []  # Blocks by id; ids whose block is still to come.
        self.links = []
        self.headings = []  # (level, block) of the current headings.
        self.num_pre = 0  # Enclosing elements that preserve white space.

    def read(self, root):
        depth = 0
        walker = etree.iterwalk(root, events=("start", "end")) if root is not None else ()
        for event, element in walker:
            depth += 1 if event == "start" else -1
            if depth > MAX_DEPTH:
                raise ValueError(f"`{self.where}` is nested deeper than {MAX_DEPTH} levels.")
            is_skipped = element.tag in _SKIPPED or _is_unseen(element)
            if event == "start":
                if is_skipped:
                    walker.skip_subtree()
                else:
                    self._open(element)
            else:
                if not is_skipped:
                    self._close(element)
                self._add_text(element.tail)
        self._flush()
        self.builder.replace_text(self.number, "".join(self.lines))
        self._connect()

    @property
    def frame(self):
        return self.frames[-1]

    def _open(self, element):
        tag = element.tag
        if _is_block(tag):
            self._break(tag)
        if name := element.get("id") or (tag == "a" and element.get("name")):
            self.waiting.append(name)
        if tag in _CONTAINERS:
            self.frames.append(_Frame(tag, "paragraph", _CONTAINERS[tag]))
        elif tag in _WHOLE_KINDS:
            self.frames.append(_Frame(tag, _WHOLE_KINDS[tag]))
        elif tag in _TEXT_KINDS and not self._is_whole():
            self.frames.append(_Frame(tag, _TEXT_KINDS[tag]))
        if tag == "tr" and (grid := self._grid()):
            grid.next_row()
        if tag in ("td", "th") and (grid := self._grid()):
            self.frame.place = (grid, *grid.place(element))
        if tag == "a":
            target = element.get("href") or ""
            target = target[1:] if target.startswith("#") else None
            self.open_anchors.append((target, self.part_length))
        self.num_pre += tag == "pre"
        alt = element.get("alt") if tag == "img" else None
        self._add_text(f" {alt} " if alt else element.text)

    def _close(self, element):
        tag = element.tag
        if tag == "a":
            self.anchors.append((*self.open_anchors.pop(), self.part_length))
        if _is_block(tag):
            self._break(tag)
        self.num_pre -= tag == "pre"
        if self.frame.tag == tag and len(self.frames) > 1:
            self.frames.pop()

    def _break(self, tag):
        """Ends the block, or only the line within a block that contains all of its text."""
        ends_line = tag not in _CONTAINERS and tag not in _WHOLE_KINDS and self._is_whole()
        if tag == "br" or ends_line:
            self._add_text(" ")
        else:
            self._flush()

    def _is_whole(self):
        return self.frame.tag in _WHOLE_KINDS

    def _grid(self):
        grids = [frame.grid for frame in self.frames if frame.grid]
        return grids[-1] if grids else None

    def _add_text(self, text):
        if not text:
            return
        if self.num_pre:
            text = text.replace("\r\n", "\n")
            text = text if self.parts else text.lstrip("\n")
        else:
            text = _SPACES.sub(" ", text)
            if not self.parts or self.parts[-1].endswith((" ", "\n")):
                text = text.removeprefix(" ")
        if text:
            self.parts.append(text)
            self.part_length += len(text)

    def _flush(self):
        """Makes a block of the text collected so far."""
        text = "".join(self.parts).rstrip(" \n")
        anchors, self.anchors = self.anchors, []
        anchors += [(target, start, self.part_length) for target, start in self.open_anchors]
        self.open_anchors = [(target, 0) for target, _ in self.open_anchors]
        self.parts, self.part_length = [], 0
        if not text:
            return
        start = self.length + bool(self.lines)
        self.lines += ["\n"] * bool(self.lines) + [text]
        self.length = start + len(text)
        frame = self.frame
        is_own = frame.tag in _WHOLE_KINDS and frame.block is None
        kind = frame.kind if is_own or frame.tag not in _WHOLE_KINDS else "paragraph"
        parent = self._parent(is_own)
        block = self.builder.add(kind, self.number, start, self.length, parent)
        if is_own:
            frame.block = block
            self._place(frame, block)
        self._put_under_heading(frame, block)
        self.targets.update((name, block) for name in self.waiting if name not in self.targets)
        self.waiting = []
        for target, first, last in anchors:
            last = min(last, len(text))
            if first < last:
                self.links.append((target, block, start + first, start + last))

    def _parent(self, is_own):
        """The block of the innermost enclosing element; blocks of containers are created here."""
        around = self.frames[:-1] if is_own else self.frames
        parent = -1
        for frame in around:
            if frame.container and frame.block is None:
                frame.block = self.builder.add(frame.container, parent=parent)
            parent = parent if frame.block is None else frame.block
        return parent

    def _place(self, frame, block):
        """Records a cell's position in its table."""
        if frame.place:
            grid, rows, columns = frame.place
            if grid.number is None:
                grid.number = self.builder.new_table()
            cell = Cell(grid.number, block, rows, columns, frame.tag == "th")
            self.builder.cells.append(cell)

    def _put_under_heading(self, frame, block):
        level = _HEADINGS.get(frame.tag, 9)
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        if self.headings:
            self.builder.connect("under", block, self.headings[-1][1])
        if level < 9:
            self.headings.append((level, block))

    def _connect(self):
        """Adds links within the page, once all targets are known."""
        for target, block, start, end in self.links:
            if self.targets.get(target, block) != block:  # No block links to itself.
                self.builder.connect("link", block, self.targets[target])
                mention = Mention(self.number, start, end, self.targets[target])
                self.builder.mention("mentions", mention)


def _is_block(tag):
    return any(tag in tags for tags in (_BREAKS, _WHOLE_KINDS, _TEXT_KINDS, _CONTAINERS))
