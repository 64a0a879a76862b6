// For libraries that declare operators in their own YAML: what structured kernels derive from, and
// what generated kernels call.
#pragma once
#include "lamella/kernels/generated_kernels.h"
#include "lamella/kernels/meta_base.h"
