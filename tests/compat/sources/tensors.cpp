// Creating, indexing and reading tensors, as PyTorch's extensions do.
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIndexing.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/SmallVector.h>
#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <mutex>

namespace {
using torch::Tensor;
using namespace torch::indexing;

std::vector<Tensor> made(int64_t n) {
  std::vector<float> memory{1, 2, 3, 4};
  auto options =
      torch::TensorOptions().dtype(torch::kFloat64).device(torch::kCPU).requires_grad(false);
  return {
      torch::tensor({1, 2, 3}),
      torch::tensor({1.5, 2.5}),
      torch::tensor({{1.f, 2.f}, {3.f, 4.f}}),
      torch::tensor(7),
      torch::tensor(true),
      torch::tensor(std::vector<int64_t>{4, 5}, torch::kInt32),
      torch::tensor({1, 2}, options),
      torch::tensor(torch::ArrayRef<double>({0.5})),
      at::tensor({1, 2}, at::dtype(at::kShort)),
      at::scalar_tensor(2.5, at::kDouble),
      at::from_blob(memory.data(), {2, 2}).clone(),
      torch::from_blob(memory.data(), {2}, {2}, torch::kFloat).clone(),
      torch::from_blob(
          memory.data(), {4}, [](void*) {}, torch::dtype(torch::kFloat))
          .sum(),
      torch::full({n}, 3, torch::kLong),
      torch::ones({n, n}, options),
      torch::eye(n),
      torch::arange(n),
      torch::arange(0., 1., 0.25),
      torch::linspace(0, 1, n),
      torch::empty({0}),
      torch::zeros({n}, torch::dtype(torch::kInt8)),
      torch::zeros_like(torch::ones({n}), torch::kHalf),
      torch::stack({torch::ones(2), torch::zeros(2)}),
      torch::cat({torch::ones(1), torch::zeros(1)}, 0),
      at::empty({n}, at::kFloat).fill_(2),
      at::empty_strided({2, 2}, {1, 2}).zero_(),
      torch::where(torch::arange(n) > 1, torch::ones(n), torch::zeros(n)),
  };
}
std::vector<Tensor> indexed(const Tensor& given) {
  Tensor x = given.clone(), m = x > 4;
  std::vector<Tensor> all{x.index({1}),
                          x.index({Slice(), 0}),
                          x.index({Slice(1, None), Slice(None, None, 2)}),
                          x.index({Ellipsis, -1}),
                          x.index({None, 0}),
                          x.index({"...", 1}),
                          x.index({m}),
                          x.index({torch::tensor({0, 2}), 1}),
                          x.index({torch::tensor({0, 2}), torch::tensor({1, 1})}),
                          x[0],
                          x[0][1],
                          x.index({Slice(0, 2)}),
                          x.index({true}),
                          x.slice(0, 1),
                          x.slice(/*dim=*/1, 0, 3, 2),
                          x.narrow(0, 1, 1),
                          x.select(0, -1),
                          torch::indexing::get_item(x, {Slice(1, 2)})};
  x.index_put_({Slice(), 0}, -1);
  all.push_back(x.clone());
  x.index_put_({m}, torch::tensor(9.f));
  x.index({1, Slice()}) = 5;
  x[0][1] = 7.5;
  x[2] = torch::arange(4);
  x.index_put_({torch::tensor({0, 0})}, torch::ones({2, 4}), /*accumulate=*/true);
  all.push_back(x);
  return all;
}
std::vector<std::string> told(const Tensor& x) {
  std::ostringstream out;
  out << x.type().is_cuda() << x.type().scalarType() << x.device() << x.dtype()
      << x.options().dtype() << x.dtype().name() << x.dtype().itemsize() << x.element_size()
      << x.is_contiguous() << x.dim() << x.ndimension() << x.sym_sizes() << x.sym_numel()
      << x.sym_size(0) << x.nbytes() << x.storage_offset() << x.storage().nbytes()
      << (x.storage().data() == x.data_ptr()) << x.is_floating_point() << x.is_complex()
      << x.is_signed() << x.is_sparse() << x.is_quantized() << x.layout()
      << (x.dtype() == torch::kFloat32) << (x.scalar_type() == torch::kFloat)
      << static_cast<int>(x.get_device()) << x.is_cpu() << torch::typeMetaToScalarType(x.dtype())
      << x.is_leaf() << torch::elementSize(x.scalar_type())
      << torch::isFloatingType(x.scalar_type()) << x.defined() << x.is_same(x)
      << x.is_non_overlapping_and_dense() << x.is_contiguous(at::MemoryFormat::ChannelsLast)
      << x.is_view() << x.is_mkldnn() << x.is_meta() << x.is_conj() << x.is_neg()
      << x.is_inference() << x.sizes().vec().size() << x.sizes().slice(1).size() << x.sizes().back()
      << x.strides().front() << x.sizes().equals({3, 4});
  return {out.str()};
}
}  // namespace
namespace {
template <typename scalar_t, typename Accessor>
scalar_t corner_sum(Accessor a) {
  return a[0][0] + a[a.size(0) - 1][a.size(1) - 1];
}
std::vector<double> accessed(const Tensor& given) {
  Tensor x = given.clone();
  auto a = x.accessor<float, 2>();
  at::TensorAccessor<float, 1> row = a[1];
  row[2] = 100;
  auto packed = x.packed_accessor32<float, 2>();
  auto wide = x.packed_accessor64<float, 2>();
  at::PackedTensorAccessor32<float, 2, at::DefaultPtrTraits> named = packed;
  const float* data = x.data_ptr<float>();
  const float* constant = x.const_data_ptr<float>();
  x.mutable_data_ptr<float>()[0] = 42;
  float old = x.data<float>()[0];
  using Traits = at::DefaultPtrTraits<float>::PtrType;
  static_assert(std::is_pointer_v<Traits>);
  static_assert(std::is_same_v<at::opmath_type<at::Half>, float> &&
                std::is_same_v<at::acc_type<float, false>, double>);
  static_assert(std::is_same_v<at::acc_type<int, false>, int64_t>);
  return {row[2],
          a[0][1],
          corner_sum<float>(packed),
          corner_sum<float>(wide),
          corner_sum<float>(named),
          data[5],
          constant[6],
          old,
          static_cast<double>(a.stride(0)),
          static_cast<double>(packed.size(1)),
          x[0][0].item<double>(),
          x.sum().item().toDouble(),
          x.max().item<float>(),
          static_cast<double>(x.argmax().item<int64_t>()),
          x[1][1].item().to<float>(),
          static_cast<double>(*x.data_ptr<float>())};
}
double parallel(const Tensor& x) {
  std::mutex lock;
  double sum = 0;
  const float* data = x.const_data_ptr<float>();
  at::parallel_for(0, x.numel(), 16, [&](int64_t begin, int64_t end) {
    double part = 0;
    for (int64_t i = begin; i < end; ++i) part += data[i];
    std::lock_guard<std::mutex> guard(lock);
    sum += part;
  });
  double again = at::parallel_reduce(
      0, x.numel(), at::internal::GRAIN_SIZE, 0.0,
      [&](int64_t begin, int64_t end, double start) {
        for (int64_t i = begin; i < end; ++i) start += data[i];
        return start;
      },
      [](double a, double b) { return a + b; });
  bool some = at::get_num_threads() >= 1 && at::get_thread_num() == 0 && !at::in_parallel_region();
  return some && sum == again && at::divup(7, 2) == 4 ? sum : -1;
}
std::vector<std::string> dispatched(const Tensor& x) {
  std::string all, half, second, complex, quantized, index;
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "a",
                                         [&] { all = std::to_string(sizeof(scalar_t)); });
  AT_DISPATCH_V2(x.scalar_type(), "b", AT_WRAP([&] { second = std::to_string(sizeof(scalar_t)); }),
                 AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_COMPLEX_TYPES), at::kHalf, at::kBFloat16);
  AT_DISPATCH_SWITCH(
      x.scalar_type(), "c",
      AT_DISPATCH_CASE_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, [&] { half = "floating"; })
          AT_DISPATCH_CASE_INTEGRAL_TYPES([&] { half = "integral"; })
              AT_DISPATCH_CASE(at::kComplexDouble, [&] { half = "complex"; }));
  AT_DISPATCH_INDEX_TYPES(at::kLong, "d", [&] { index = std::to_string(sizeof(index_t)); });
  return {all, second, half, index};
}
std::vector<Tensor> functions(const Tensor& x) {
  namespace F = torch::nn::functional;
  return {torch::fft::rfft(x).abs(),
          torch::fft::irfft(torch::fft::rfft(x), 4),
          torch::linalg_norm(x, 2.0, {{0}}),
          torch::linalg_inv(torch::eye(2) * 2),
          torch::linalg_det(torch::eye(2) * 3),
          torch::special::erf(x),
          torch::special::expit(x),
          F::relu(x - 3),
          F::softmax(x, F::SoftmaxFuncOptions(1)),
          F::pad(x, F::PadFuncOptions({1, 1}).mode(torch::kConstant)),
          torch::nn::functional::linear(x, torch::ones({2, 4})),
          torch::relu(x),
          torch::softmax(x, -1),
          x.sigmoid(),
          x.view({-1}),
          x.permute({1, 0}),
          x.transpose(0, 1),
          x.t(),
          x.reshape({2, 6}),
          x.flatten(),
          x.unsqueeze(0).squeeze(),
          x.expand({2, 3, 4}).sum(0),
          x.matmul(x.t()),
          torch::mm(x, x.t()),
          torch::einsum("ij,kj->ik", {x, x}),
          std::get<0>(x.max(1)),
          std::get<1>(torch::sort(x, 1, true)),
          std::get<0>(x.topk(2)),
          x.masked_fill(x > 3, 0),
          x.masked_select(x > 9),
          torch::bincount(x.to(torch::kLong).view({-1})),
          x.clamp_min(2),
          x.clamp(1, c10::nullopt),
          at::index_select(x, 0, torch::tensor({1})),
          x.gather(1, torch::zeros({3, 1}, torch::kLong)),
          torch::zeros({3, 4}).scatter_add_(0, torch::zeros({3, 4}, torch::kLong), x),
          x.to(x.options().dtype(torch::kDouble)),
          x.to(torch::kCPU, torch::kInt),
          x.type_as(torch::ones(1, torch::kDouble)),
          x.contiguous().cpu(),
          x.norm(),
          x.pow(2).mean({0, 1}),
          x.std(0),
          x.var(0, false),
          std::get<0>(torch::var_mean(x, 0)),
          std::get<1>(torch::std_mean(x, -1)),
          std::get<0>(torch::std_mean(x, false)),
          -x,
          ~(x > 3),
          x + 1,
          1 - x,
          2 / (x + 1),
          x * 2.5,
          x > 2,
          x == x,
          (x != 1) & (x < 5),
          (x > 1) | (x < 0),
          !(x.sum() > 100).item<bool>() ? x : -x};
}
std::vector<double> containers() {
  ska::flat_hash_map<int64_t, double> map;
  for (int64_t i = 0; i < 100; ++i) map[i * 7 % 31] += static_cast<double>(i);
  c10::SmallVector<int64_t, 4> small{1, 2};
  for (int64_t i = 0; i < 10; ++i) small.push_back(i);
  small.insert(small.begin(), 5);
  small.append({8, 9});
  c10::ArrayRef<int64_t> view(small);
  ska::flat_hash_set<int64_t> set{1, 2, 2};
  at::DimVector dims(3, 4);
  return {static_cast<double>(map.size()),
          map.at(7),
          map.count(99) + 0.0,
          static_cast<double>(small.size()),
          static_cast<double>(view[0] + view.back()),
          static_cast<double>(set.size()),
          static_cast<double>(dims.size() + dims[2]),
          static_cast<double>(small.pop_back_val())};
}
std::vector<int64_t> gradients(const Tensor& x) {
  Tensor w = torch::ones({4}, torch::requires_grad()), y = (x * w).sum();
  bool any = torch::autograd::compute_requires_grad(x, w),
       none = torch::autograd::compute_requires_grad(x);
  y.backward();
  Tensor z = x.clone();
  auto before = z._version();
  torch::autograd::increment_version(z);
  torch::autograd::impl::bump_version(z);
  auto grads = torch::autograd::grad({(w * w).sum()}, {w});
  {
    torch::NoGradGuard guard;
    any = any && !(w * 2).requires_grad();
    at::AutoDispatchBelowADInplaceOrView below;
    any = any && !(w * 2).requires_grad();
  }
  {
    torch::AutoGradMode on(true);
    c10::InferenceMode inference;
    any = any && torch::ones(1).is_inference();
  }
  torch::autograd::Variable v = torch::autograd::make_variable(x.detach(), true);
  return {any,
          none,
          z._version() - before,
          w.grad().sum().item<int64_t>(),
          grads[0].sum().item<int64_t>(),
          at::GradMode::is_enabled(),
          v.requires_grad(),
          w.is_leaf(),
          y.grad_fn() != nullptr,
          w.grad_fn() == nullptr,
          w.mutable_grad().defined()};
}
#if __has_include(<lamella/lamella.h>)  // PyTorch does not export it
Tensor blas(const Tensor& a, const Tensor& b) {
  Tensor c = torch::zeros({b.size(1), a.size(0)});
  // Column by column: c^T = b^T a^T.
  at::native::cpublas::gemm(at::native::TransposeType::NoTranspose,
                            at::native::TransposeType::NoTranspose, b.size(1), a.size(0), a.size(1),
                            1.f, b.const_data_ptr<float>(), b.size(1), a.const_data_ptr<float>(),
                            a.size(1), 0.f, c.mutable_data_ptr<float>(), b.size(1));
  return c.view({a.size(0), b.size(1)});
}
#else
Tensor blas(const Tensor& a, const Tensor& b) { return a.mm(b); }
#endif
Tensor file(const std::string& name) { return at::from_file(name, true, 4, at::kFloat); }
}  // namespace

TORCH_LIBRARY(compat_tensors, m) {
  m.def("made", &made);
  m.def("indexed", &indexed);
  m.def("told", &told);
  m.def("accessed", &accessed);
  m.def("parallel", &parallel);
  m.def("dispatched", &dispatched);
  m.def("functions", &functions);
  m.def("containers", &containers);
  m.def("gradients", &gradients);
  m.def("blas", &blas);
  m.def("file", &file);
}
