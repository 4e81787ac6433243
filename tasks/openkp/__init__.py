"""OpenKP: key phrase extraction from web pages, using their visual features."""
