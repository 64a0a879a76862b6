"""torch.utils.tensorboard: event files, written with the package tensorboard."""

from __future__ import annotations

import io
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ImportError as error:
    raise ModuleNotFoundError(
        "torch.utils.tensorboard: expected the package tensorboard to be installed",
        name="tensorboard",
    ) from error


def _array(value: Any) -> Any:
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _histogram(values: Any, bins: Any, max_bins: int | None) -> Any:
    """The histogram of numbers; leading and trailing empty bins are dropped, except one before."""
    values = _array(values).reshape(-1)
    if values.size == 0:
        raise ValueError("add_histogram: expected 'values' to have elements, got none")
    if isinstance(bins, str) and bins == "tensorflow":
        # Bin edges grow by a tenth, on both sides of zero.
        grown = 1e-12 * 1.1 ** np.arange(774)
        bins = np.concatenate([-grown[::-1], [0], grown])
    counts, edges = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        every = len(counts) // max_bins
        counts = np.add.reduceat(counts, np.arange(0, len(counts), every))
        edges = np.append(edges[:-1][::every], edges[-1])
    full = np.flatnonzero(counts)
    if full.size == 0:
        raise ValueError("add_histogram: expected 'bins' to hold some of the values")
    return summary_pb2.HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=edges[full[0] : full[-1] + 2].tolist(),
        bucket=[0, *counts[full[0] : full[-1] + 1].tolist()],
    )


def _picture(image: Any, axes: str) -> Any:
    """An image of (height, width[, channels]) from axes in the given order; several form a grid."""
    image, axes = _array(image), axes.upper()
    if image.ndim != len(axes) or set(axes) - set("NHWC") or len(set(axes)) != len(axes):
        raise ValueError(
            f"add_image: expected 'dataformats' to name the {image.ndim} dimensions, got {axes!r}"
        )
    if "C" not in axes:
        image, axes = image[..., None], f"{axes}C"
    image = image.transpose([axes.index(axis) for axis in "NHWC" if axis in axes])
    if image.ndim == 4:
        count, height, width, channels = image.shape
        across = min(count, 8)
        down = -(-count // across)
        grid = np.zeros((down * height, across * width, channels), image.dtype)
        for i, part in enumerate(image):
            top, left = i // across * height, i % across * width
            grid[top : top + height, left : left + width] = part
        image = grid
    if image.shape[-1] == 1:
        image = image.repeat(3, -1)
    if image.dtype != np.uint8:
        image = (image.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    return image


def _encoded(image: Any) -> Any:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, format="PNG")
    height, width, channels = image.shape
    return summary_pb2.Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue()
    )


class SummaryWriter:
    """Writes a program's measurements into a folder for TensorBoard.

    log_dir: the folder; None creates one in runs/, named by time and host.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if log_dir is None:
            when = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{when}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self._parts: dict[str, SummaryWriter] = {}
        self._file = EventFileWriter(self.log_dir, *self._options)
        if purge_step is not None:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._event(event_pb2.Event(session_log=start), purge_step, None)

    def _event(self, event: Any, step: Any, walltime: float | None) -> None:
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self._file.add_event(event)

    def _add(self, tag: str, step: Any, walltime: float | None, **value: Any) -> None:
        one = summary_pb2.Summary.Value(tag=tag, **value)
        summary = summary_pb2.Summary(value=[one])
        self._event(event_pb2.Event(summary=summary), step, walltime)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Writes one number."""
        value = float(_array(scalar_value).reshape(-1).item())
        self._add(tag, global_step, walltime, simple_value=value)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes numbers that are shown in one chart; each has its own folder."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self._parts:
                self._parts[folder] = SummaryWriter(folder, "", None, *self._options)
            self._parts[folder].add_scalar(main_tag, value, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Writes the distribution of an array's numbers."""
        self._add(tag, global_step, walltime, histo=_histogram(values, bins, max_bins))

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Writes an image of bytes, or of numbers in [0, 1]."""
        image = _encoded(_picture(img_tensor, dataformats))
        self._add(tag, global_step, walltime, image=image)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Writes images as a grid with eight in a row."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Writes a matplotlib figure, or a list of figures, as images."""
        figures = list(figure) if isinstance(figure, Sequence) else [figure]
        drawn = []
        for one in figures:
            one.canvas.draw()
            drawn.append(np.asarray(one.canvas.buffer_rgba()))
            if close:
                import matplotlib.pyplot

                matplotlib.pyplot.close(one)
        if isinstance(figure, Sequence):
            self.add_images(tag, np.stack(drawn), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, drawn[0], global_step, walltime, "HWC")

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Writes a text."""
        plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
        shape = tensor_shape_pb2.TensorShapeProto(
            dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)]
        )
        held = tensor_pb2.TensorProto(
            dtype="DT_STRING", string_val=[text_string.encode("utf8")], tensor_shape=shape
        )
        metadata = summary_pb2.SummaryMetadata(plugin_data=plugin)
        self._add(f"{tag}/text_summary", global_step, walltime, tensor=held, metadata=metadata)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Writes the parameters and results of a run, in a folder of its own."""
        from tensorboard.plugins.hparams import metadata, plugin_data_pb2, summary_v2

        domains = hparam_domain_discrete or {}
        ended = plugin_data_pb2.HParamsPluginData(
            session_end_info=plugin_data_pb2.SessionEndInfo(status="STATUS_SUCCESS")
        )
        settings = {
            name: value if isinstance(value, (bool, str)) else float(_array(value).item())
            for name, value in hparam_dict.items()
        }
        parts = [
            summary_v2.hparams_config_pb(
                [
                    summary_v2.HParam(
                        name, summary_v2.Discrete(domains[name]) if name in domains else None
                    )
                    for name in hparam_dict
                ],
                [summary_v2.Metric(name) for name in metric_dict],
            ),
            summary_v2.hparams_pb(settings, trial_id=run_name or "0"),
            summary_v2._summary_pb(metadata.SESSION_END_INFO_TAG, ended),
        ]
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as run:
            for part in parts:
                run._event(event_pb2.Event(summary=part), global_step, None)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def flush(self) -> None:
        """Flushes the files."""
        for writer in (self, *self._parts.values()):
            writer._file.flush()

    def close(self) -> None:
        """Closes the files."""
        for writer in (*self._parts.values(), self):
            writer._file.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("add_"):
            raise AttributeError(f"'SummaryWriter' object has no attribute '{name}'")

        def absent(*args: Any, **kwargs: Any) -> None:
            raise NotImplementedError(f"SummaryWriter: Lamella has no {name}(); see add_scalar()")

        return absent
