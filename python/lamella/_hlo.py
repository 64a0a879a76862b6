"""Stands in for the extension module of this name, which Python prefers, in a build without it."""

raise ImportError(
    "lamella: this build has the core alone, without programs (lamella.hlo, lamella.compile);"
    " `make build` builds all of Lamella"
)
