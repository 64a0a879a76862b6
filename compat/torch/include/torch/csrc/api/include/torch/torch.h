// All of torch:: that Lamella has.
#pragma once
#include <torch/torch.h>
