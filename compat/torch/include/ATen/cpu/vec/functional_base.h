// at::vec::map, at::vec::reduce_all and similar functions.
#pragma once
#include <ATen/cpu/vec/functional.h>
