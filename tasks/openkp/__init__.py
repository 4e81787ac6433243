"""OpenKP: the key phrases of web pages, with how the pages look."""
