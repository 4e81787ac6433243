"""Invented web pages in OpenKP's layout, easy enough for a small model.

A page has a menu, headings, paragraphs and a footer, each an element with its place, size and font.
Two or three things have a heading that names them, in large or in bold type; they are its key
phrases. Paragraphs name other things as often, and links look as short as headings, so that neither
a count nor a length tells what the page is about: the looks do.
"""

import json

from etcmodel.tools.demos import made_up

__all__ = ["make_examples", "texts"]

_ADJECTIVES = """
    Amber Ancient Autumn Brass Bright Broken Copper Coral Curved Double Eastern Electric Folding
    Frozen Garden Gentle Glass Golden Granite Hidden Hollow Humble Inland Ivory Jade Lemon Linen
    Little Lunar Maple Marble Mellow Northern Olive Painted Paper Pearl Quiet Rapid Rolling
    Royal Rustic Salted Scarlet Silent Silver Simple Slender Smoked Solar Spiral Stone Striped
    Summer Velvet Violet Walnut Western Wild Winter Wooden Woven
"""
_NOUNS = """
    Anchor Apron Barrel Basket Bell Bench Bicycle Blanket Boat Bridge Broom Bucket Button Cabin
    Candle Canoe Carpet Chair Chest Clock Cradle Cup Curtain Desk Drum Fence Fiddle Flute
    Fountain Gate Glove Hammer Harp Hat Jar Kettle Kite Knife Ladder Lamp Lantern Loom Mirror
    Needle Oven Pillow Plough Pot Quilt Rake Ring Rope Saddle Sail Scarf Shelf Sledge Spoon
    Stove Table Tent Wagon Wheel Whistle Window
"""
_MENU = "Home About News Shop Contact Search Login Help Basket Offers Events Archive"
ADJECTIVES, NOUNS, MENU = (words.split() for words in (_ADJECTIVES, _NOUNS, _MENU))

HEADINGS = ("{}", "The {}", "All about the {}", "{} for beginners", "Why the {} matters")
LINKS = ("{}", "More on the {}", "See also {}", "{} for sale")
SENTENCES = (
    "The {} is older than the {} .",
    "Many people like a {} or a {} at home .",
    "You can mend a {} with parts of a {} .",
    "We sell no {} but we know a maker of each {} .",
    "A {} costs less than a {} these days .",
)
FOOTERS = ("Copyright of the village society", "Printed on gray paper", "Last changed in May")

_PAGE_WIDTH = 1200.0
_TEXT_SIZES = (10.0, 11.0, 12.0, 13.0)
_HEADING_SIZES = (18.0, 20.0, 24.0, 32.0)


def _make_example(rng, split, index):
    """A dict of `url`, `text`, `VDOM` (a JSON list as str) and `KeyPhrases`, as in OpenKP."""
    return _make_page(rng, f"http://example.org/{split}/{index}")


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """The texts that a vocabulary must cover."""
    return [example["text"]]


def _make_page(rng, url):
    things = _draw_things(rng, 8)
    num_topics = rng.randint(2, 3)
    topics, others = things[:num_topics], things[num_topics:]
    body = [("heading", rng.choice(HEADINGS).format(topic)) for topic in topics]
    body += [("link", rng.choice(LINKS).format(other)) for other in others[:2]]
    body += [("text", _sentence(rng, things)) for _ in range(rng.randint(2, 4))]
    rng.shuffle(body)
    menu = [("link", word) for word in rng.sample(MENU, rng.randint(2, 4))]
    elements = [*menu, *body, ("text", rng.choice(FOOTERS))]
    text = " ".join(content for _, content in elements)
    phrases = [topic.lower().split() for topic in topics]
    rng.shuffle(phrases)
    vdom = json.dumps(_lay_out(rng, elements))
    return {"url": url, "text": text, "VDOM": vdom, "KeyPhrases": phrases}


def _draw_things(rng, count):
    """Names of things, of one word or two, that share no word."""
    adjectives, nouns = rng.sample(ADJECTIVES, count), rng.sample(NOUNS, count)
    pairs = zip(adjectives, nouns, strict=True)
    return [noun if rng.random() < 0.25 else f"{adjective} {noun}" for adjective, noun in pairs]


def _sentence(rng, things):
    return rng.choice(SENTENCES).format(*(thing.lower() for thing in rng.sample(things, 2)))


def _lay_out(rng, elements):
    """The elements as OpenKP has them, one below the other."""
    vdom, y, begin = [], 20.0, 0
    for kind, content in elements:
        end = begin + len(content.split(" "))
        vdom.append(
            {
                "Id": 0,
                "text": content,
                "feature": _looks(rng, kind, y),
                "start_idx": begin,
                "end_idx": end,
            }
        )
        y, begin = y + rng.randint(20, 120), end
    return vdom


def _looks(rng, kind, y):
    """The 20 numbers of an element and of its parent: see `etcmodel.tasks.openkp.vdom`."""
    is_heading = kind == "heading"
    # A heading is marked up as one, or is only set in bold.
    is_marked = is_heading and rng.random() < 0.7
    size = rng.choice(_HEADING_SIZES if is_marked else _TEXT_SIZES)
    x, width = float(rng.randint(0, 300)), float(rng.randint(60, 600))
    is_block = float(kind != "link")
    own = [x, width, y, size + 8, is_block, 1 - is_block, float(is_marked), 1.0, size]
    own.append(float(is_heading))
    parent = [0.0, _PAGE_WIDTH, max(0.0, y - 20), 600.0, 1.0, 0.0, float(is_marked), 0.0, 12.0, 0.0]
    return own + parent
