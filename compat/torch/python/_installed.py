"""Importing this module puts PyTorch's module names in place: the beginning of another process."""

import lamella.compat

lamella.compat.install()
