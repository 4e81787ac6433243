"""Files of records."""

import tensorflow as tf

from etcmodel import preprocessing


def write(path, *rows):
    """Writes a TFRecord file of dicts of lists, the features by name; returns its path, a str."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for features in rows:
            writer.write(preprocessing.to_tf_example(features).SerializeToString())
    return str(path)
