"""Tags of words: named entities, parts of speech and the like."""
