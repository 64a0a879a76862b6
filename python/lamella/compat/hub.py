"""torch.hub: nothing is downloaded, and no code of others is run."""

from __future__ import annotations

import os
from typing import Any

_folder: str | None = None


def get_dir() -> str:
    """The folder that set_dir() named, else hub in PyTorch's cache folder."""
    if _folder is not None:
        return _folder
    home = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    home = os.environ.get("TORCH_HOME", os.path.join(home, "torch"))
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Names the folder."""
    global _folder
    _folder = os.path.expanduser(d)


def _refuse(what: str) -> RuntimeError:
    return RuntimeError(
        f"{what}: Lamella downloads nothing; fetch the file and use torch.load(), load_state_dict()"
    )


def load(*args: Any, **kwargs: Any) -> Any:
    """RuntimeError: nothing is downloaded."""
    raise _refuse("torch.hub.load")


def list(*args: Any, **kwargs: Any) -> Any:  # noqa: A001
    """RuntimeError: nothing is downloaded."""
    raise _refuse("torch.hub.list")


def help(*args: Any, **kwargs: Any) -> Any:  # noqa: A001
    """RuntimeError: nothing is downloaded."""
    raise _refuse("torch.hub.help")


def download_url_to_file(url: str, dst: str, *args: Any, **kwargs: Any) -> None:
    """RuntimeError: nothing is downloaded."""
    raise _refuse("torch.hub.download_url_to_file")


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """The file that is in the folder under the address's last part; RuntimeError if it is not."""
    from lamella.compat import serialization

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, kwargs.get("file_name") or os.path.basename(url))
    if not os.path.exists(path):
        raise _refuse("torch.hub.load_state_dict_from_url")
    return serialization.load(path, map_location=map_location)
