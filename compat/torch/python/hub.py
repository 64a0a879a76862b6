"""torch.hub: reads cached files only; it neither downloads files nor runs code from
repositories."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import urlparse as urlparse

try:
    from tqdm.auto import tqdm as tqdm  # type: ignore[import-untyped]
except ImportError:

    def tqdm(iterable: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The iterable without a progress bar, because the package tqdm is not installed."""
        return iterable


# The prefix of the SHA-256 that a file's name contains.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

_folder: str | None = None


def _get_torch_home() -> str:
    """PyTorch's cache folder, which environment variables may set."""
    home = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(home, "torch")))


def get_dir() -> str:
    """The folder set by set_dir(), else hub in PyTorch's cache folder."""
    return _folder if _folder is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder."""
    global _folder
    _folder = os.path.expanduser(d)


def _refuse(what: str) -> RuntimeError:
    return RuntimeError(
        f"{what}: Lamella downloads nothing; fetch the file and use torch.load(), load_state_dict()"
    )


def load(*args: Any, **kwargs: Any) -> Any:
    """RuntimeError: downloads are not supported."""
    raise _refuse("torch.hub.load")


def list(*args: Any, **kwargs: Any) -> Any:  # noqa: A001
    """RuntimeError: downloads are not supported."""
    raise _refuse("torch.hub.list")


def help(*args: Any, **kwargs: Any) -> Any:  # noqa: A001
    """RuntimeError: downloads are not supported."""
    raise _refuse("torch.hub.help")


def download_url_to_file(url: str, dst: str, *args: Any, **kwargs: Any) -> None:
    """RuntimeError: downloads are not supported."""
    raise _refuse("torch.hub.download_url_to_file")


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Loads the cached file with the URL's file name; RuntimeError if the folder does not have
    it."""
    from lamella.compat import serialization

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, kwargs.get("file_name") or os.path.basename(url))
    if not os.path.exists(path):
        raise _refuse("torch.hub.load_state_dict_from_url")
    return serialization.load(path, map_location=map_location)
