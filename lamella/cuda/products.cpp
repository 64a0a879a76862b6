// Matrix products by cuBLASLt, and without it, or for what it does not compute, by a kernel.
//
// Note [Products by cuBLASLt]
//   The library's matrices are column-major. A product whose result has contiguous rows is computed
//   as its transpose, so no operand is copied unless neither its rows nor its columns are
//   contiguous. The algorithm of a problem is asked for once and kept, by sizes, strides, types and
//   alignments. A vector that is added to each row is the library's epilogue, and so is relu.
//   Products of float16 and bfloat16 are summed in float32.
#include <cstring>
#include <string>
#include <unordered_map>

#include "lamella/api/from_blob.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/kernels/matmul_parameters.h"
#include "lamella/cuda/launch.h"
#include "lamella/cuda/libraries.h"
#include "lamella/cuda/library_values.h"
#include "lamella/cuda/math.h"
#include "lamella/cuda/streams.h"
#include "lamella/lamella.h"

namespace lamella::cuda {
namespace {

using native::Gemm;
using native::Matrices;

constexpr size_t kMostWorkspace = size_t{32} << 20;

// A matrix as the library stores it: column-major, `transposed` if that is the transpose.
struct Stored {
  const void* data;
  int64_t rows, columns, leading, batch;
  bool transposed;
};
// False if neither the rows nor the columns are contiguous.
bool store(const Matrices& x, int64_t rows, int64_t columns, Stored* to) {
  const bool by_columns =
      (rows == 1 || x.row == 1) && (columns == 1 || x.column >= (rows > 1 ? rows : 1));
  const bool by_rows = (columns == 1 || x.column == 1) && (rows == 1 || x.row >= columns);
  if (by_columns) {
    *to = {x.data, rows, columns, columns == 1 ? rows : x.column, x.batch, false};
  } else if (by_rows) {
    *to = {x.data, columns, rows, rows == 1 ? columns : x.row, x.batch, true};
  }
  return by_columns || by_rows;
}

struct Key {
  int64_t numbers[25] = {};
  int count = 0;
  void add(std::initializer_list<int64_t> more) {
    for (int64_t number : more) numbers[count++] = number;
  }
  bool operator==(const Key& other) const {
    return std::memcmp(numbers, other.numbers, sizeof(numbers)) == 0;
  }
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(key.numbers), sizeof(key.numbers)});
  }
};
// The descriptions of a problem and its algorithm.
struct Plan {
  bool solved = false;
  void* product = nullptr;
  void *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
  lt::Heuristic found{};
};
struct DevicePlans {
  std::mutex mutex;
  void* handle = nullptr;
  std::unordered_map<Key, Plan, KeyHash> of;
  void clear(const CublasLt& lib) {
    for (auto& [key, plan] : of) {
      lib.cublasLtMatmulDescDestroy(plan.product);
      for (void* layout : {plan.a, plan.b, plan.c, plan.d}) lib.cublasLtMatrixLayoutDestroy(layout);
    }
    of.clear();
  }
};
constexpr size_t kMostPlans = 4096;
DevicePlans* const plans_of = new DevicePlans[kMostDevices];

int64_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uint64_t>(data);
  return address % 256 == 0 ? 256 : static_cast<int64_t>(address & -address);
}

void* layout_of(const CublasLt& lib, int type, const Stored& x, int64_t batch) {
  void* layout = nullptr;
  check_library(lib.cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(x.rows),
                                               static_cast<uint64_t>(x.columns), x.leading),
                "cublasLtMatrixLayoutCreate");
  if (batch == 1) return layout;
  const auto count = static_cast<int32_t>(batch);
  lib.cublasLtMatrixLayoutSetAttribute(layout, lt::kLayoutBatch, &count, sizeof(count));
  lib.cublasLtMatrixLayoutSetAttribute(layout, lt::kLayoutBatchStride, &x.batch, sizeof(x.batch));
  return layout;
}

// The operands of a problem in column-major terms: c = a b + d, a of m x k.
struct Problem {
  Stored a, b, c, d;
  const void* bias = nullptr;
  int type, result, compute, scale, epilogue;
  int64_t batch;
};

Plan make_plan(const CublasLt& lib, void* handle, const Problem& p, const int64_t* alignments) {
  Plan plan;
  check_library(lib.cublasLtMatmulDescCreate(&plan.product, p.compute, p.scale),
                "cublasLtMatmulDescCreate");
  auto set = [&](int attribute, const auto& value) {
    check_library(
        lib.cublasLtMatmulDescSetAttribute(plan.product, attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
  };
  set(lt::kTransposeA, int32_t{p.a.transposed});
  set(lt::kTransposeB, int32_t{p.b.transposed});
  if (p.epilogue != lt::kEpilogueNone) set(lt::kEpilogue, int32_t{p.epilogue});
  if (p.bias != nullptr) set(lt::kBias, p.bias);
  plan.a = layout_of(lib, p.type, p.a, p.batch);
  plan.b = layout_of(lib, p.type, p.b, p.batch);
  plan.c = layout_of(lib, p.result, p.d, p.batch);
  plan.d = layout_of(lib, p.result, p.c, p.batch);
  void* preference = nullptr;
  check_library(lib.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  lib.cublasLtMatmulPreferenceSetAttribute(preference, lt::kMaxWorkspace, &kMostWorkspace,
                                           sizeof(kMostWorkspace));
  // Parts of sums are not rounded to 16 bits.
  const auto reductions = static_cast<uint32_t>(lt::kInComputeType);
  lib.cublasLtMatmulPreferenceSetAttribute(preference, lt::kReductions, &reductions,
                                           sizeof(reductions));
  for (int i = 0; i < 4; ++i) {
    const auto bytes = static_cast<uint32_t>(alignments[i]);
    lib.cublasLtMatmulPreferenceSetAttribute(preference, lt::kAlignmentA + i, &bytes,
                                             sizeof(bytes));
  }
  int given = 0;
  const int status = lib.cublasLtMatmulAlgoGetHeuristic(
      handle, plan.product, plan.a, plan.b, plan.c, plan.d, preference, 1, &plan.found, &given);
  lib.cublasLtMatmulPreferenceDestroy(preference);
  plan.solved = status == 0 && given > 0 && plan.found.state == 0;
  return plan;
}

// A number in the type that the library scales in.
struct Factor {
  alignas(16) char bytes[16];
};
Factor factor_of(const Scalar& value, int scale) {
  Factor factor{};
  auto store = [&](auto number) { std::memcpy(factor.bytes, &number, sizeof(number)); };
  if (scale == 0) store(value.to<float>());
  if (scale == 1) store(value.to<double>());
  if (scale == 4) store(value.to<complex<float>>());
  if (scale == 5) store(value.to<complex<double>>());
  if (scale == 10) store(value.to<int32_t>());
  return factor;
}

Tensor tensor_of(const Gemm& p, const Matrices& x, int64_t rows, int64_t columns,
                 ScalarType dtype) {
  return from_blob(const_cast<void*>(x.data), {p.batch, rows, columns}, {x.batch, x.row, x.column},
                   TensorOptions(dtype).device(p.device));
}

// What a product of the library computes with; false: it does not compute in the dtype.
bool types_of(const Gemm& p, ScalarType result, Problem* to) {
  to->type = data_type_of(p.dtype);
  to->result = data_type_of(result);
  switch (p.dtype) {
    case kHalf:
    case kBFloat16:
      to->compute = lt::kComputeFloat;
      to->scale = 0;
      break;
    case kFloat:
    case kComplexFloat:
      to->compute = allows_tf32(Tf32::kProducts) ? lt::kComputeTf32 : lt::kComputeFloat;
      to->scale = to->type;
      break;
    case kDouble:
    case kComplexDouble:
      to->compute = lt::kComputeDouble;
      to->scale = to->type;
      break;
    case kChar:
      to->compute = lt::kComputeInt;
      to->scale = to->result;
      return result == kInt;
    default:
      return false;
  }
  return result == p.dtype;
}

bool by_cublaslt(Gemm p) {
  const CublasLt* lib = cublaslt();
  if (lib == nullptr) return false;
  const ScalarType result = p.result == ScalarType::Undefined ? p.dtype : p.result;
  Problem q;
  if (!types_of(p, result, &q) || p.k == 0 || p.batch > INT32_MAX) return false;
  if (p.beta.equal(0)) {
    p.d = {};
  } else if (p.d.data == nullptr) {
    p.d = p.c;
  }
  // The library's result has contiguous columns: those of the transpose.
  const bool has_rows = (p.c.column == 1 || p.n == 1) && (p.m == 1 || p.c.row >= p.n);
  if (has_rows) p = transposed(p);
  if (!store(p.c, p.m, p.n, &q.c) || q.c.transposed) return false;
  q.batch = p.batch;
  Tensor a_copy, b_copy;
  if (!store(p.a, p.m, p.k, &q.a)) {
    a_copy = tensor_of(p, p.a, p.m, p.k, p.dtype).contiguous();
    store(Matrices::of(a_copy), p.m, p.k, &q.a);
  }
  if (!store(p.b, p.k, p.n, &q.b)) {
    b_copy = tensor_of(p, p.b, p.k, p.n, p.dtype).contiguous();
    store(Matrices::of(b_copy), p.k, p.n, &q.b);
  }
  // What is added: by the epilogue, in its own memory, or from a copy in the result's.
  q.epilogue = p.relu ? lt::kEpilogueRelu : lt::kEpilogueNone;
  q.d = q.c;
  bool copies_d = false;
  const bool has_epilogues = p.dtype == kHalf || p.dtype == kBFloat16 || p.dtype == kFloat;
  if (p.relu && !has_epilogues) return false;
  if (p.d.data != nullptr) {
    const bool is_column = (p.d.row == 1 || p.m == 1) && (p.d.column == 0 || p.n == 1) &&
                           (p.d.batch == 0 || p.batch == 1);
    if (is_column && has_epilogues && p.beta.equal(1) && p.d.data != p.c.data) {
      q.bias = p.d.data;
      q.epilogue = (p.relu ? lt::kEpilogueRelu : 0) | lt::kEpilogueBias;
      p.beta = 0;
    } else if (store(p.d, p.m, p.n, &q.d) && !q.d.transposed && (p.d.batch != 0 || p.batch == 1)) {
      // as it is
    } else {
      q.d = q.c;
      copies_d = true;
    }
  } else {
    p.beta = 0;
  }
  const int device = p.device.index();
  const int64_t alignments[] = {alignment_of(q.a.data), alignment_of(q.b.data),
                                alignment_of(q.d.data), alignment_of(q.c.data)};
  Key key;
  key.add({q.type, q.result, q.compute, q.epilogue, p.m, p.n, p.k, p.batch});
  for (const Stored* x : {&q.a, &q.b, &q.c, &q.d}) key.add({x->leading, x->batch, x->transposed});
  for (int64_t alignment : alignments) key.add({alignment});
  key.add({q.bias != nullptr ? alignment_of(q.bias) : 0});
  ContextGuard guard(device);
  DevicePlans& plans = plans_of[device];
  std::lock_guard lock(plans.mutex);
  if (plans.handle == nullptr && lib->cublasLtCreate(&plans.handle) != 0) {
    plans.handle = nullptr;
    return false;
  }
  if (plans.of.size() > kMostPlans) plans.clear(*lib);
  auto [at, is_new] = plans.of.try_emplace(key);
  Plan& plan = at->second;
  RelaxedCapture relaxed;
  if (is_new) plan = make_plan(*lib, plans.handle, q, alignments);
  if (!plan.solved) return false;
  if (copies_d) {
    tensor_of(p, p.c, p.m, p.n, result).copy_(tensor_of(p, p.d, p.m, p.n, result));
  }
  if (q.bias != nullptr) {
    check_library(
        lib->cublasLtMatmulDescSetAttribute(plan.product, lt::kBias, &q.bias, sizeof(q.bias)),
        "cublasLtMatmulDescSetAttribute");
  }
  const Factor alpha = factor_of(p.alpha, q.scale), beta = factor_of(p.beta, q.scale);
  const Workspace work(device, plan.found.workspace);
  const StreamHandle stream = handle_of(device, current().streams[device]);
  Driver::note_launch(device, "cublasLtMatmul");
  // Where it fails after all, the kernel computes.
  plan.solved =
      lib->cublasLtMatmul(plans.handle, plan.product, alpha.bytes, q.a.data, plan.a, q.b.data,
                          plan.b, beta.bytes, q.d.data, plan.c, const_cast<void*>(q.c.data), plan.d,
                          plan.found.algorithm, work.data(), plan.found.workspace, stream) == 0;
  if (plan.solved) after_launch(device, stream);
  return plan.solved;
}

// ---- By a kernel of the device ----

// The types of a product as the suffix of its kernel; there may be none.
const char* suffix_of(ScalarType dtype, ScalarType result) {
  if (dtype == kChar && result == kInt) return "i8_i32";
  if (dtype == kByte && result == kInt) return "u8_i32";
  if (result != dtype) return nullptr;
  return is_complex(dtype) ? suffix_of_kind(kind_of(dtype)) : suffix_of_type(dtype);
}
// A number in the type that the kernel sums in, as factor_of().
Factor sum_factor(const Scalar& value, ScalarType dtype) {
  if (!is_integral(dtype, false)) {
    return factor_of(value, dtype == kHalf || dtype == kBFloat16 ? 0 : data_type_of(dtype));
  }
  Factor factor{};
  visit_numbers(dtype, "mm", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    if constexpr (std::is_integral_v<T>) {
      const auto wide = static_cast<int64_t>(value.to<T>());  // the lower half is that of 32 bits
      std::memcpy(factor.bytes, &wide, sizeof(wide));
    }
  });
  return factor;
}

bool by_kernel(const Gemm& p) {
  const ScalarType result = p.result == ScalarType::Undefined ? p.dtype : p.result;
  const char* suffix = suffix_of(p.dtype, result);
  const int64_t tiles =
      ((p.m + kMatmulTile - 1) / kMatmulTile) * ((p.n + kMatmulTile - 1) / kMatmulTile);
  if (suffix == nullptr || tiles > INT32_MAX) return false;
  auto operand = [](const Matrices& x) {
    return MatmulOperand{reinterpret_cast<uint64_t>(x.data), x.row, x.column, x.batch};
  };
  MatmulParameters parameters{operand(p.a), operand(p.b), operand(p.c),   {}, p.m, p.n,
                              p.k,          p.batch,      p.relu ? 1 : 0, {}, {}};
  if (!p.beta.equal(0)) parameters.d = operand(p.d.data == nullptr ? p.c : p.d);
  const Factor alpha = sum_factor(p.alpha, result), beta = sum_factor(p.beta, result);
  std::memcpy(parameters.alpha, alpha.bytes, sizeof(alpha.bytes));
  std::memcpy(parameters.beta, beta.bytes, sizeof(beta.bytes));
  const int device = p.device.index();
  ContextGuard guard(device);
  Shape shape;
  constexpr int64_t kMostRows = 65535;
  shape.grid[0] = static_cast<unsigned>(tiles);
  shape.grid[1] = static_cast<unsigned>(p.batch < kMostRows ? p.batch : kMostRows);
  shape.block[0] = kMatmulThreads;
  return launch_named(device, "matmul", suffix, &parameters, shape);
}

}  // namespace

bool multiply(const char*, const Gemm& problem) {
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return true;
  return by_cublaslt(problem) || by_kernel(problem);
}

}  // namespace lamella::cuda
