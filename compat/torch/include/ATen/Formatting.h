// operator<< for tensors.
#pragma once
#include <ATen/ATen.h>
