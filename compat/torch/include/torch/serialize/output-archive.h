// torch::serialize::OutputArchive.
#pragma once
#include <torch/serialize/archive.h>
