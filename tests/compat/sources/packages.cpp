// Names that operator packages use around their kernels: their own accessors, broadcasting,
// registries, borrowed tensors, DLPack, hashes, and less common operators.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/DLConvertor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/core/TransformationHelper.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/MaybeOwned.h>
#include <c10/util/Metaprogramming.h>
#include <c10/util/Registry.h>
#include <c10/util/ScopeExit.h>
#include <c10/util/Synchronized.h>
#include <c10/util/Unroll.h>
#include <c10/util/accumulate.h>
#include <c10/util/generic_math.h>
#include <c10/util/hash.h>
#include <c10/util/overloaded.h>
#include <c10/util/safe_numerics.h>
#include <torch/csrc/utils/tensor_flatten.h>
#include <torch/library.h>

#include <sstream>
#include <thread>
#include <variant>

namespace {

template <class T, size_t N>
class Traced : public at::TensorAccessorBase<T, N> {
 public:
  using at::TensorAccessorBase<T, N>::TensorAccessorBase;
  T first() const { return this->data_[0] + T(this->sizes_[0]) * T(this->strides_[N - 1]); }
};

std::vector<double> accessors(const at::Tensor& x) {
  auto plain = x.accessor<float, 2>();
  Traced<float, 2> traced(plain.data(), plain.sizes().data(), plain.strides().data());
  auto packed = x.generic_packed_accessor<float, 2, at::DefaultPtrTraits, int32_t>();
  auto turned = x.packed_accessor64<float, 2>().transpose(0, 1);
  return {traced.first(), packed[1][2], turned[2][1], double(turned.size(0))};
}

std::string broadcasts(const at::Tensor& a, const at::Tensor& b) {
  std::ostringstream out;
  auto [x, y] = at::expand_outplace(a, b, "broadcasts");
  out << x->sizes() << y->sizes() << y.unsafeIsBorrowed()
      << at::IntArrayRef(at::infer_size(a.sizes(), b.sizes()))
      << at::is_expandable_to(b.sizes(), a.sizes()) << at::are_expandable(a.sizes(), a.t().sizes())
      << at::sum_to(*x, a.sizes()).sum().item<float>() << int(at::has_internal_overlap(*x))
      << int(at::get_overlap_status(a, a))
      << at::dim_list_to_bitset(at::OptionalIntArrayRef({0, -1}), 4).to_string().substr(60);
  auto same = a.expect_contiguous();
  at::Tensor turned = a.t();
  auto copy = turned.expect_contiguous();
  out << same.unsafeIsBorrowed() << copy.unsafeIsBorrowed() << copy->sizes();
  auto flat = torch::utils::flatten_dense_tensors({a, b});
  out << flat.sizes() << torch::utils::unflatten_dense_tensors(flat, {a, b})[1].sizes();
  return out.str();
}

struct Shape {
  explicit Shape(int size) : size(size) {}
  virtual ~Shape() = default;
  virtual int area() const { return size * size; }
  int size;
};
struct Half : Shape {
  using Shape::Shape;
  int area() const override { return size * size / 2; }
};
C10_DECLARE_REGISTRY(Shapes, Shape, int);
C10_DEFINE_REGISTRY(Shapes, Shape, int)
C10_REGISTER_CLASS(Shapes, square, Shape)
C10_REGISTER_CLASS(Shapes, half, Half)

std::vector<int64_t> utilities() {
  std::vector<int64_t> seen;
  {
    auto leave = c10::make_scope_exit([&] { seen.push_back(-1); });
    c10::ForcedUnroll<3>{}([&](auto i) { seen.push_back(i); });
  }
  seen.push_back(Shapes()->Create("square", 4)->area());
  seen.push_back(Shapes()->Create("half", 4)->area());
  seen.push_back(Shapes()->Has("none") + Shapes()->Keys().size());
  c10::function_ref<int(int)> twice = [](int x) { return 2 * x; };
  seen.push_back(twice(21));
  c10::Synchronized<int> count(3);
  count.withLock([](int& value) { value += 4; });
  seen.push_back(count.withLock([](int& value) { return value; }));
  std::variant<int, std::string> either = std::string("four");
  seen.push_back(
      std::visit(c10::overloaded([](int x) { return x; },
                                 [](const std::string& text) { return int(text.size()); }),
                 either));
  uint64_t product = 0;
  seen.push_back(c10::mul_overflows(uint64_t(1) << 63, uint64_t(2), &product));
  seen.push_back(c10::div_floor_integer(-7, 2));
  seen.push_back(int64_t(c10::div_floor_floating(-7.5, 2.0)));
  seen.push_back(c10::get_hash(1, 2) == c10::get_hash(1, 2));
  seen.push_back(c10::hash<std::vector<int>>()({1, 2}) == c10::hash<std::vector<int>>()({2, 1}));
  auto tripled = c10::guts::tuple_map(std::make_tuple(1, 2), [](int x) { return 3 * x; });
  seen.push_back(std::get<0>(tripled) + std::get<1>(tripled));
  std::vector<int64_t> sizes = {2, 3, 4};
  seen.push_back(c10::multiply_integers(sizes) + c10::sum_integers(sizes.begin(), sizes.end()));
  seen.push_back(c10::size_from_dim_(1, sizes) + 100 * c10::size_to_dim_(2, sizes));
  at::Allocator* allocator = c10::GetCPUAllocator();
  void* memory = allocator->raw_allocate(64);
  seen.push_back(memory != nullptr);
  allocator->raw_deallocate(memory);
  int64_t dtypes = 0;
#define COUNT(type, name) dtypes += sizeof(type) * int64_t(at::ScalarType::name);
  AT_FORALL_SCALAR_TYPES_AND3(Half, Bool, BFloat16, COUNT)
#undef COUNT
  seen.push_back(dtypes);
  return seen;
}

at::Tensor exchanged(const at::Tensor& x) {
  DLManagedTensor* lent = at::toDLPack(x.t());
  at::Tensor back = at::fromDLPack(lent);
  back.add_(1);
  return back;
}

std::vector<at::Tensor> rarer(const at::Tensor& x) {
  at::Tensor spectrum = at::fft_rfft(x);
  return {at::hann_window(5), at::abs(spectrum), at::frobenius_norm(x, {1}),
          at::empty_symint({2, 3}, x.options()).fill_(2).view_symint({3, 2}),
          std::get<1>(at::frexp(x))};
}

std::vector<int64_t> drawn() {
  at::CPUGeneratorImpl stream(7);
  std::vector<int64_t> words = {stream.random(), stream.random(), int64_t(stream.random64() >> 1),
                                stream.random()};
  double real = at::transformation::uniform_real<float>(stream.random(), 1.0f, 3.0f);
  words.push_back(int64_t(real * 1000));
  words.push_back(at::transformation::uniform_int_from_to<int64_t>(stream.random(), 10, 5));
  return words;
}

bool on_another_thread() {
  at::NoGradGuard guard;
  bool enabled = true;
  at::ThreadLocalState state;
  std::thread([&] {
    at::ThreadLocalStateGuard taken(state);
    enabled = at::GradMode::is_enabled();
  }).join();
  return enabled;
}

struct Note : torch::CustomClassHolder {
  explicit Note(std::string text) : text(std::move(text)) {}
  std::string text;
};

}  // namespace

TORCH_LIBRARY(compat_packages, m) {
  m.def("accessors", &accessors);
  m.def("broadcasts", &broadcasts);
  m.def("utilities", &utilities);
  m.def("exchanged", &exchanged);
  m.def("rarer", &rarer);
  m.def("drawn", &drawn);
  m.def("on_another_thread", &on_another_thread);
  m.class_<Note>("Note")
      .def(torch::init<std::string>())
      .def("text",
           [](const c10::intrusive_ptr<Note>& self) -> const std::string { return self->text; })
      .def_pickle(
          [](const c10::intrusive_ptr<Note>& self) -> const std::string { return self->text; },
          [](const std::string& text) { return c10::make_intrusive<Note>(text); });
}
