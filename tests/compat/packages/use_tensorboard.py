# packages: tensorboard==2.21.0, protobuf==7.36.2, absl-py==2.5.1, pillow==13.0.0
"""TensorBoard's files, written by torch.utils.tensorboard and read by the package."""

import glob
import os
import tempfile

import numpy as np
import torch
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(0)
folder = tempfile.mkdtemp()
with SummaryWriter(folder, purge_step=1) as writer:
    for i in range(3):
        writer.add_scalar("loss/train", torch.tensor(1.5 * i), i, walltime=float(i))
    writer.add_scalars("both", {"x": 1.0, "y": torch.ones(1)}, 2)
    writer.add_histogram("weights", torch.linspace(-2, 3, 50), 1)
    writer.add_histogram("bins", np.arange(30.0), 1, bins=7, max_bins=3)
    writer.add_histogram("zeros", torch.zeros(4), 1, bins="auto")
    writer.add_image("image", torch.rand(3, 5, 6))
    writer.add_image("gray", torch.arange(30).view(5, 6).to(torch.uint8), dataformats="HW")
    writer.add_images("images", torch.rand(10, 1, 5, 6), 3)
    writer.add_text("text", "some words", 4)
    writer.add_hparams({"lr": 0.1, "kind": "a"}, {"accuracy": 0.5}, run_name="run")
    writer.flush()
    print(writer.get_logdir() == folder)
for path in sorted(glob.glob(f"{folder}/**/events*", recursive=True)):
    print(os.path.relpath(os.path.dirname(path), folder))
    for event in LegacyEventFileLoader(path).Load():
        for value in event.summary.value:
            plugin = value.metadata.plugin_data.plugin_name
            kind = value.WhichOneof("value") if plugin != "hparams" else plugin
            print(event.step, value.tag, kind, plugin)
            if kind == "simple_value":
                print(value.simple_value, event.wall_time if event.wall_time < 9 else "")
            elif kind == "histo":
                print(value.histo)
            elif kind == "image":
                image = value.image
                print(image.height, image.width, image.encoded_image_string[:4])
