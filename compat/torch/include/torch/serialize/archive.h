// torch::serialize::OutputArchive and InputArchive.
#pragma once
#include <torch/serialize.h>
