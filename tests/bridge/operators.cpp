// Operators for tests/bridge: each kind of argument, result, derivative and kernel once.
#include <lamella/lamella.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {
using lamella::Tensor;

// A float32 pointwise kernel in plain C++, which Lamella's autograd cannot see into.
template <class F>
Tensor pointwise(const char* name, const Tensor& x, F f) {
  LAMELLA_CHECK_TYPE(x.scalar_type() == lamella::kFloat || x.scalar_type() == lamella::kDouble,
                     name, ": expected 'x' to be float32 or float64, got ", x.scalar_type());
  Tensor from = x.contiguous();
  Tensor made = lamella::empty(from.sizes(), from.options());
  if (x.scalar_type() == lamella::kDouble) {
    for (int64_t i = 0; i < made.numel(); ++i) {
      made.mutable_data_ptr<double>()[i] = f(from.const_data_ptr<double>()[i]);
    }
    return made;
  }
  for (int64_t i = 0; i < made.numel(); ++i) {
    made.mutable_data_ptr<float>()[i] = static_cast<float>(f(from.const_data_ptr<float>()[i]));
  }
  return made;
}
Tensor like(const Tensor& x) { return lamella::empty(x.sizes(), x.options()); }

void check_midpoint(const Tensor& a, const Tensor& b) {
  LAMELLA_CHECK(a.sizes() == b.sizes(), "midpoint: expected 'b' to have the shape ", a.sizes(),
                ", got ", b.sizes());
  LAMELLA_CHECK_TYPE(a.scalar_type() == b.scalar_type(), "midpoint: expected 'b' to be ",
                     a.scalar_type(), ", got ", b.scalar_type());
}
template <class T>
void fill_midpoint(const Tensor& a, const Tensor& b, double at, const Tensor& out) {
  const T *x = a.const_data_ptr<T>(), *y = b.const_data_ptr<T>();
  T* to = out.mutable_data_ptr<T>();
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = x[i] + static_cast<T>(at) * (y[i] - x[i]);
}
void midpoint_into(const Tensor& a, const Tensor& b, double at, const Tensor& out) {
  Tensor from = a.contiguous(), to = b.contiguous();
  if (a.scalar_type() == lamella::kDouble) {
    fill_midpoint<double>(from, to, at, out);
  } else {
    fill_midpoint<float>(from, to, at, out);
  }
}
Tensor midpoint(const Tensor& a, const Tensor& b, double at) {
  check_midpoint(a, b);
  Tensor out = like(a);
  midpoint_into(a, b, at, out);
  return out;
}
Tensor midpoint_meta(const Tensor& a, const Tensor& b, double) {
  check_midpoint(a, b);
  return like(a);
}
Tensor& midpoint_out(const Tensor& a, const Tensor& b, double at, Tensor& out) {
  check_midpoint(a, b);
  out.resize_(a.sizes());
  midpoint_into(a, b, at, out);
  return out;
}
lamella_status midpoint_backward(const lamella_backward* call) {
  Tensor grad(lamella::TensorBase::borrow(call->grads[0]));
  const double at = call->saved[0].as.d;
  if ((call->needs & 1) != 0) call->results[0] = (grad * (1 - at)).unsafe_release();
  if ((call->needs & 2) != 0) call->results[1] = (grad * at).unsafe_release();
  return LAMELLA_OK;
}
lamella_status cube_backward(const lamella_backward* call) {
  Tensor grad(lamella::TensorBase::borrow(call->grads[0]));
  Tensor x(lamella::TensorBase::borrow(call->saved[0].as.tensor));
  call->results[0] = (grad * x * x * 3).unsafe_release();
  return LAMELLA_OK;
}
// Saves what it returned.
lamella_status grow_backward(const lamella_backward* call) {
  Tensor grad(lamella::TensorBase::borrow(call->grads[0]));
  Tensor y(lamella::TensorBase::borrow(call->saved[0].as.tensor));
  call->results[0] = (grad * y).unsafe_release();
  return LAMELLA_OK;
}
lamella_status dot_backward(const lamella_backward* call) {
  const auto* list = static_cast<lamella_tensor* const*>(call->saved[0].as.pointer);
  Tensor grad(lamella::TensorBase::borrow(call->grads[0]));
  for (uint32_t i = 0; i < call->saved[0].size; ++i) {
    Tensor x(lamella::TensorBase::borrow(list[i]));
    call->results[i] = (grad * x * 2).unsafe_release();
  }
  return LAMELLA_OK;
}
lamella_status dot_forward(const lamella_forward* call) {
  const auto* list = static_cast<lamella_tensor* const*>(call->arguments[0].as.pointer);
  Tensor sum;
  for (uint32_t i = 0; i < call->arguments[0].size; ++i) {
    if (call->tangents[i] == nullptr) continue;
    Tensor x(lamella::TensorBase::borrow(list[i]));
    Tensor part = (Tensor(lamella::TensorBase::borrow(call->tangents[i])) * x * 2).sum();
    sum = sum.defined() ? sum + part : part;
  }
  call->results[0] = sum.unsafe_release();
  return LAMELLA_OK;
}

constexpr uint16_t kFirst[] = {0}, kBoth[] = {0, 1};
constexpr lamella_saved kAt[] = {{LAMELLA_SAVE_VALUE, 0, 2, 0, 3}};
constexpr lamella_saved kArgument[] = {{LAMELLA_SAVE_VALUE, 0, 0, 0, 1}};
constexpr lamella_saved kReturn[] = {{LAMELLA_SAVE_VALUE, 1, 0, 0, 1}};
constexpr lamella_derivative table(const char* name, lamella_backward_function backward,
                                   const uint16_t* slots, uint32_t slot_count,
                                   const lamella_saved* saved, uint32_t flags,
                                   lamella_forward_function forward = nullptr) {
  lamella_derivative made = {};
  made.name = name;
  made.backward = backward;
  made.forward = forward;
  made.slots = slots;
  made.slot_count = slot_count;
  made.saved = saved;
  made.saved_count = saved != nullptr ? 1 : 0;
  made.differentiable_returns = 1;
  made.flags = flags;
  return made;
}
constexpr lamella_derivative kMidpoint =
    table("MidpointBackward", &midpoint_backward, kBoth, 2, kAt, LAMELLA_FORWARD_LINEAR);
constexpr lamella_derivative kCube =
    table("CubeBackward", &cube_backward, kFirst, 1, kArgument, LAMELLA_FORWARD_ELEMENTWISE);
// Without a formula for tangents.
constexpr lamella_derivative kCubeBack =
    table("CubeBackward", &cube_backward, kFirst, 1, kArgument, 0);
constexpr lamella_derivative kGrow =
    table("GrowBackward", &grow_backward, kFirst, 1, kReturn, LAMELLA_FORWARD_ELEMENTWISE);
constexpr lamella_derivative kSquares =
    table("SquaresBackward", &dot_backward, kFirst, 1, kArgument, 0, &dot_forward);
constexpr lamella_derivative kSteps =
    table("StepsBackward", nullptr, kFirst, 1, nullptr, LAMELLA_NOT_DIFFERENTIABLE);

double cubed(double x) { return x * x * x; }
double steps_of(double x) { return std::floor(x); }

Tensor total(const Tensor& x, lamella::OptionalIntArrayRef dim, bool keepdim) {
  return x.sum(dim, keepdim);
}
}  // namespace

LAMELLA_LIBRARY(cases, m) {
  m.def("midpoint(Tensor a, Tensor b, float at=0.5) -> Tensor", "batching:loop,autocast:float32");
  m.def("midpoint.out(Tensor a, Tensor b, float at=0.5, *, Tensor(a!) out) -> Tensor(a!)");
  m.derivative("midpoint", &kMidpoint);
  m.def("cube(Tensor x) -> Tensor", "batching:pointwise");
  m.derivative("cube", &kCube);
  m.def("cube_less(Tensor x, Tensor y) -> Tensor", "batching:pointwise");  // no gradient of y
  m.derivative("cube_less", &kCube);
  m.def("cube_back(Tensor x) -> Tensor", "batching:pointwise");
  m.derivative("cube_back", &kCubeBack);
  m.def("grow(Tensor x) -> Tensor", "batching:pointwise");
  m.derivative("grow", &kGrow);
  m.def("squares(Tensor[] xs) -> Tensor");
  m.derivative("squares", &kSquares);
  m.def("steps(Tensor x) -> Tensor", "batching:pointwise");
  m.derivative("steps", &kSteps);
  m.def("opaque(Tensor x) -> Tensor");
  // Composite: what it calls is differentiated.
  m.def("wave(Tensor x, Tensor? y=None, *, float by=2.0) -> Tensor",
        [](const Tensor& x, const std::optional<Tensor>& y, double by) {
          Tensor made = x.sin() * by;
          return y.has_value() ? made * *y : made;
        });
  m.def(
      "everything(Tensor[] xs, Tensor? t, int i, float f, bool b, str s, int[] ints, float[] "
      "floats, "
      "int? oi=None, float? of=None, bool? ob=None, str? os=None, int[]? ois=None, "
      "bool[] bs=[]) -> Tensor",
      [](lamella::TensorList xs, const std::optional<Tensor>& t, int64_t i, double f, bool b,
         std::string_view s, lamella::IntArrayRef is, lamella::ArrayRef<double> fs,
         std::optional<int64_t> oi, std::optional<double> of, std::optional<bool> ob,
         std::optional<std::string_view> os, lamella::OptionalIntArrayRef ois,
         lamella::ArrayRef<bool> bs) {
        double sum = static_cast<double>(i) + f + (b ? 100 : 0) + static_cast<double>(s.size());
        for (int64_t n : is) sum += static_cast<double>(n);
        for (double n : fs) sum += n;
        sum += static_cast<double>(oi.value_or(0)) + of.value_or(0) + (ob.value_or(false) ? 7 : 0);
        sum += os.has_value() ? static_cast<double>(os->size()) : 0;
        if (ois.has_value()) {
          for (int64_t n : *ois) sum += static_cast<double>(n);
        }
        for (bool one : bs) sum += one ? 1000 : 0;
        Tensor made = xs[0] + sum;
        for (size_t k = 1; k < xs.size(); ++k) made = made + xs[k];
        return t.has_value() ? made * *t : made;
      });
  m.def("scaled(Tensor x, Scalar by) -> Tensor",
        [](const Tensor& x, const lamella::Scalar& by) { return x * by; });
  m.def("pair(Tensor x, int n) -> (Tensor, Tensor, int)",
        [](const Tensor& x, int64_t n) { return std::make_tuple(x * n, x.cos(), n + 1); });
  m.def("parts(Tensor x, int[] sizes, str mode) -> Tensor[]",
        [](const Tensor& x, lamella::IntArrayRef sizes, std::string_view mode) {
          std::vector<Tensor> all;
          for (int64_t n : sizes) {
            all.push_back(mode == "first" ? x.narrow(0, 0, n) : x.narrow(0, x.size(0) - n, n));
          }
          return all;
        });
  m.def("same(Tensor x) -> Tensor", [](const Tensor& x) { return x; });
  m.def("raise_by(Tensor x, float by=1.0) -> Tensor",
        [](const Tensor& x, double by) { return x + by; });
  m.def("raise_by_(Tensor(a!) x, float by=1.0) -> Tensor(a!)");
  m.def("fill_twice(Tensor(a!) x, Tensor(b!) y, float to) -> ()");
  m.def("row(Tensor(a) x, int i) -> Tensor(a)",
        [](const Tensor& x, int64_t i) { return x.select(0, i); });
  m.def("total(Tensor x, int[1]? dim=None, bool keepdim=False) -> Tensor", "batching:reduction");
  m.def("fail(Tensor x, str kind) -> Tensor");
  m.def("lower(Tensor x) -> Tensor", [](const Tensor& x) { return x * 1; },
        {.autocast = lamella::AutocastClass::kLowerPrecision});
  m.def("widest(Tensor x, Tensor[] ys) -> Tensor",
        [](const Tensor& x, lamella::TensorList) { return x * 1; },
        {.autocast = lamella::AutocastClass::kWidest});
  m.def("unsafe(Tensor x) -> Tensor", [](const Tensor& x) { return x * 1; },
        {.autocast = lamella::AutocastClass::kBanned});
  m.def("summed(Tensor x, *, ScalarType? dtype=None) -> Tensor",
        [](const Tensor& x, std::optional<lamella::ScalarType> dtype) { return x.sum(dtype); },
        {.autocast = lamella::AutocastClass::kFloat32SetDtype});
}
LAMELLA_LIBRARY_IMPL(cases, CPU, m) {
  m.impl("midpoint", midpoint);
  m.impl("midpoint.out", midpoint_out);
  m.impl("cube", [](const Tensor& x) { return pointwise("cube", x, cubed); });
  m.impl("cube_less",
         [](const Tensor& x, const Tensor& y) { return pointwise("cube_less", x, cubed) - y; });
  m.impl("cube_back", [](const Tensor& x) { return pointwise("cube_back", x, cubed); });
  m.impl("grow", [](const Tensor& x) {
    return pointwise("grow", x, static_cast<double (*)(double)>(std::exp));
  });
  m.impl("steps", [](const Tensor& x) { return pointwise("steps", x, steps_of); });
  m.impl("opaque", [](const Tensor& x) { return pointwise("opaque", x, cubed); });
  m.impl("squares", [](lamella::TensorList xs) {
    Tensor sum = lamella::zeros({}, xs[0].options());
    for (const Tensor& x : xs) sum = sum + (x * x).sum();
    return sum;
  });
  m.impl("raise_by_", [](Tensor& x, double by) -> Tensor& { return x.add_(by); });
  m.impl("fill_twice", [](Tensor& x, Tensor& y, double to) {
    x.fill_(to);
    y.fill_(to);
  });
  m.impl("fail", [](const Tensor& x, std::string_view kind) {
    LAMELLA_CHECK_TYPE(kind != "type", "fail: expected 'kind' to be kind, got type");
    LAMELLA_CHECK_VALUE(kind != "value", "fail: expected 'kind' to be kind, got value");
    LAMELLA_CHECK_INDEX(kind != "index", "fail: expected 'kind' to be kind, got index");
    LAMELLA_CHECK(false, "fail: expected 'kind' to be kind, got ", kind);
    return x;
  });
}
LAMELLA_LIBRARY_IMPL(cases, Meta, m) {
  m.impl("midpoint", midpoint_meta);
  m.impl("midpoint.out",
         [](const Tensor&, const Tensor&, double, Tensor& out) -> Tensor& { return out; });
  for (const char* name : {"cube", "cube_back", "grow", "steps", "opaque"}) m.impl(name, like);
  m.impl("cube_less", [](const Tensor& x, const Tensor&) { return like(x); });
  m.impl("squares", [](lamella::TensorList xs) { return lamella::empty({}, xs[0].options()); });
  m.impl("raise_by_", [](Tensor& x, double) -> Tensor& { return x; });
  m.impl("fill_twice", [](Tensor&, Tensor&, double) {});
  m.impl("fail", [](const Tensor& x, std::string_view) { return like(x); });
}
LAMELLA_LIBRARY_IMPL(cases, CompositeImplicitAutograd, m) { m.impl("total", total); }

// ---- Random schemas: BRIDGE_SCHEMAS has one a line; one boxed kernel serves all ----

namespace {
double number_of(const lamella_value& value) {
  switch (value.tag) {
    case LAMELLA_DOUBLE:
      return value.as.d;
    case LAMELLA_STRING:
      return value.size;
    case LAMELLA_NONE:
      return 0;
    case LAMELLA_INT_LIST:
    case LAMELLA_DOUBLE_LIST:
    case LAMELLA_BOOL_LIST: {
      double sum = 0;
      for (uint32_t k = 0; k < value.size; ++k) {
        double one = value.tag == LAMELLA_INT_LIST
                         ? static_cast<double>(static_cast<const int64_t*>(value.as.pointer)[k])
                     : value.tag == LAMELLA_DOUBLE_LIST
                         ? static_cast<const double*>(value.as.pointer)[k]
                         : static_cast<const uint8_t*>(value.as.pointer)[k];
        sum += (k + 1) * one;
      }
      return sum;
    }
    default:
      return static_cast<double>(value.as.i);
  }
}
// Tensors and numbers, each times its place among the arguments, counted from 1.
lamella_status weighted_sum(const lamella_kernel*, const lamella_operator* op, uint64_t,
                            const lamella_value* arguments, lamella_value* returns) {
  Tensor sum;
  double numbers = 0;
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    const lamella_value& value = arguments[i];
    auto add = [&](lamella_tensor* t, double weight) {
      if (t == nullptr) return;
      Tensor part = Tensor(lamella::TensorBase::borrow(t)) * weight;
      sum = sum.defined() ? sum + part : part;
    };
    if (value.tag == LAMELLA_TENSOR) {
      add(value.as.tensor, i + 1);
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) add(list[k], (i + 1) * (k + 1));
    } else {
      numbers += (i + 1) * number_of(value);
    }
  }
  auto give = [](lamella_value& to, Tensor t) {
    to = lamella_value{};
    to.tag = LAMELLA_TENSOR;
    to.as.tensor = t.unsafe_release();
  };
  lamella_argument_info info;
  if (lamella_operator_argument(op, 1, 0, &info) == LAMELLA_OK &&
      std::string_view(info.type) == "Tensor[]") {
    lamella_status status = lamella_value_allocate(LAMELLA_TENSOR_LIST, 2, &returns[0]);
    if (status != LAMELLA_OK) return status;
    auto* list = static_cast<lamella_tensor**>(returns[0].as.pointer);
    list[0] = (sum + numbers).unsafe_release();
    list[1] = (sum * 2).unsafe_release();
    return LAMELLA_OK;
  }
  give(returns[0], sum + numbers);
  if (op->return_count == 2) give(returns[1], sum * 2);
  return LAMELLA_OK;
}
}  // namespace

LAMELLA_LIBRARY(random_cases, m) {
  const char* path = std::getenv("BRIDGE_SCHEMAS");
  std::ifstream file(path != nullptr ? path : "/dev/null");
  lamella_library* library = nullptr;
  if (lamella_library_open(LAMELLA_LIBRARY_FRAGMENT, "random_cases", 0xffff, __FILE__, __LINE__,
                           &library) != LAMELLA_OK) {
    return;
  }
  for (std::string schema; std::getline(file, schema);) {
    m.def(schema.c_str());
    lamella_kernel_description kernel = {};
    kernel.boxed = &weighted_sum;
    kernel.file = __FILE__;
    uint16_t key = 0;
    if (lamella_dispatch_key_from_name("CompositeImplicitAutograd", &key) != LAMELLA_OK) return;
    const std::string name = schema.substr(0, schema.find('('));
    lamella_library_implement(library, name.c_str(), key, &kernel);
  }
}
