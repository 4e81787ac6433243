"""What `etcmodel fit` is made of: parts of a data set, and its programs one after the other."""
