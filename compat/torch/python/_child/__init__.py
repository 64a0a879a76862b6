"""The first entry of sys.path in child Python processes: imports of torch give Lamella there
too."""
