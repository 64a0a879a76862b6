// operator<< of tensors.
#pragma once
#include <ATen/ATen.h>
