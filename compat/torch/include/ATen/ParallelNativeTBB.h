// at::parallel_for: the backend is Lamella's own, whatever is asked for.
#pragma once
#include <ATen/Parallel.h>
