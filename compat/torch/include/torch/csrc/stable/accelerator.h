// Streams and guards of torch::stable; there is no accelerator.
#pragma once
#include <torch/csrc/stable/device.h>
