// For libraries that declare operators in their own YAML: what structured kernels derive from, and
// what generated kernels call.
#pragma once
#include "lamella/api/generated_kernels.h"
#include "lamella/api/meta_base.h"
#include "lamella/core/device_guard.h"
