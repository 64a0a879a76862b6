// Includes and macros for pointwise operators whose kernels are handwritten (`pointwise: own`).
#pragma once
#include "lamella/api/functions.h"
#include "lamella/kernels/tensor_iterator.h"
#include "lamella/native_functions.h"
#include "lamella/structured_kernels.h"

// LAMELLA_META_FUNC and LAMELLA_IMPL_FUNC for use in namespace lamella.
#define LAMELLA_META_OF(name) void meta::structured_##name::meta
#define LAMELLA_META_OF2(name, overload) void meta::structured_##name##_##overload::meta
#define LAMELLA_IMPL_OF(name) void native::structured_##name::impl
