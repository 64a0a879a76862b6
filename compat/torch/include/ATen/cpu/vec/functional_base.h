// at::vec::map, at::vec::reduce_all and their kin.
#pragma once
#include <ATen/cpu/vec/functional.h>
