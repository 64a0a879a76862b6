// Convolutions as calls into liblamella_blas.so or as matrix products; some as those of Note
// [Winograd].
//
// Note [Convolutions as matrix products]
//   The patch that each output position sees becomes a column of a matrix: for one sample and
//   group, dst = weight * columns, the columns' gradient is weight^T * dst, and the weight's is dst
//   * columns^T. A kernel of one element with stride 1 needs no copy: the source has that layout.
#include "lamella/kernels/cpu/convolution.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "lamella/api/from_blob.h"
#include "lamella/core/interrupt.h"
#include "lamella/core/kept_forms.h"
#include "lamella/kernels/cpu/blas_library.h"
#include "lamella/kernels/cpu/convolution_parts.h"
#include "lamella/kernels/cpu/gemm.h"
#include "lamella/kernels/device_math.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

bool convolution_by_library(const Convolution& c) {
  // Accepts only consistent sizes: the output padding of a transposed convolution may exceed its
  // stride if its dilation is larger still.
  for (int d = 0; d < c.ndim; ++d) {
    int64_t room = c.in[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1;
    if (room < 0 || room / c.stride[d] + 1 != c.out[d]) return false;
  }
  return c.dtype == kFloat || (c.dtype == kBFloat16 && has_gemm(kBFloat16));
}

namespace {

// ---- Calls into liblamella_blas.so ----
//
// Note [Shares of a convolution]
//   The library computes on the calling thread, so the problem is cut into shares, one call each:
//   along the batch, the groups, or the channels that only the result has. Each share copies the
//   operand that all shares read into the fastest layout, so the cut is chosen to make that operand
//   small. Gradients of weights are sums over the batch: each share of the batch computes a partial
//   sum, and these are added.

// Bounds of the multiplications in one call: the minimum for threads that share a convolution (some
// 100 microseconds), and the maximum, so that interrupts are noticed between calls.
constexpr double kMinShareWork = 1 << 22;
constexpr double kMaxShareWork = 4e9;
// Channels are cut at multiples of the library's vector length.
constexpr int64_t kChannelStep = 16;

// Provides memory that a call of the library requests while it runs.
struct CallMemory {
  Storage* storage;  // of the weights, if they may be constants
  const void* weights;
  std::vector<Tensor> scratch;
  std::unique_ptr<KeptForm> form;
};
void call_library(const char* op, const lamella_convolution& problem, Storage* storage) {
  lamella_convolution p = problem;
  CallMemory memory{storage, p.weights, {}, nullptr};
  p.context = &memory;
  p.scratch = [](void* context, uint64_t bytes) -> void* {
    auto* kept = &static_cast<CallMemory*>(context)->scratch;
    kept->push_back(new_tensor({static_cast<int64_t>(bytes)}, kByte, kCPU));
    return kept->back().data_ptr();
  };
  auto kept = [](void* context, uint64_t layout, uint64_t bytes, int32_t* is_filled) -> void* {
    // Keys of matrix products have no negative sizes, so this number distinguishes these forms.
    constexpr int64_t kOfConvolution = -1;
    auto* m = static_cast<CallMemory*>(context);
    KeptFormKey key = {reinterpret_cast<int64_t>(m->weights), kOfConvolution,
                       static_cast<int64_t>(layout), static_cast<int64_t>(bytes)};
    m->form = std::make_unique<KeptForm>(m->storage, key, static_cast<int64_t>(bytes));
    if (m->form->data() != nullptr) {
      *is_filled = 1;
      return const_cast<void*>(m->form->data());
    }
    *is_filled = 0;
    return m->form->is_wanted() ? m->form->make() : nullptr;
  };
  if (storage != nullptr) p.kept = kept;
  char message[256] = "";
  int32_t status = blas_library().convolution(&p, message, sizeof(message));
  LAMELLA_CHECK(status == LAMELLA_BLAS_OK, op, ": the library of convolutions failed: ", message);
  if (memory.form != nullptr && memory.form->is_wanted()) memory.form->keep();
}

enum class Cut { kBatch, kGroups, kInChannels, kOutChannels };

// A problem and its sizes in elements.
struct Shares {
  const lamella_convolution& p;
  int64_t in_area = 1, out_area = 1, taps = 1;  // of one channel; of one kernel
  double work;

  explicit Shares(const lamella_convolution& problem) : p(problem) {
    for (int d = 0; d < p.ndim; ++d) {
      in_area *= p.in[d];
      out_area *= p.out[d];
      taps *= p.kernel[d];
    }
    work = static_cast<double>(p.batch * p.out_channels) * static_cast<double>(out_area) *
           static_cast<double>(p.in_channels / p.groups * taps);
  }

  // The number of units of a cut, and the elements that each share must copy besides its own part.
  int64_t units(Cut cut) const {
    switch (cut) {
      case Cut::kBatch:
        return p.batch;
      case Cut::kGroups:
        return p.groups;
      case Cut::kInChannels:
        return (p.in_channels + kChannelStep - 1) / kChannelStep;
      default:
        return (p.out_channels + kChannelStep - 1) / kChannelStep;
    }
  }
  int64_t common(Cut cut) const {
    switch (cut) {
      case Cut::kBatch:
        return p.out_channels * (p.in_channels / p.groups) * taps;
      case Cut::kGroups:
        return 0;
      case Cut::kInChannels:
        return p.batch * p.out_channels * out_area;
      default:
        return p.batch * p.in_channels * in_area;
    }
  }
  Cut best(int64_t wanted) const {
    Cut found = Cut::kBatch;
    auto consider = [&](Cut cut) {
      int64_t now = std::min(units(found), wanted), then = std::min(units(cut), wanted);
      if (then > now || (then == now && common(cut) < common(found))) found = cut;
    };
    if (p.groups != 1) consider(Cut::kGroups);
    bool all_out = p.kind != LAMELLA_CONVOLUTION_BACKWARD_DATA;
    bool all_in = p.kind != LAMELLA_CONVOLUTION_FORWARD;
    if (p.groups == 1 && all_in) consider(Cut::kInChannels);
    if (p.groups == 1 && all_out) consider(Cut::kOutChannels);
    return found;
  }

  // Units [begin, end) of the cut.
  lamella_convolution share(Cut cut, int64_t begin, int64_t end) const {
    lamella_convolution part = p;
    auto move_by = [](auto*& data, int64_t bytes) {
      constexpr bool is_read = std::is_const_v<std::remove_pointer_t<decltype(+data)>>;
      using Byte = std::conditional_t<is_read, const char, char>;
      if (data != nullptr) data = static_cast<Byte*>(data) + bytes;
    };
    // Weights that are written are float32, as is the bias.
    bool writes_weights = p.kind == LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS;
    const int64_t size = p.bfloat16 ? 2 : 4, weight_size = writes_weights ? 4 : size;
    auto move = [&](void*& data, int64_t elements) { move_by(data, elements * size); };
    auto move_weights = [&](int64_t elements) { move_by(part.weights, elements * weight_size); };
    int64_t first_in = 0, first_out = 0;
    if (cut == Cut::kBatch) {
      part.batch = end - begin;
      move(part.src, begin * p.src_strides[0]);
      move(part.dst, begin * p.dst_strides[0]);
    } else if (cut == Cut::kGroups) {
      int64_t in_each = p.in_channels / p.groups, out_each = p.out_channels / p.groups;
      part.groups = end - begin;
      part.in_channels = part.groups * in_each;
      part.out_channels = part.groups * out_each;
      first_in = begin * in_each;
      first_out = begin * out_each;
    } else if (cut == Cut::kInChannels) {
      first_in = begin * kChannelStep;
      part.in_channels = std::min(end * kChannelStep, p.in_channels) - first_in;
      move_weights(first_in * p.weights_strides[1]);
    } else {
      first_out = begin * kChannelStep;
      part.out_channels = std::min(end * kChannelStep, p.out_channels) - first_out;
    }
    move(part.src, first_in * p.src_strides[1]);
    move(part.dst, first_out * p.dst_strides[1]);
    move_weights(first_out * p.weights_strides[0]);
    move_by(part.bias, first_out * 4);
    return part;
  }
};

lamella_convolution library_problem(const Convolution& c, int kind) {
  lamella_convolution p{};
  p.kind = static_cast<uint8_t>(kind);
  p.ndim = static_cast<uint8_t>(c.ndim);
  p.batch = c.batch;
  p.groups = c.groups;
  p.in_channels = c.in_channels;
  p.out_channels = c.out_channels;
  for (int d = 0; d < c.ndim; ++d) {
    p.in[d] = c.in[d];
    p.out[d] = c.out[d];
    p.kernel[d] = c.kernel[d];
    p.stride[d] = c.stride[d];
    p.padding[d] = p.padding_end[d] = c.padding[d];
    p.dilation[d] = c.dilation[d];
  }
  auto lay = [&](int64_t(&strides)[5], const int64_t* sizes, int64_t channels, bool last) {
    int64_t next = last ? channels : 1;
    for (int d = c.ndim; d-- > 0; next *= sizes[d]) strides[d + 2] = next;
    strides[1] = last ? 1 : next;
    strides[0] = last ? next : next * channels;
  };
  lay(p.src_strides, c.in, c.in_channels, c.channels_last);
  lay(p.dst_strides, c.out, c.out_channels, c.channels_last);
  lay(p.weights_strides, c.kernel, c.in_channels / c.groups, false);
  p.bfloat16 = c.dtype == kBFloat16;
  return p;
}

void run_library(const char* op, const Convolution& c, int kind, const Tensor& src,
                 const Tensor& weight, const Tensor& bias, const Tensor& dst) {
  lamella_convolution p = library_problem(c, kind);
  p.src = src.data_ptr();
  p.weights = weight.data_ptr();
  p.bias = bias.defined() ? bias.const_data_ptr() : nullptr;
  p.dst = dst.data_ptr();
  bool reads_weights = kind != LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS;
  library_convolution(op, p, reads_weights ? weight.storage_impl() : nullptr);
}
}  // namespace

void library_convolution(const char* op, const lamella_convolution& p, Storage* storage) {
  if (winograd_convolution(p, storage)) return;
  Shares shares(p);
  bool is_sum = p.kind == LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS;
  int64_t threads = in_parallel_region() ? 1 : get_num_threads();
  auto most = static_cast<int64_t>(shares.work / (is_sum ? kLeastSum : kMinShareWork)) + 1;
  auto least = static_cast<int64_t>(shares.work / kMaxShareWork) + 1;
  // The order of sums over the batch follows from the sizes alone.
  int64_t useful = is_sum ? kMaxSums : threads == 1 ? 1 : 2 * threads;
  int64_t wanted = std::max(least, std::min(useful, most));
  if (wanted == 1) return call_library(op, p, storage);
  Cut cut = shares.best(wanted);
  int64_t units = shares.units(cut), each = (units + wanted - 1) / wanted;
  int64_t count = (units + each - 1) / each;
  auto run = [&](int64_t i, float* sum) {
    check_interrupt();
    lamella_convolution part = shares.share(cut, i * each, std::min((i + 1) * each, units));
    if (sum != nullptr) part.weights = sum;
    call_library(op, part, storage);
  };
  if (is_sum && cut == Cut::kBatch) {
    int64_t elements = p.out_channels * (p.in_channels / p.groups) * shares.taps;
    return sum_of_shares(count, static_cast<float*>(p.weights), elements, run);
  }
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run(i, nullptr);
  });
}

namespace {

// ---- Matrix products ----

// Sizes that are equal for all samples and groups, and the memory for columns.
struct Parts {
  Volume v;
  int64_t in_each, out_each, rows;  // channels of a group; rows of the columns
  bool direct;
  Tensor columns;
  size_t bytes;

  Parts(const Convolution& c, bool needs_columns)
      : v(c),
        in_each(c.in_channels / c.groups),
        out_each(c.out_channels / c.groups),
        rows(in_each * v.taps),
        direct(v.is_pointwise()),
        bytes(element_size(c.dtype)) {
    if (needs_columns && !direct) columns = new_tensor({rows, v.outputs}, c.dtype, kCPU);
  }
  // Addresses of group g of sample n in src and dst, and of the weights of group g.
  char* at_src(const Tensor& src, const Convolution& c, int64_t n, int64_t g) const {
    return offset(src, (n * c.groups + g) * in_each * v.inputs);
  }
  char* at_dst(const Tensor& dst, const Convolution& c, int64_t n, int64_t g) const {
    return offset(dst, (n * c.groups + g) * out_each * v.outputs);
  }
  // The matrix of the windows of group g of sample n in src.
  const void* columns_of(const char* op, const Tensor& src, const Convolution& c, int64_t n,
                         int64_t g) const {
    const void* from = at_src(src, c, n, g);
    if (direct) return from;
    to_columns(op, c.dtype, v, from, columns.data_ptr(), in_each);
    return columns.data_ptr();
  }
  char* at_weight(const Tensor& weight, int64_t g) const {
    return offset(weight, g * out_each * rows);
  }

 private:
  char* offset(const Tensor& t, int64_t elements) const {
    return static_cast<char*>(t.data_ptr()) + elements * static_cast<int64_t>(bytes);
  }
};
Matrices matrix(const void* data, int64_t columns) { return {data, columns, 1, 0}; }

void plain_forward(const char* op, const Convolution& c, const Tensor& src, const Tensor& weight,
                   const Tensor& bias, const Tensor& dst) {
  Parts parts(c, true);
  if (bias.defined()) {
    Dims shape(1, 1);
    shape.push_back(c.out_channels);
    for (int d = 0; d < c.ndim; ++d) shape.push_back(1);
    const_cast<Tensor&>(dst).copy_(bias.view(shape));
  }
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t g = 0; g < c.groups; ++g) {
      check_interrupt();
      const void* from = parts.columns_of(op, src, c, n, g);
      gemm(op, {c.dtype, 1, parts.out_each, parts.v.outputs, parts.rows,
                matrix(parts.at_weight(weight, g), parts.rows), matrix(from, parts.v.outputs),
                matrix(parts.at_dst(dst, c, n, g), parts.v.outputs), 1, bias.defined() ? 1 : 0});
    }
  }
}

void plain_backward_data(const char* op, const Convolution& c, const Tensor& dst,
                         const Tensor& weight, const Tensor& src) {
  Parts parts(c, true);
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t g = 0; g < c.groups; ++g) {
      check_interrupt();
      void* to = parts.at_src(src, c, n, g);
      void* columns = parts.direct ? to : parts.columns.data_ptr();
      gemm(op,
           {c.dtype, 1, parts.rows, parts.v.outputs, parts.out_each,
            matrix(parts.at_weight(weight, g), parts.rows).transposed(),
            matrix(parts.at_dst(dst, c, n, g), parts.v.outputs), matrix(columns, parts.v.outputs)});
      if (!parts.direct) from_columns(op, c.dtype, parts.v, columns, to, parts.in_each);
    }
  }
}

void plain_backward_weight(const char* op, const Convolution& c, const Tensor& src,
                           const Tensor& dst, const Tensor& weight) {
  Parts parts(c, true);
  if (c.batch == 0) const_cast<Tensor&>(weight).zero_();
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t g = 0; g < c.groups; ++g) {
      check_interrupt();
      const void* from = parts.columns_of(op, src, c, n, g);
      gemm(op, {c.dtype, 1, parts.out_each, parts.rows, parts.v.outputs,
                matrix(parts.at_dst(dst, c, n, g), parts.v.outputs),
                matrix(from, parts.v.outputs).transposed(),
                matrix(parts.at_weight(weight, g), parts.rows), 1, n == 0 ? 0 : 1});
    }
  }
}

bool is_small(ScalarType dtype) { return dtype == kHalf || dtype == kBFloat16; }
Tensor widened(const Tensor& t) { return t.defined() ? t.to(kFloat) : t; }
void narrow_into(const Tensor& to, const Tensor& from) { const_cast<Tensor&>(to).copy_(from); }

// True if the convolution is one matrix product in the given layout: its kernel has one element and
// stride 1, and channels are outermost.
bool is_product(const Convolution& c) {
  constexpr int64_t kLeastColumns = 256;
  Volume v(c);
  return !c.channels_last && c.groups == 1 && v.is_pointwise() && v.outputs >= kLeastColumns;
}

// ---- Small types ----

// Small types are computed in float32, except where the library supports bfloat16.
Convolution in_float(Convolution c) {
  c.dtype = kFloat;
  return c;
}
// True if the library has fast bfloat16 code. Groups of fewer channels are faster in float32.
constexpr int64_t kLeastPaired = 8;
bool is_fast_small(const Convolution& c, int kind) {
  if (c.dtype != kBFloat16 || !convolution_by_library(c) || c.batch == 0 ||
      std::min(c.in_channels, c.out_channels) / c.groups < kLeastPaired) {
    return false;
  }
  lamella_convolution p = library_problem(c, kind);
  char message[256];
  return blas_library().convolution(&p, message, sizeof(message)) == LAMELLA_BLAS_OK;
}
}  // namespace

void convolution_forward(const char* op, const Convolution& c, const Tensor& src,
                         const Tensor& weight, const Tensor& bias, const Tensor& dst) {
  if (dst.numel() == 0) return;
  if (const Device device = dst.device(); !device.is_cpu()) {
    const bool solved = device_math(op, device).forward(op, c, src, weight, bias, dst);
    return check_solved(solved, op, device);
  }
  if (is_small(c.dtype)) {
    if (src.numel() > 0 && is_fast_small(c, LAMELLA_CONVOLUTION_FORWARD)) {
      return run_library(op, c, LAMELLA_CONVOLUTION_FORWARD, src, weight, widened(bias), dst);
    }
    Tensor wide = new_strided(dst.sizes(), dst.strides(), kFloat, kCPU);
    convolution_forward(op, in_float(c), widened(src), widened(weight), widened(bias), wide);
    return narrow_into(dst, wide);
  }
  if (planes_forward(c, src, weight, bias, dst)) return;
  if (convolution_by_library(c) && !is_product(c) && src.numel() > 0) {
    return run_library(op, c, LAMELLA_CONVOLUTION_FORWARD, src, weight, bias, dst);
  }
  plain_forward(op, c, src, weight, bias, dst);
}
void convolution_backward_data(const char* op, const Convolution& c, const Tensor& dst,
                               const Tensor& weight, const Tensor& src) {
  if (src.numel() == 0) return;
  if (const Device device = src.device(); !device.is_cpu()) {
    const bool solved = device_math(op, device).backward_data(op, c, dst, weight, src);
    return check_solved(solved, op, device);
  }
  if (is_small(c.dtype)) {
    if (dst.numel() > 0 && is_fast_small(c, LAMELLA_CONVOLUTION_BACKWARD_DATA)) {
      return run_library(op, c, LAMELLA_CONVOLUTION_BACKWARD_DATA, src, weight, Tensor(), dst);
    }
    Tensor wide = new_strided(src.sizes(), src.strides(), kFloat, kCPU);
    convolution_backward_data(op, in_float(c), widened(dst), widened(weight), wide);
    return narrow_into(src, wide);
  }
  if (planes_backward_data(c, dst, weight, src)) return;
  if (convolution_by_library(c) && dst.numel() > 0) {
    return run_library(op, c, LAMELLA_CONVOLUTION_BACKWARD_DATA, src, weight, Tensor(), dst);
  }
  plain_backward_data(op, c, dst, weight, src);
}
void convolution_backward_weight(const char* op, const Convolution& c, const Tensor& src,
                                 const Tensor& dst, const Tensor& weight) {
  if (weight.numel() == 0) return;
  if (const Device device = weight.device(); !device.is_cpu()) {
    const bool solved = device_math(op, device).backward_weight(op, c, src, dst, weight);
    return check_solved(solved, op, device);
  }
  if (is_small(c.dtype)) {
    Tensor wide = new_tensor(weight.sizes(), kFloat, kCPU);
    if (src.numel() > 0 && dst.numel() > 0 &&
        is_fast_small(c, LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS)) {
      run_library(op, c, LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS, src, wide, Tensor(), dst);
      return narrow_into(weight, wide);
    }
    convolution_backward_weight(op, in_float(c), widened(src), widened(dst), wide);
    return narrow_into(weight, wide);
  }
  if (planes_backward_weight(c, src, dst, weight)) return;
  if (convolution_by_library(c) && src.numel() > 0 && dst.numel() > 0) {
    return run_library(op, c, LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS, src, weight, Tensor(), dst);
  }
  plain_backward_weight(op, c, src, dst, weight);
}

void convolution_in_place(const char* op, const lamella_convolution& p, Storage* storage) {
  Convolution c{kFloat, p.ndim, false, p.batch, p.groups, p.in_channels, p.out_channels, {},
                {},     {},     {},    {},      {}};
  std::copy_n(p.in, p.ndim, c.in);
  std::copy_n(p.out, p.ndim, c.out);
  std::copy_n(p.kernel, p.ndim, c.kernel);
  std::copy_n(p.stride, p.ndim, c.stride);
  std::copy_n(p.padding, p.ndim, c.padding);
  std::copy_n(p.dilation, p.ndim, c.dilation);
  const lamella_convolution rows = library_problem(c, p.kind);
  auto lies_so = [&](const int64_t* strides, const int64_t* wanted, int64_t first, int64_t second,
                     const int64_t* sizes) {
    for (int d = 0; d < p.ndim + 2; ++d) {
      int64_t size = d == 0 ? first : d == 1 ? second : sizes[d - 2];
      if (size != 1 && strides[d] != wanted[d]) return false;
    }
    return true;
  };
  constexpr int64_t kMaxPlaneInputs = 4;
  const int64_t inputs = p.in_channels / p.groups;
  bool has_own_way =
      (inputs <= kMaxPlaneInputs || (is_product(c) && p.kind == LAMELLA_CONVOLUTION_FORWARD)) &&
      convolution_by_library(c) &&
      lies_so(p.src_strides, rows.src_strides, p.batch, p.in_channels, p.in) &&
      lies_so(p.dst_strides, rows.dst_strides, p.batch, p.out_channels, p.out) &&
      lies_so(p.weights_strides, rows.weights_strides, p.out_channels, inputs, p.kernel);
  if (!has_own_way) return library_convolution(op, p, storage);
  auto tensor = [&](void* data, int64_t first, int64_t second, const int64_t* sizes) {
    Dims shape(1, first);
    shape.push_back(second);
    for (int d = 0; d < p.ndim; ++d) shape.push_back(sizes[d]);
    return from_blob(data, shape.ref(), kFloat);
  };
  Tensor src = tensor(p.src, p.batch, p.in_channels, p.in);
  Tensor weight = tensor(p.weights, p.out_channels, inputs, p.kernel);
  Tensor dst = tensor(p.dst, p.batch, p.out_channels, p.out);
  if (p.kind == LAMELLA_CONVOLUTION_FORWARD) {
    Tensor bias;
    if (p.bias != nullptr) bias = from_blob(const_cast<void*>(p.bias), {p.out_channels}, kFloat);
    convolution_forward(op, c, src, weight, bias, dst);
  } else if (p.kind == LAMELLA_CONVOLUTION_BACKWARD_DATA) {
    convolution_backward_data(op, c, dst, weight, src);
  } else {
    convolution_backward_weight(op, c, src, dst, weight);
  }
}

}  // namespace lamella::native
