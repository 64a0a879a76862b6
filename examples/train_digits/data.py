"""scikit-learn's handwritten digits: 1797 images of 8 x 8, in training and test sets."""

import pathlib
import struct

import numpy
from sklearn.datasets import load_digits

TEST = 360
MAGIC = b"DIGITS1\n"


def arrays():
    """(images [1797, 64] uint8 from 0 to 16, labels [1797] uint8), in a fixed random order."""
    found = load_digits()
    order = numpy.random.RandomState(0).permutation(len(found.target))
    return found.data[order].astype(numpy.uint8), found.target[order].astype(numpy.uint8)


def write(path):
    """Writes the file for the C++ program: a marker, the number of images, images and labels as
    bytes."""
    images, labels = arrays()
    with open(path, "wb") as file:
        file.write(MAGIC + struct.pack("<I", len(labels)))
        file.write(images.tobytes() + labels.tobytes())


if __name__ == "__main__":
    import sys

    write(pathlib.Path(sys.argv[1]))
