// Checks, logs and prints, as extensions of PyTorch's write them.
#include <ATen/TensorUtils.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <torch/library.h>
#include <torch/types.h>

#include <sstream>

namespace {
using at::Tensor;

// What a call throws, without the place; "" if nothing.
template <class F>
std::string thrown(F&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}
template <class F>
int64_t throws(F&& call) {
  return !thrown(std::forward<F>(call)).empty();
}

void without_semicolons(int64_t x) {
  TORCH_CHECK(x > 0, "expected x > 0, got ", x)
  TORCH_INTERNAL_ASSERT(x > 0)
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(x > 0)
}

void checks(int64_t a, int64_t b) {
  C10_LOG_API_USAGE_ONCE("compat.checking");
  int zero = 0;
  if (a < b)
    TORCH_CHECK_LT(a, b) << "with more words";
  else
    TORCH_CHECK_GE(a, b);
  TORCH_CHECK_EQ(++zero, 1);
  TORCH_CHECK_NE(a, b) << a;
  TORCH_CHECK_LE(a, a);
  TORCH_CHECK_GT(b, b - 1);
  TORCH_CHECK_NOTNULL(&zero);
  TORCH_DCHECK_EQ(b, b);
  CHECK(zero == 1) << "unequal";
  DCHECK(a == a);
  LOG_IF(INFO, zero == 1) << "nothing";
  VLOG(1) << "nothing";
  without_semicolons(b);
}

std::vector<std::string> errors(const Tensor& x) {
  return {
      thrown([&] { TORCH_CHECK(false, "got ", x.dim(), " and ", x.sizes()); }),
      thrown([&] { TORCH_CHECK_INDEX(false, "index ", 3); }),
      thrown([&] { TORCH_CHECK_VALUE(false, "value ", 0.5); }),
      thrown([&] { TORCH_CHECK_TYPE(false, "type ", x.dim()); }),
      thrown([&] { TORCH_CHECK_NOT_IMPLEMENTED(false, "not ", 1); }),
      thrown([&] { TORCH_CHECK_LINALG(false, "linalg ", 'c'); }),
      thrown([&] { TORCH_CHECK_ARG(x.dim() == 7, 2, "seven dimensions"); }).empty() ? "none"
                                                                                    : "thrown",
      thrown([&] { AT_ERROR("old ", x.device()); }),
      thrown([&] { C10_THROW_ERROR(IndexError, "thrown"); }),
      thrown([&] { TORCH_CHECK_WITH(TypeError, false, "with ", 1); }),
      c10::str("a", 1, 2.5, x.sizes(), c10::ArrayRef<double>({0.5, 2})),
  };
}

// Text goes to the standard error stream, in each library's words.
void warnings() {
  for (int i = 0; i < 3; ++i) {
    TORCH_WARN("warned ", i);
    TORCH_WARN_ONCE("once ", i);
    TORCH_WARN_DEPRECATION("deprecated");
  }
}

// A bit for each check that fails.
int64_t failed_checks(at::CheckedFrom from, const Tensor& a, const Tensor& b) {
  at::TensorArg a_arg{a, "a", 1}, b_arg{b, "b", 2};
  const Tensor none;
  int64_t failed = 0;
  auto note = [&, bit = int64_t{1}](auto&& check) mutable {
    failed += bit * throws(check);
    bit *= 2;
  };
  note([&] { at::checkDim(from, a_arg, 2); });
  note([&] { at::checkDim(from, a, "a", 1, 2); });
  note([&] { at::checkDimRange(from, a_arg, 1, 3); });
  note([&] { at::checkSameDim(from, a_arg, b_arg); });
  note([&] { at::checkContiguous(from, a_arg); });
  note([&] { at::checkAllContiguous(from, {a_arg, b_arg}); });
  note([&] { at::checkSize(from, a_arg, {2, 3}); });
  note([&] { at::checkSize(from, a_arg, 0, 2); });
  note([&] { at::checkSameSize(from, a_arg, b_arg); });
  note([&] { at::checkAllSameSize(from, {a_arg, b_arg}); });
  note([&] { at::checkNumel(from, a_arg, 6); });
  note([&] { at::checkSameNumel(from, a_arg, b_arg); });
  note([&] { at::checkAllSameNumel(from, {a_arg, b_arg}); });
  note([&] { at::checkScalarType(from, a_arg, at::kFloat); });
  note([&] { at::checkScalarTypes(from, a_arg, {at::kFloat, at::kLong}); });
  note([&] { at::checkSameType(from, a_arg, b_arg); });
  note([&] { at::checkAllSameType(from, {a_arg, b_arg}); });
  note([&] { at::checkDefined(from, a_arg); });
  note([&] { at::checkAllDefined(from, {a_arg, at::TensorArg{none, "c", 3}}); });
  note([&] { at::checkDeviceType(from, {a, b}, at::kCPU); });
  note([&] { at::checkLayout(from, {a, b}, at::kStrided); });
  note([&] { at::checkBackend(from, a, at::Backend::CPU); });
  note([&] { at::check_dim_size(a, 2, 1, 3); });
  return failed;
}
int64_t arguments(const Tensor& a, const Tensor& b) { return failed_checks("arguments", a, b); }

// What streams print.
template <class... T>
std::string printed(const T&... values) {
  std::ostringstream out;
  ((out << values << ';'), ...);
  return out.str();
}
std::vector<std::string> prints(const Tensor& x) {
  return {
      printed(x.sizes(), x.strides(), x.scalar_type(), x.dtype(), x.device(), x.layout()),
      printed(x.options().device().type()),
      printed(at::kHalf, at::kComplexDouble, at::Device("cuda:1"), at::kCUDA, at::kSparse),
      printed(at::Scalar(1), at::Scalar(0.5), at::Scalar(true), c10::complex<double>(1, 2)),
      printed(c10::IValue(1), c10::IValue(0.5), c10::IValue(true), c10::IValue()),
      printed(c10::IValue(std::vector<int64_t>{1, 2}), c10::IValue(std::vector<double>{0.5, 0.25}),
              c10::IValue(std::make_tuple(int64_t{1}, 2.5))),
      printed(c10::DispatchKey::CPU, c10::toString(c10::DispatchKey::AutogradCPU)),
      printed(c10::List<int64_t>({1, 2, 3}).size(), at::IntArrayRef({3})),
      printed(Tensor()),
      printed(at::Half(1.5f), at::BFloat16(2.5f),
              c10::optTypeMetaToScalarType(x.options().dtype_opt()).value()),
      x.toString(),
      std::string(c10::toString(at::kBFloat16)),
      c10::DeviceTypeName(at::kCPU),
      c10::DeviceTypeName(at::kCUDA, true),
  };
}
int64_t device_types() {
  return static_cast<int64_t>(at::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES) > 10 &&
         at::COMPILE_TIME_MAX_DEVICE_TYPES ==
             static_cast<int>(at::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES);
}

}  // namespace

TORCH_LIBRARY(compat_checking, m) {
  m.def("checks", &checks);
  m.def("errors", &errors);
  m.def("warnings", &warnings);
  m.def("arguments", &arguments);
  m.def("prints", &prints);
  m.def("device_types", &device_types);
}
