"""WikiHop: questions over several documents, answered by one of the given candidates."""
