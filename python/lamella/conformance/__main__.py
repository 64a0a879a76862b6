"""python -m lamella.conformance: the same command as `lamella backend-check`."""

import argparse
import sys

from lamella.conformance._command import add_arguments, run

parser = argparse.ArgumentParser(prog="python -m lamella.conformance")
add_arguments(parser)
sys.exit(run(parser.parse_args()))
