"""Importing this module installs PyTorch's module names; child processes begin with it."""

import lamella.compat

lamella.compat.install()
