// at::parallel_for, on Lamella's thread pool.
#pragma once
#include <ATen/Parallel.h>
