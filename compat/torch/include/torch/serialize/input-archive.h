// torch::serialize::InputArchive.
#pragma once
#include <torch/serialize/archive.h>
