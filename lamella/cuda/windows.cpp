// Pooling, sliding blocks, padding and interpolation, and their gradients.
#include "lamella/cuda/call.h"

#include "lamella/cuda/kernels/windows.h"
#include "lamella/cuda/movement.h"

namespace lamella::cuda {
namespace {

using Lengths = std::vector<int64_t>;

// The strides of a tensor as [batch][channels][0][1][2], in bytes: `spatial` dimensions come last,
// and what is missing has size 1.
void lay_strides(const Tensor& t, int spatial, int64_t (&strides)[5]) {
  const int64_t lead = t.dim() - spatial, bytes = static_cast<int64_t>(t.itemsize());
  strides[0] = lead == 2 ? t.stride(0) * bytes : 0;
  strides[1] = lead >= 1 ? t.stride(lead - 1) * bytes : 0;
  for (int d = 0; d < 3; ++d) {
    const int at = d - (3 - spatial);
    strides[2 + d] = at >= 0 ? t.stride(lead + at) * bytes : 0;
  }
}
// `inputs` and `outputs` are the tensors of the two sides; `axes` must follow.
WindowParameters window_of(const Tensor& inputs, const Tensor& outputs, int spatial) {
  WindowParameters p{};
  const int64_t lead = inputs.dim() - spatial;
  p.planes = 1;
  for (int64_t d = 0; d < lead; ++d) p.planes *= inputs.size(d);
  p.channels = lead >= 1 ? inputs.size(lead - 1) : 1;
  for (int d = 0; d < 3; ++d) {
    WindowAxis& axis = p.axes[d];
    const int at = d - (3 - spatial);
    axis = {1, 1, kReplicate, 0, 1, 1, 0, 1, 1};
    if (at < 0) continue;
    axis.in = inputs.size(lead + at);
    axis.out = outputs.size(lead + at);
  }
  return p;
}
bool start(const Call& call, WindowParameters* p, const char* kernel, const char* suffix,
           const Tensor& from, const Tensor& to, int spatial) {
  lay_strides(from, spatial, p->from_strides);
  lay_strides(to, spatial, p->to_strides);
  p->from = reinterpret_cast<uint64_t>(from.data_ptr());
  p->to = reinterpret_cast<uint64_t>(to.data_ptr());
  return launch_named(call.device(), kernel, suffix, p, to.numel());
}
int64_t entry(const Lengths& list, int d, int64_t otherwise) {
  return list.empty() ? otherwise : list[list.size() == 1 ? 0 : static_cast<size_t>(d)];
}

// ---- Pooling ----

struct Window {
  Lengths kernel, stride, padding, dilation;
  bool counts_padding = true;
};
void lay_windows(WindowParameters* p, int spatial, const Window& w) {
  for (int d = 0; d < 3; ++d) {
    WindowAxis& axis = p->axes[d];
    const int at = d - (3 - spatial);
    axis.rule = kWindow;
    axis.counts_padding = w.counts_padding ? 1 : 0;
    if (at < 0) continue;
    const int64_t kernel = entry(w.kernel, at, 1);
    axis.step = entry(w.dilation, at, 1);
    axis.reach = (kernel - 1) * axis.step + 1;
    axis.stride = entry(w.stride, at, kernel);
    axis.pad = entry(w.padding, at, 0);
  }
}
void lay_adaptive(WindowParameters* p) {
  for (WindowAxis& axis : p->axes) axis.rule = kAdaptive;
}
Window max_window(const Call& call, int first) {
  return {call.integers(first), call.integers(first + 1), call.integers(first + 2),
          call.integers(first + 3)};
}
Window average_window(const Call& call, int first) {
  return {call.integers(first),
          call.integers(first + 1),
          call.integers(first + 2),
          {},
          call.flag(first + 4)};
}
// The gradients compute with float32 where elements are smaller.
bool max_forward(const Call& call, WindowParameters* p, int spatial) {
  const Tensor self = call.tensor(0), out = call.output(), indices = call.output(1);
  lay_strides(indices, spatial, p->index_strides);
  p->indices = reinterpret_cast<uint64_t>(indices.data_ptr());
  const char* suffix =
      self.scalar_type() == ScalarType::Bool ? nullptr : suffix_of_type(self.scalar_type());
  return start(call, p, "max_pool", suffix, self, out, spatial);
}
bool max_backward(const Call& call, WindowParameters* p, int spatial, const Tensor& indices) {
  const Tensor grad = call.tensor(0), out = call.output();
  lay_strides(indices, spatial, p->index_strides);
  p->indices = reinterpret_cast<uint64_t>(indices.data_ptr());
  int64_t inputs = 1;
  for (const WindowAxis& axis : p->axes) inputs *= axis.in;
  const IndexSlot slot = report_slot(
      call.device(),
      spatial == 2 ? "max_pool2d_with_indices_backward" : "max_pool3d_with_indices_backward",
      IndexText::kElements, 0, inputs);
  p->slot = slot.slot;
  p->any = slot.any;
  return start(call, p, "max_pool_backward", suffix_of_type(grad.scalar_type()), grad, out,
               spatial);
}
template <int kSpatial>
bool max_pool_body(Call& call) {
  WindowParameters p = window_of(call.tensor(0), call.output(), kSpatial);
  lay_windows(&p, kSpatial, max_window(call, 1));
  return max_forward(call, &p, kSpatial);
}
template <int kSpatial>
bool max_pool_backward_body(Call& call) {
  WindowParameters p = window_of(call.tensor(1), call.tensor(0), kSpatial);
  lay_windows(&p, kSpatial, max_window(call, 2));
  return max_backward(call, &p, kSpatial, call.tensor(7));
}
template <int kSpatial>
bool adaptive_max_body(Call& call) {
  WindowParameters p = window_of(call.tensor(0), call.output(), kSpatial);
  lay_adaptive(&p);
  return max_forward(call, &p, kSpatial);
}
template <int kSpatial>
bool adaptive_max_backward_body(Call& call) {
  WindowParameters p = window_of(call.tensor(1), call.tensor(0), kSpatial);
  lay_adaptive(&p);
  return max_backward(call, &p, kSpatial, call.tensor(2));
}
template <int kSpatial>
bool average_body(Call& call) {
  const Tensor self = call.tensor(0);
  WindowParameters p = window_of(self, call.output(), kSpatial);
  lay_windows(&p, kSpatial, average_window(call, 1));
  p.divisor = call.is_none(6) ? 0 : call.integer(6);
  return start(call, &p, "average_pool", suffix_of_type(self.scalar_type()), self, call.output(),
               kSpatial);
}
template <int kSpatial>
bool average_backward_body(Call& call) {
  const Tensor grad = call.tensor(0);
  WindowParameters p = window_of(call.tensor(1), grad, kSpatial);
  lay_windows(&p, kSpatial, average_window(call, 2));
  p.divisor = call.is_none(7) ? 0 : call.integer(7);
  return start(call, &p, "average_pool_backward", suffix_of_type(grad.scalar_type()), grad,
               call.output(), kSpatial);
}
template <int kSpatial>
bool adaptive_average_body(Call& call) {
  const Tensor self = call.tensor(0);
  WindowParameters p = window_of(self, call.output(), kSpatial);
  lay_adaptive(&p);
  return start(call, &p, "average_pool", suffix_of_type(self.scalar_type()), self, call.output(),
               kSpatial);
}
template <int kSpatial>
bool adaptive_average_backward_body(Call& call) {
  const Tensor grad = call.tensor(0);
  WindowParameters p = window_of(call.tensor(1), grad, kSpatial);
  lay_adaptive(&p);
  return start(call, &p, "average_pool_backward", suffix_of_type(grad.scalar_type()), grad,
               call.output(), kSpatial);
}

// ---- Padding ----

void lay_padding(WindowParameters* p, int spatial, const Lengths& padding, bool reflects) {
  for (int d = 3 - spatial; d < 3; ++d) {
    WindowAxis& axis = p->axes[d];
    axis.rule = reflects ? kReflect : kReplicate;
    // The last dimension's padding comes first.
    axis.pad = padding[static_cast<size_t>(2 * (2 - d))];
    if (!reflects && axis.pad < -axis.in) axis.pad = -axis.in;
  }
}
template <int kSpatial, bool kReflects>
bool pad_body(Call& call) {
  const Tensor self = call.tensor(0);
  WindowParameters p = window_of(self, call.output(), kSpatial);
  lay_padding(&p, kSpatial, call.integers(1), kReflects);
  return start(call, &p, "pick", suffix_of_bytes(self.itemsize()), self, call.output(), kSpatial);
}
template <int kSpatial, bool kReflects>
bool pad_backward_body(Call& call) {
  const Tensor grad = call.tensor(0), out = call.output();
  WindowParameters p = window_of(call.tensor(1), grad, kSpatial);
  lay_padding(&p, kSpatial, call.integers(2), kReflects);
  auto run = [&](const Tensor& from, const Tensor& to) {
    return is_floating_point(from.scalar_type()) &&
           start(call, &p, "resample_backward", suffix_of_type(from.scalar_type()), from, to,
                 kSpatial);
  };
  if (!is_complex(grad.scalar_type())) return run(grad, out);
  const Tensor from = lamella::view_as_real(grad), to = lamella::view_as_real(out);
  return run(from.select(-1, 0), to.select(-1, 0)) && run(from.select(-1, 1), to.select(-1, 1));
}

// ---- Interpolation ----

// The step in the input for one step of the output, with PyTorch's exceptions: linear interpolation
// that keeps a size, and nearest interpolation in two dimensions that keeps or doubles one.
double step_of(AxisRule rule, bool plane, int64_t in, int64_t out, double scale) {
  const bool nearest = rule == kNearest && plane;
  if (in == out && (nearest || rule == kLinear)) return 1;
  if (nearest && out % 2 == 0 && out / 2 == in) return 0.5;
  if (rule == kLinearCorners) {
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  }
  return scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
}
// `first`: the position of the first scale among the arguments.
void lay_resize(const Call& call, WindowParameters* p, int spatial, AxisRule rule, int first,
                ScalarType dtype) {
  for (int d = 3 - spatial; d < 3; ++d) {
    WindowAxis& axis = p->axes[d];
    axis.rule = rule;
    const double scale = call.number(first + d - (3 - spatial), 0);
    axis.scale = step_of(rule, spatial == 2, axis.in, axis.out, scale);
    if (dtype != ScalarType::Double) {
      axis.scale = static_cast<double>(static_cast<float>(axis.scale));
    }
  }
}
template <int kSpatial, AxisRule kRule>
bool resize_body(Call& call) {
  const Tensor self = call.tensor(0);
  const bool mixes = kRule == kLinear;
  const AxisRule rule = mixes && call.flag(2) ? kLinearCorners : kRule;
  if (mixes && !is_floating_point(self.scalar_type())) return false;
  WindowParameters p = window_of(self, call.output(), kSpatial);
  lay_resize(call, &p, kSpatial, rule, mixes ? 3 : 2, self.scalar_type());
  const char* suffix =
      mixes ? suffix_of_type(self.scalar_type()) : suffix_of_bytes(self.itemsize());
  return start(call, &p, mixes ? "resample" : "pick", suffix, self, call.output(), kSpatial);
}
template <int kSpatial, AxisRule kRule>
bool resize_backward_body(Call& call) {
  const Tensor grad = call.tensor(0);
  const bool mixes = kRule == kLinear;
  const AxisRule rule = mixes && call.flag(3) ? kLinearCorners : kRule;
  if (!is_floating_point(grad.scalar_type())) return false;
  WindowParameters p = window_of(call.output(), grad, kSpatial);
  lay_resize(call, &p, kSpatial, rule, mixes ? 4 : 3, grad.scalar_type());
  return start(call, &p, "resample_backward", suffix_of_type(grad.scalar_type()), grad,
               call.output(), kSpatial);
}

// ---- Sliding blocks ----

// `first`: the position of kernel_size, behind which dilation, padding and stride come.
bool columns(Call& call, const Tensor& image, const Tensor& blocks, int first, bool gathers) {
  ColumnParameters p{};
  const Lengths kernel = call.integers(first), dilation = call.integers(first + 1),
                padding = call.integers(first + 2), stride = call.integers(first + 3);
  const Tensor from = call.tensor(0).contiguous(), out = call.output();
  if (!out.is_contiguous()) return false;
  p.w.planes = 1;
  for (int64_t d = 0; d + 2 < image.dim(); ++d) p.w.planes *= image.size(d);
  for (int d = 0; d < 2; ++d) {
    WindowAxis& axis = p.w.axes[d + 1];
    p.kernel[d] = entry(kernel, d, 1);
    axis.in = image.size(d - 2);
    axis.step = entry(dilation, d, 1);
    axis.pad = entry(padding, d, 0);
    axis.stride = entry(stride, d, 1);
    axis.out = (axis.in + 2 * axis.pad - (p.kernel[d] - 1) * axis.step - 1) / axis.stride + 1;
  }
  const ScalarType dtype = out.scalar_type();
  const char* suffix = gathers                    ? suffix_of_bytes(out.itemsize())
                       : is_floating_point(dtype) ? suffix_of_type(dtype)
                                                  : nullptr;
  p.image = reinterpret_cast<uint64_t>((gathers ? from : out).data_ptr());
  p.columns = reinterpret_cast<uint64_t>((gathers ? out : from).data_ptr());
  return launch_named(call.device(), gathers ? "to_columns" : "from_columns", suffix, &p,
                      out.numel());
}
bool im2col_body(Call& call) { return columns(call, call.tensor(0), call.output(), 1, true); }
bool col2im_body(Call& call) { return columns(call, call.output(), call.tensor(0), 2, false); }

template <int kSpatial>
void register_pads(Library& aten, const std::string& d) {
  auto both = [](const std::string& name) { return name + " " + name + ".out"; };
  register_calls<&pad_body<kSpatial, true>>(aten, both("reflection_pad" + d));
  register_calls<&pad_body<kSpatial, false>>(aten, both("replication_pad" + d));
  register_calls<&pad_backward_body<kSpatial, true>>(aten, "reflection_pad" + d + "_backward");
  register_calls<&pad_backward_body<kSpatial, false>>(aten, "replication_pad" + d + "_backward");
}
template <int kSpatial>
void register_resizes(Library& aten, const std::string& d, const std::string& linear) {
  const std::string nearest = "upsample_nearest" + d, exact = "_upsample_nearest_exact" + d;
  register_calls<&resize_body<kSpatial, kNearest>>(aten, nearest + " " + nearest + ".out");
  register_calls<&resize_body<kSpatial, kNearestExact>>(aten, exact);
  register_calls<&resize_body<kSpatial, kLinear>>(aten, linear + " " + linear + ".out");
  register_calls<&resize_backward_body<kSpatial, kNearest>>(aten, nearest + "_backward");
  register_calls<&resize_backward_body<kSpatial, kNearestExact>>(aten, exact + "_backward");
  register_calls<&resize_backward_body<kSpatial, kLinear>>(aten, linear + "_backward");
}
template <int kSpatial>
void register_pools(Library& aten, const std::string& d) {
  const std::string max = "max_pool" + d + "_with_indices", average = "avg_pool" + d;
  const std::string adaptive = "adaptive_max_pool" + d, mean = "_adaptive_avg_pool" + d;
  register_calls<&max_pool_body<kSpatial>>(aten, max);
  register_calls<&max_pool_backward_body<kSpatial>>(aten, max + "_backward");
  register_calls<&average_body<kSpatial>>(aten, average);
  register_calls<&average_backward_body<kSpatial>>(aten, average + "_backward");
  register_calls<&adaptive_max_body<kSpatial>>(aten, adaptive + " " + adaptive + ".out");
  register_calls<&adaptive_max_backward_body<kSpatial>>(aten, adaptive + "_backward");
  register_calls<&adaptive_average_body<kSpatial>>(aten, mean);
  register_calls<&adaptive_average_backward_body<kSpatial>>(aten, mean + "_backward");
}

}  // namespace

void register_windows(Library& aten) {
  register_pools<2>(aten, "2d");
  register_pools<3>(aten, "3d");
  register_pads<1>(aten, "1d");
  register_pads<2>(aten, "2d");
  register_pads<3>(aten, "3d");
  register_resizes<1>(aten, "1d", "upsample_linear1d");
  register_resizes<2>(aten, "2d", "upsample_bilinear2d");
  register_resizes<3>(aten, "3d", "upsample_trilinear3d");
  register_calls<&im2col_body>(aten, "im2col im2col.out");
  register_calls<&col2im_body>(aten, "col2im col2im.out");
}

}  // namespace lamella::cuda
