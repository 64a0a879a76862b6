"""lamella completion: prints the shell code that completes the command's words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "completion",
        help="print what completes this command's words in bash and zsh",
        description="Prints a script for bash and zsh; add this to ~/.bashrc or ~/.zshrc: "
        'eval "$(lamella completion)"',
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    cases = [
        f"    {pattern}) words='{' '.join(words)}' ;;"
        for pattern, words in reversed(list(_words(options.parser, [])))
    ]
    print(
        '[ -z "$ZSH_VERSION" ] || { autoload -U +X bashcompinit && bashcompinit; }\n'
        "_lamella() {\n"
        "  local words\n"
        '  case "${COMP_WORDS[*]:1:COMP_CWORD-1} " in\n' + "\n".join(cases) + "\n"
        "  esac\n"
        '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))\n'
        "}\n"
        "complete -o default -F _lamella lamella"
    )
    return 0


def _words(parser: argparse.ArgumentParser, path: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The pattern of the words before, and those that may follow, of a parser and those inside."""
    words: list[str] = []
    inner: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:
        words += action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            words += action.choices
            inner += action.choices.items()
    pattern = "".join(f"'{word} '" for word in path) + "*"
    yield pattern, words
    for name, other in inner:
        yield from _words(other, [*path, name])
