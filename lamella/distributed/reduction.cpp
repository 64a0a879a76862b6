// Operations of MPI for all dtypes: its own where they give what tensors need, else Lamella's.
#include "lamella/distributed/reduction.h"

#include <map>
#include <mutex>

namespace lamella::distributed {
namespace {

constexpr std::string_view kWords[] = {"sum", "product", "min", "max", "mean"};

template <class T>
constexpr bool kIsComplex = std::is_same_v<T, complex<float>> || std::is_same_v<T, complex<double>>;
template <class T>
constexpr bool kIsReal = !kIsComplex<T> && !std::is_integral_v<T>;

struct Sum {
  template <class T>
  static T of(T a, T b) {
    if constexpr (kIsComplex<T> || std::is_integral_v<T> || std::is_same_v<T, double>)
      return static_cast<T>(a + b);
    else
      return T(float(a) + float(b));
  }
};
struct Product {
  template <class T>
  static T of(T a, T b) {
    if constexpr (kIsComplex<T> || std::is_integral_v<T> || std::is_same_v<T, double>)
      return static_cast<T>(a * b);
    else
      return T(float(a) * float(b));
  }
};
// If a value of any rank is NaN, so is the result.
template <class T>
bool is_nan_value(T a) {
  if constexpr (kIsReal<T>) {
    return __builtin_isnan(static_cast<double>(a));
  } else {
    return false;
  }
}
struct Min {
  template <class T>
  static T of(T a, T b) {
    return is_nan_value(a) || (!is_nan_value(b) && a < b) ? a : b;
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return is_nan_value(a) || (!is_nan_value(b) && b < a) ? a : b;
  }
};

// These combine booleans, stored as bytes of which any but 0 is true.
struct Any {
  static uint8_t of(uint8_t a, uint8_t b) { return a != 0 || b != 0; }
};
struct All {
  static uint8_t of(uint8_t a, uint8_t b) { return a != 0 && b != 0; }
};

// A user function of MPI: combines `in`, which is of the lower rank, with `inout` in place.
template <class T, class Operation>
void reduce(void* in, void* inout, int* count, MPI_Datatype*) {
  const T* a = static_cast<const T*>(in);
  T* b = static_cast<T*>(inout);
  for (int i = 0; i < *count; ++i) b[i] = Operation::of(a[i], b[i]);
}

template <class T>
MPI_User_function* function_of(Reduction reduction) {
  if constexpr (!kIsComplex<T>) {
    if (reduction == Reduction::Min) return &reduce<T, Min>;
    if (reduction == Reduction::Max) return &reduce<T, Max>;
  }
  return reduction == Reduction::Product ? &reduce<T, Product> : &reduce<T, Sum>;
}

template <class T>
void divide_each(void* values, int64_t count, int divisor) {
  T* a = static_cast<T*>(values);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (kIsComplex<T>) {
      a[i] = a[i] / T(static_cast<float>(divisor));
    } else if constexpr (std::is_same_v<T, double>) {
      a[i] = a[i] / divisor;
    } else {
      a[i] = T(float(a[i]) / static_cast<float>(divisor));
    }
  }
}

// The datatype whose reduction by MPI has the semantics of tensors, or MPI_DATATYPE_NULL.
MPI_Datatype own_type(Reduction reduction, ScalarType dtype) {
  bool ordered = reduction == Reduction::Min || reduction == Reduction::Max;
  switch (dtype) {
    case ScalarType::Float:
      return ordered ? MPI_DATATYPE_NULL : MPI_FLOAT;
    case ScalarType::Double:
      return ordered ? MPI_DATATYPE_NULL : MPI_DOUBLE;
    case ScalarType::ComplexFloat:
      return MPI_C_FLOAT_COMPLEX;
    case ScalarType::ComplexDouble:
      return MPI_C_DOUBLE_COMPLEX;
    case ScalarType::Byte:
      return MPI_UINT8_T;
    case ScalarType::Char:
      return MPI_INT8_T;
    case ScalarType::Short:
      return MPI_INT16_T;
    case ScalarType::Int:
      return MPI_INT32_T;
    case ScalarType::Long:
      return MPI_INT64_T;
    case ScalarType::UInt16:
      return MPI_UINT16_T;
    case ScalarType::UInt32:
      return MPI_UINT32_T;
    case ScalarType::UInt64:
      return MPI_UINT64_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op own_operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::Product:
      return MPI_PROD;
    case Reduction::Min:
      return MPI_MIN;
    case Reduction::Max:
      return MPI_MAX;
    default:
      return MPI_SUM;
  }
}

MPI_User_function* function_for(Reduction reduction, ScalarType dtype) {
  switch (dtype) {
#define LAMELLA_SCALAR_TYPE(type, name, ...)             \
  case ScalarType::name:                                 \
    if constexpr (is_floating_point(ScalarType::name)) { \
      return function_of<type>(reduction);               \
    } else {                                             \
      break;                                             \
    }
#include "lamella/core/scalar_type.def"
    default:
      break;
  }
  if (dtype != ScalarType::Bool) return nullptr;
  bool all = reduction == Reduction::Product || reduction == Reduction::Min;
  return all ? &reduce<uint8_t, All> : &reduce<uint8_t, Any>;
}

}  // namespace

Reduction reduction_of(std::string_view word, const char* op_name) {
  for (size_t i = 0; i < std::size(kWords); ++i) {
    if (kWords[i] == word) return static_cast<Reduction>(i);
  }
  throw Error(str(op_name, ": expected 'op' to be sum, product, min, max or mean, got ", word));
}

const char* word_of(Reduction reduction) { return kWords[static_cast<size_t>(reduction)].data(); }

void check_reduction(Reduction reduction, ScalarType dtype, const char* op_name) {
  const bool is_complex = lamella::is_complex(dtype);
  if (reduction == Reduction::Min || reduction == Reduction::Max) {
    LAMELLA_CHECK(!is_complex, op_name, ": expected 'self' to have a dtype with an order for op ",
                  word_of(reduction), ", got ", dtype);
  }
  if (reduction == Reduction::Mean) {
    LAMELLA_CHECK(is_complex || is_floating_point(dtype), op_name,
                  ": expected 'self' to have a floating-point or complex dtype for op mean, got ",
                  dtype);
  }
  LAMELLA_CHECK(
      own_type(reduction, dtype) != MPI_DATATYPE_NULL || function_for(reduction, dtype) != nullptr,
      op_name, ": expected 'self' to have a dtype that can be reduced, got ", dtype);
}

MPI_Datatype moved_type(ScalarType dtype) {
  switch (element_size(dtype)) {
    case 1:
      return MPI_BYTE;
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    case 8:
      return MPI_UINT64_T;
    default:
      return MPI_C_DOUBLE_COMPLEX;
  }
}

ReducedType reduced_type(Reduction reduction, ScalarType dtype) {
  MPI_Datatype own = own_type(reduction, dtype);
  if (own != MPI_DATATYPE_NULL) return {own, own_operation(reduction)};
  static std::mutex mutex;
  static std::map<std::pair<Reduction, ScalarType>, MPI_Op> made;
  if (reduction == Reduction::Mean) reduction = Reduction::Sum;
  std::lock_guard lock(mutex);
  auto [at, fresh] = made.try_emplace({reduction, dtype}, MPI_OP_NULL);
  if (fresh) MPI_Op_create(function_for(reduction, dtype), /*commute=*/1, &at->second);
  return {moved_type(dtype), at->second};
}

void divide(void* values, int64_t count, ScalarType dtype, int divisor) {
  switch (dtype) {
#define LAMELLA_SCALAR_TYPE(type, name, ...)                            \
  case ScalarType::name:                                                \
    if constexpr (is_floating_point(ScalarType::name) ||                \
                  (is_complex(ScalarType::name) && sizeof(type) > 4)) { \
      return divide_each<type>(values, count, divisor);                 \
    } else {                                                            \
      break;                                                            \
    }
#include "lamella/core/scalar_type.def"
    default:
      break;
  }
  throw Error(str("expected a dtype that has means, got ", dtype));
}

}  // namespace lamella::distributed
