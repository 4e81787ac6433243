"""Parts of the invented names of buildings and persons."""

__all__ = ["BUILDING", "NAME_PARTS", "PERSON"]

BUILDING, PERSON = "building", "person"

# First and second parts of names. No part is in two lists, or a word of the sentences below.
NAME_PARTS = {
    BUILDING: (
        """Tarn Alder Bracken Cinder Clover Drift Dusk Eider Ember Fallow Fen Frost Gale Gorse Grim
        Hallow Harrow Hazel Heather Heron Ivy Juniper Kestrel Lark Laurel Linden Maple Marten Merrow
        Mist Moss Nettle Osprey Pebble Plover Quarry Quill Raven Reed Rime Rowan Rush Saffron Sedge
        Skylark Sorrel Sparrow Spruce Star Storm Summer Swan Tansy Thistle Thrush Willow""",
        """Hollow Bank Barrow Beck Bend Bluff Brae Brink Brook Burn Chase Cliff Combe Copse Corner
        Cove Crag Crest Croft Cross Dale Dell Dene Edge Fell Field Firth Fold Ford Gate Glade Glen
        Grove Haven Heath Hill Holm Hurst Isle Knoll Ledge Marsh Mead Moor Ness Nook Orchard Pass
        Point Pond Quay Reach Ridge Rise Rock Scar Shore Slope Spring Strand Vale Weir Wold""",
    ),
    PERSON: (
        """Ilse Ada Alma Anders Bela Boris Bruno Carla Celia Clio Dario Dora Edda Elias Emil Falk
        Flora Freya Gerda Greta Gunnar Hanno Hedda Hugo Imre Irma Ivo Jarl Jonas Juno Kaia Klara
        Knut Lars Leif Linnea Magnus Marta Mira Nils Nora Odile Otto Petra Pia Quentin Rafe Rhea
        Selma Soren Thea Tilda Ulla Ursel Vesna Viktor Wanda Wilma Xenia Yara Yorick Zelda Zeno""",
        """Korrin Abelin Arkin Ashby Belling Bexley Brask Calder Corvin Dorne Draxel Dunmore Egmont
        Ellery Elwick Farrow Fenwick Frayne Gadd Garrod Harker Hesk Holt Ibsley Ingram Jardin Jessop
        Joran Kelso Kemble Kestrin Lomax Lorimer Marrick Mostyn Nesbit Norling Orrin Osgood Pascoe
        Pellow Pryor Quist Radley Rask Renshaw Selwyn Stavin Stroud Tarrow Trask Ulven Upton Varga
        Vickers Voss Wardle Wexley Winslow Yardin Yelland Zander Zoller""",
    ),
}
NAME_PARTS = {kind: [part.split() for part in parts] for kind, parts in NAME_PARTS.items()}
