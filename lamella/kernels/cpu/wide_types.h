// Lists of element types that include uint64, for tables of pointwise loops and reductions. Loops
// of int64 are used for uint16 and uint32 where a table has none of their own (pointwise.cpp,
// reduce.cpp), since int64 holds all their values. No other type holds those of uint64.
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
