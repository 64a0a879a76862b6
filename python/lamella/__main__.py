"""python -m lamella: the command `lamella`."""

import sys

from lamella._cli import main

sys.exit(main())
