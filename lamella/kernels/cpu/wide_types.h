// Lists of element types that include uint64, for tables of pointwise loops and reductions. Loops
// of uint16 and uint32 are those of int64 where a table has none of their own (pointwise.cpp,
// reduce.cpp): it holds all their numbers. No other type does for uint64.
#pragma once
#include "lamella/kernels/cpu/loops.h"

namespace lamella::native {

using WidestUnsigned = Types<uint64_t>;
using WideIntTypes = JoinTypes<IntTypes, WidestUnsigned>;
using WideRealTypes = JoinTypes<RealTypes, WidestUnsigned>;
using WideNumberTypes = JoinTypes<NumberTypes, WidestUnsigned>;
using WideRealBoolTypes = JoinTypes<RealBoolTypes, WidestUnsigned>;
using WideAllTypes = JoinTypes<AllTypes, WidestUnsigned>;

}  // namespace lamella::native
