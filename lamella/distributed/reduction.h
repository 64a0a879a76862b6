// Which datatype and which operation of MPI reduce tensors of a dtype.
#pragma once
#include <mpi.h>

#include <string_view>

#include "lamella/lamella.h"

namespace lamella::distributed {

// How the values of all ranks are combined. A mean is a sum that is divided afterwards.
enum class Reduction { Sum, Product, Min, Max, Mean };

// "sum", "product", "min", "max" or "mean"; the error begins with the operator's name.
Reduction reduction_of(std::string_view word, const char* op_name);
const char* word_of(Reduction reduction);
// Throws where values of the dtype have no such reduction: the order of complex numbers, the mean
// of integers.
void check_reduction(Reduction reduction, ScalarType dtype, const char* op_name);

// The datatype for moving elements: all dtypes of one width share one.
MPI_Datatype moved_type(ScalarType dtype);

struct ReducedType {
  MPI_Datatype datatype;
  MPI_Op operation;
};
// MPI knows no bfloat16, and its minimum drops NaN where one operand is NaN and the other is not;
// for such dtypes the operation is one of Lamella's own, made at its first use.
ReducedType reduced_type(Reduction reduction, ScalarType dtype);

// Turns sums into means: divides `count` elements of a floating-point or complex dtype.
void divide(void* values, int64_t count, ScalarType dtype, int divisor);

}  // namespace lamella::distributed
