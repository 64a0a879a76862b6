"""torch.utils.collect_env."""

from __future__ import annotations

import platform

import lamella


def get_pretty_env_info() -> str:
    """The versions of Lamella, Python and the system."""
    return (
        f"Lamella {lamella.__version__}\nPython {platform.python_version()}\n{platform.platform()}"
    )


def main() -> None:
    """Prints them."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
