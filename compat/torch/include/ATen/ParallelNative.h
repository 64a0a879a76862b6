// at::parallel_for, whose threads are Lamella's.
#pragma once
#include <ATen/Parallel.h>
