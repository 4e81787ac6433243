"""Pages: blocks, their nesting, tables and links."""

import bz2
import gzip
import lzma

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.text import documents, readers
from etcmodel.text.readers import html_pages
from etcmodel.text.sentence_splitting import sentence_splitter

SPLIT = sentence_splitter("simple")


def read(page):
    return readers.read({"html": page}, SPLIT)


def blocks_of(page):
    document = read(page)
    return [(x.kind, document.block_text(x), x.parent) for x in document.blocks]


def test_headings_and_paragraphs():
    page = """<html><head><title>T &amp; U</title><style>p {}</style></head>
    <body><h1>One</h1><p>A <b>bo</b>ld
      word,<br>and more.</p>loose<div>x<div>y</div>z</div><script>no</script></body>"""
    assert blocks_of(page) == [
        ("title", "T & U", -1),
        ("heading", "One", -1),
        ("paragraph", "A bold word, and more.", -1),
        ("paragraph", "loose", -1),
        ("paragraph", "x", -1),
        ("paragraph", "y", -1),
        ("paragraph", "z", -1),
    ]
    assert read(page).texts == ("T & U\nOne\nA bold word, and more.\nloose\nx\ny\nz",)


def test_lists_within_lists():
    page = "<ul><li>a<ol><li>b<li>c</ol>d</li><li><p>e</p><p>f</p></li></ul>"
    assert blocks_of(page) == [
        ("list", "", -1),
        ("list_item", "a", 0),
        ("list", "", 1),
        ("list_item", "b", 2),
        ("list_item", "c", 2),
        ("paragraph", "d", 1),
        ("list_item", "e f", 0),
    ]


def test_containers_hold_their_blocks():
    page = "<article><section><h2>H</h2><p>p</p></section><nav></nav><aside>s</aside></article>"
    assert blocks_of(page) == [
        ("article", "", -1),
        ("section", "", 0),
        ("heading", "H", 1),
        ("paragraph", "p", 1),
        ("aside", "", 0),
        ("paragraph", "s", 4),
    ]


def test_blocks_are_under_the_heading_above_them():
    document = read("<p>0</p><h1>1</h1><p>2</p><h3>3</h3><p>4</p><h2>5</h2><h1>6</h1><p>7")
    assert document.edges == {"under": ((2, 1), (3, 1), (4, 3), (5, 1), (7, 6))}


def test_tables_with_cells_that_cover_several_rows_and_columns():
    page = """<table><caption>Cap</caption>
      <tr><th>h0<th colspan=2>h1
      <tr><td rowspan=2>a<td>b<td>c
      <tr><td>d<td></table>"""
    document = read(page)
    assert blocks_of(page)[:3] == [("table", "", -1), ("caption", "Cap", 0), ("header", "h0", 0)]
    found = {
        document.block_text(document.blocks[cell.block]): (cell.rows, cell.columns, cell.is_header)
        for cell in document.cells
    }
    assert found == {
        "h0": ((0, 0), (0, 0), True),
        "h1": ((0, 0), (1, 2), True),
        "a": ((1, 2), (0, 0), False),
        "b": ((1, 1), (1, 1), False),
        "c": ((1, 1), (2, 2), False),
        "d": ((2, 2), (1, 1), False),
    }


def test_a_cell_that_covers_0_rows_covers_all_that_are_left_of_its_group():
    document = read(
        "<table><tbody><tr><td>a<tr><td rowspan=0>b<td>c<tr><td colspan=0>d<tr><td>e</tbody>"
        "<tbody><tr><td rowspan=00>f<tr><td>g</table><table><td rowspan=0>h</table>"
    )
    found = {
        document.block_text(document.blocks[cell.block]): (cell.rows, cell.columns)
        for cell in document.cells
    }
    assert found == {
        "a": ((0, 0), (0, 0)),
        "b": ((1, 3), (0, 0)),
        "c": ((1, 1), (1, 1)),
        "d": ((2, 2), (1, 1)),
        "e": ((3, 3), (1, 1)),
        "f": ((4, 5), (0, 0)),
        "g": ((5, 5), (1, 1)),
        "h": ((0, 0), (0, 0)),
    }


def test_a_table_within_a_cell_is_one_of_its_own():
    document = read("<table><tr><td>a<table><tr><td>b</table><td>c</table>")
    cells = {document.block_text(document.blocks[x.block]): x for x in document.cells}
    assert cells["a"].table == cells["c"].table != cells["b"].table
    assert cells["c"].columns == (1, 1)


def test_links_lead_to_the_block_of_their_target():
    page = '<p>See  <a href="#s">the <b>second</b></a> <a href="http://x">x</a>.</p><h2 id=s>S</h2>'
    document = read(page)
    assert document.edges["link"] == ((0, 1),)
    (mention,) = document.mentions["mentions"]
    assert mention == documents.Mention(0, 4, 14, 1)
    assert document.texts[0][4:14] == "the second"
    around = read("<a href='#s'>One<p>Two</p></a><p id=s>S")
    spans = [around.texts[0][x.start : x.end] for x in around.mentions["mentions"]]
    assert spans == ["One", "Two"] and around.edges["link"] == ((0, 2), (1, 2))
    twice = read('<p>a <a href="#b">b</a> <a href="#b">c</a><p id=b>b')
    assert twice.edges["link"] == ((0, 1),) and len(twice.mentions["mentions"]) == 2
    assert "link" not in read('<a href="#nowhere">x</a>').edges


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("", []),
        ("  \n", []),
        ("<!-- only this -->", []),
        ("plain", ["plain"]),
        ("<td>x</td></p></div>y", ["x", "y"]),
        ("<p>a\0b\ud800", ["ab?"]),
        (b"<meta charset=iso-8859-1><p>caf\xe9", ["café"]),
        ("<p>café</p>".encode("utf-16"), ["café"]),
        ("<p>café 你好</p>".encode(), ["café 你好"]),  # Nothing says that it is UTF-8.
        ("\ufeff<p>café</p>".encode(), ["café"]),
        ("<script charset=x></script><p>café</p>".encode(), ["café"]),
        (b"<p>caf\xe9</p>", ["café"]),  # Nor that this is Latin-1.
        ("<meta charset=iso-8859-1><p>café".encode(), ["cafÃ©"]),  # As a browser takes its word.
        ("<a href='#x'><a href='#y'>z", ["z"]),
    ],
)
def test_malformed_pages_are_mended(page, texts):
    assert [text for _, text, _ in blocks_of(page)] == texts


@pytest.mark.parametrize(
    "page, kind",
    [
        (b"%PDF-1.4\n%\xe2\xe3", "a PDF"),
        ("%PDF-1.4\n%\u00e2\u0083", "a PDF"),
        (gzip.compress(b"<p>a", mtime=0), "a gzip file"),
        (gzip.compress(b"<p>a", mtime=0).decode("latin-1"), "a gzip file"),
        (b"PK\x03\x04\x14\0", "a zip file, as those of Word and of e-books are"),
        (b"\x89PNG\r\n\x1a\n\0", "a PNG picture"),
        (b"\xff\xd8\xff\xe0\0", "a JPEG picture"),
        (b"GIF89a\x01\0", "a GIF picture"),
        (b"\xef\xbb\xbf\n%PDF-1.4\n%\xe2\x83", "a PDF"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "a WebP picture or a sound"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a file of an older Word or Excel"),
        (bz2.compress(b"<p>a"), "a bzip2 file"),
        (lzma.compress(b"<p>a"), "an xz file"),
        (b"II*\0\x08\0\0\0\x0e\0", "a TIFF picture"),
        (b"MM\0*\0\0\0\x08\0\x0e", "a TIFF picture"),
        (b"ID3\x04\0", "a sound"),
        (b"Rar!\x1a\x07\x01\0", "a RAR file"),
        (b"\x7fELF\x02\x01", "a program"),
        (b"{\\rtf1\\ansi\\deff0 Wey}", "a file of RTF"),
        ("{\\rtf1\\ansi\\deff0 Wey}", "a file of RTF"),
        (b"%!PS-Adobe-3.0\n(Wey) show", "a PostScript file"),
    ],
)
def test_files_of_other_kinds_are_no_pages(page, kind, tmp_path):
    with pytest.raises(ValueError, match=f"^`example.html` must be a page of HTML, and is {kind}"):
        blocks_of(page)
    if isinstance(page, bytes):
        (tmp_path / "page.html").write_bytes(page)
        with pytest.raises(ValueError, match=f"is {kind}"):
            blocks_of(tmp_path / "page.html")


def test_a_page_may_tell_of_such_files():
    told = ("GIF89a is a format.", b"%PDF-1.4 explained", "BZh", "MM", b"II. Emma", "ID3")
    for page in (*told, "<p>{\\rtf1}"):
        assert len(blocks_of(page)) == 1
    assert [text for _, text, _ in blocks_of("<p>%PDF-1.4<p>GIF89a")] == ["%PDF-1.4", "GIF89a"]


@pytest.mark.parametrize("page", ["<div>" * 10_000, "<b>" * 240 + "x", "<ul><li>" * 150 + "x"])
def test_pages_that_are_nested_too_deep_are_refused(page):
    with pytest.raises(ValueError, match="^`example.html` is nested deeper than 200 levels.$"):
        read(page)


def test_pages_that_are_too_long_are_refused(monkeypatch):
    monkeypatch.setattr("etcmodel.bounded_json.MAX_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="^`example.html` is longer than"):
        read("x" * (1 << 20) + "y")


def test_hostile_tables_are_read():
    """Who went over all places that their cells say they cover would never come to an end."""
    for rows in (65534, 0):
        row = "<tr>" + f"<td colspan=999999 rowspan={rows}>x" * 3
        document = read("<table>" + row * 3000 + "</table>")
        assert len(document.cells) == 9000


TAGS = ["p", "div", "ul", "li", "table", "tr", "td", "th", "h1", "h2", "a", "br", "b"]
PAGES = st.lists(
    st.one_of(
        st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS]),
        st.sampled_from(["<a href='#q'>", "<h2 id=q>", "<td colspan=2 rowspan=3>", " ", "&lt;"]),
        st.text("ab c\n", max_size=4),
    ),
    max_size=25,
)


@settings(max_examples=200)
@given(PAGES)
def test_the_blocks_of_any_page_are_its_lines(parts):
    """No text is lost. `Document` checks parents, edges and places."""
    document = read("".join(parts))
    texts = [document.block_text(block) for block in document.blocks if block.text >= 0]
    assert "\n".join(texts) == document.texts[0]
    letters = "".join(part for part in parts if not part.startswith(("<", "&")))
    shown = document.texts[0].replace("<", "").replace("\n", "").replace(" ", "")
    assert sorted(shown) == sorted("".join(letters.split()))


def test_a_browser_does_not_show_what_is_hidden():
    page = """<p>a<span style="color: red; display :none">x</span>b</p><p hidden>y</p>
    <p style="VISIBILITY:hidden">z</p><p style="display:block">c</p>"""
    assert blocks_of(page) == [("paragraph", "ab", -1), ("paragraph", "c", -1)]


def test_preformatted_text_keeps_its_lines_and_columns():
    page = "<p>a\n b</p><pre>\nif x:\n    <b>y</b>  = 1\r\n\n</pre><p> c</p>"
    assert blocks_of(page) == [
        ("paragraph", "a b", -1),
        ("paragraph", "if x:\n    y  = 1", -1),
        ("paragraph", "c", -1),
    ]


def test_a_pictures_text_is_words_of_its_own():
    assert blocks_of('<p>see<img alt="a map">here<img alt=""><img>!</p>') == [
        ("paragraph", "see a map here!", -1)
    ]


def test_a_permalink_leads_nowhere():
    page = '<h2 id="a">A <a href="#a">¶</a></h2><p id="b"><a href="#a">up</a><a href="#b">#</a></p>'
    document = read(page)
    assert document.edges["link"] == ((1, 0),)
    assert [(x.text, x.start, x.end, x.block) for x in document.mentions["mentions"]] == [
        (0, 4, 6, 0)
    ]


SITE = """<html><head><title>T</title></head><body>
<header><h1>Site</h1></header><nav>Home</nav><div role="navigation">More</div>
<ul><li><a href="/a">one</a> <li><a href="/b">two</a></ul>
<div id="content"><article><header><h2>Story</h2></header>
<p>Long words of a <a href="/c">story</a>.</p><aside>Also</aside>
<ul><li>A point with a <a href="/d">link</a> in it.</ul>
<footer>By Anne.</footer></article></div>
<form>Search</form><div aria-hidden="true">Icon</div><footer>Imprint</footer></body></html>"""


@pytest.mark.parametrize("as_main", ["", "article", "div"])
def test_the_main_text_has_no_landmarks_and_no_menus(as_main):
    page = SITE
    if as_main == "article":
        page = page.replace("<article>", "<main>").replace("</article>", "</main>")
    elif as_main:
        page = page.replace('<div id="content">', '<p>Ad.</p><div role="main">')
    builder = documents.Builder(SPLIT, main_only=True)
    html_pages.add_page(builder, page, "page")
    texts = [builder.document("", {}).block_text(x) for x in builder.blocks if x.text >= 0]
    wanted = ["T", "Story", "Long words of a story.", "A point with a link in it.", "By Anne."]
    assert texts == wanted
    assert "Home" in read(page).texts[0] and "two" in read(page).texts[0]


def test_a_page_of_a_file_is_read_and_a_path_as_text_is_refused(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes('<meta charset="latin-1"><p>caf\xe9'.encode("latin-1"))
    assert read(path).texts == ("café",)
    with pytest.raises(
        ValueError, match=r"`example.html` must be a page, and '.*page.html' is a pa"
    ):
        read(str(path))
    with pytest.raises(OSError, match="no_such.html"):
        read(tmp_path / "no_such.html")
