// Convolutions of float32 and bfloat16 by oneDNN.
//
// Note [Layouts of a convolution]
//   oneDNN chooses the layouts for which its code is fastest; operands in other layouts are
//   reordered before the call, and results after it. The primitives of the most recent shapes are
//   cached with their reorders. The caller provides temporary memory, so primitives hold none and
//   may run on several threads at once.
#include "lamella/kernels/blas/convolution.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "lamella/kernels/blas/library_call.h"

namespace lamella::blas {

namespace {

using dnnl::memory;

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

// An operand in the given layout and in the primitive's layout.
struct Side {
  memory::desc outside, inside;
  dnnl::reorder reorder;  // into the primitive's layout, or out of it for the result
  memory::desc scratchpad;
  bool same = true;
  // Not 0: samples of as many channels, each `sample` elements after the one before, whose
  // channels the primitive wants innermost. oneDNN's reorder is several times slower at that.
  int64_t channels = 0, samples = 0, positions = 0, sample = 0;
  uint64_t layout = 0;  // of weights: a number for `inside`, read from `outside`
};

// to[j][i] = from[i][j] for rows i and columns j. Blocks whose rows in `to` are a multiple of a
// power of two apart go through a buffer, because such rows evict each other from the cache.
void transpose(const float* from, int64_t from_row, float* to, int64_t to_row, int64_t rows,
               int64_t columns) {
  typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
  constexpr int64_t kColumns = 16, kRows = 64, kBufferRow = kRows + 16, kNear = 512, kPower = 128;
  float buffer[kColumns * kBufferRow];
  bool near = to_row <= kNear || to_row % kPower != 0;
  const int64_t room_row = near ? to_row : kBufferRow;
  for (int64_t first = 0; first < rows; first += kRows) {
    int64_t count = rows - first < kRows ? rows - first : kRows;
    for (int64_t begin = 0; begin < columns; begin += kColumns) {
      int64_t width = columns - begin < kColumns ? columns - begin : kColumns, i = 0;
      float* room = near ? to + begin * to_row + first : buffer;
      for (; i + 4 <= count; i += 4) {
        const float* x = from + (first + i) * from_row + begin;
        int64_t j = 0;
        for (; j + 4 <= width; j += 4) {
          auto at = [&](int64_t r) { return *reinterpret_cast<const Four*>(x + r * from_row + j); };
          auto put = [&](int64_t r, Four v) {
            *reinterpret_cast<Four*>(room + (j + r) * room_row + i) = v;
          };
          Four a = at(0), b = at(1), c = at(2), d = at(3);
          Four low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
          Four high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
          Four low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
          Four high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
          put(0, __builtin_shufflevector(low, low2, 0, 1, 4, 5));
          put(1, __builtin_shufflevector(low, low2, 2, 3, 6, 7));
          put(2, __builtin_shufflevector(high, high2, 0, 1, 4, 5));
          put(3, __builtin_shufflevector(high, high2, 2, 3, 6, 7));
        }
        for (; j < width; ++j) {
          for (int64_t r = 0; r < 4; ++r) room[j * room_row + i + r] = x[r * from_row + j];
        }
      }
      for (; i < count; ++i) {
        const float* x = from + (first + i) * from_row + begin;
        for (int64_t j = 0; j < width; ++j) room[j * room_row + i] = x[j];
      }
      for (int64_t j = 0; j < width && !near; ++j) {
        std::memcpy(to + (begin + j) * to_row + first, buffer + j * kBufferRow,
                    static_cast<size_t>(count) * sizeof(float));
      }
    }
  }
}

struct ConvolutionPlan {
  dnnl::primitive primitive;
  Side first, second, result;  // the two that are read, the one that is written
  int first_arg, second_arg, result_arg;
  memory::desc bias, scratchpad;
  bool is_fast;  // not oneDNN's reference code
};

struct ConvolutionKey {
  std::vector<int64_t> words;
  bool operator==(const ConvolutionKey& other) const { return words == other.words; }
};
struct KeyHash {
  size_t operator()(const ConvolutionKey& key) const {
    uint64_t h = 1469598103934665603u;
    for (int64_t w : key.words) h = (h ^ static_cast<uint64_t>(w)) * 1099511628211u;
    return h;
  }
};
ConvolutionKey key_of(const lamella_convolution& p) {
  ConvolutionKey key;
  key.words = {p.kind,  p.ndim,   p.bias != nullptr, p.bfloat16,
               p.batch, p.groups, p.in_channels,     p.out_channels};
  for (int d = 0; d < p.ndim; ++d) {
    for (const int64_t* list :
         {p.in, p.out, p.kernel, p.stride, p.padding, p.padding_end, p.dilation}) {
      key.words.push_back(list[d]);
    }
  }
  for (int d = 0; d < p.ndim + 2; ++d) {
    for (const int64_t* list : {p.src_strides, p.weights_strides, p.dst_strides}) {
      key.words.push_back(list[d]);
    }
  }
  return key;
}

Side side(const memory::desc& outside, const memory::desc& inside, bool is_result) {
  Side s;
  s.outside = outside;
  s.inside = inside;
  s.same = outside == inside;
  if (!s.same) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const memory::desc& from = is_result ? inside : outside;
    const memory::desc& to = is_result ? outside : inside;
    dnnl::reorder::primitive_desc desc(engine(), from, engine(), to, attributes);
    s.scratchpad = desc.scratchpad_desc();
    s.reorder = dnnl::reorder(desc);
  }
  return s;
}

// A number that identifies the layout of cached weights.
uint64_t layout_of(const Side& s) {
  uint64_t h = 1469598103934665603u;
  auto add = [&](int64_t word) { h = (h ^ static_cast<uint64_t>(word)) * 1099511628211u; };
  for (const memory::desc* one : {&s.outside, &s.inside}) {
    const dnnl_memory_desc_t& d = one->data;
    add(d.data_type);
    add(d.format_kind);
    add(static_cast<int64_t>(one->get_size()));
    for (int n = 0; n < d.ndims; ++n) {
      add(d.dims[n]);
      add(d.padded_dims[n]);
      if (d.format_kind == dnnl_blocked) add(d.format_desc.blocking.strides[n]);
    }
    if (d.format_kind != dnnl_blocked) continue;
    for (int n = 0; n < d.format_desc.blocking.inner_nblks; ++n) {
      add(d.format_desc.blocking.inner_blks[n]);
      add(d.format_desc.blocking.inner_idxs[n]);
    }
  }
  return h;
}

std::shared_ptr<const ConvolutionPlan> make_plan(const lamella_convolution& p) {
  constexpr auto f32 = memory::data_type::f32;
  const auto type = p.bfloat16 ? memory::data_type::bf16 : f32;
  // Gradients of weights are sums, which stay in float32.
  const auto weights_type = p.kind == LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS ? f32 : type;
  using tag = memory::format_tag;
  auto list = [&](const int64_t* values, int64_t less = 0) {
    memory::dims dims;
    for (int d = 0; d < p.ndim; ++d) dims.push_back(values[d] - less);
    return dims;
  };
  auto shape = [&](std::initializer_list<int64_t> lead, const int64_t* spatial) {
    memory::dims dims(lead);
    for (int d = 0; d < p.ndim; ++d) dims.push_back(spatial[d]);
    return dims;
  };
  memory::dims src = shape({p.batch, p.in_channels}, p.in);
  memory::dims dst = shape({p.batch, p.out_channels}, p.out);
  int64_t in_each = p.in_channels / p.groups, out_each = p.out_channels / p.groups;
  memory::dims weights = p.groups == 1 ? shape({out_each, in_each}, p.kernel)
                                       : shape({p.groups, out_each, in_each}, p.kernel);
  static constexpr tag innermost[] = {tag::acb, tag::acdb, tag::acdeb};
  const tag last_tag = innermost[p.ndim - 1];
  const bool is_forward = p.kind == LAMELLA_CONVOLUTION_FORWARD;
  auto weights_any = [&](memory::data_type of) { return memory::desc(weights, of, tag::any); };
  // True if each sample is dense, with channels innermost if `last`. Strides of dimensions of size
  // 1 are ignored.
  auto is_dense = [&](const memory::dims& dims, const int64_t* strides, bool last) {
    int64_t expected = last ? dims[1] : 1;
    bool is = !last || dims[1] == 1 || strides[1] == 1;
    for (size_t d = dims.size(); d-- > 2; expected *= dims[d]) {
      is = is && (dims[d] == 1 || strides[d] == expected);
    }
    return is && (last || dims[1] == 1 || strides[1] == expected);
  };
  const bool src_last = is_dense(src, p.src_strides, true);
  const bool dst_last = is_dense(dst, p.dst_strides, true);
  // If channels are innermost in one operand, both use that layout. But if there are few input
  // channels, the source is read in place, and the result uses the library's blocked layout.
  constexpr int64_t kMaxInPlaceInputs = 4;
  const bool few = is_forward && p.groups == 1 && p.in_channels <= kMaxInPlaceInputs;
  const bool last = !few && ((src_last && p.in_channels != 1) || (dst_last && p.out_channels != 1));
  auto data_any = [&](const memory::dims& dims) {
    return memory::desc(dims, type, last ? last_tag : tag::any);
  };
  // The given layout; dimensions of one element get the strides that the library expects.
  auto data = [&](const memory::dims& dims, const int64_t* strides) {
    if (is_dense(dims, strides, last) || is_dense(dims, strides, !last)) {
      bool as_last = is_dense(dims, strides, last) ? last : !last;
      memory::dims made(dims.size());
      int64_t next = as_last ? dims[1] : 1;
      for (size_t d = dims.size(); d-- > 2; next *= dims[d]) made[d] = next;
      made[1] = as_last ? 1 : next;
      made[0] = dims[0] == 1 ? (as_last ? next : next * dims[1]) : strides[0];
      return memory::desc(dims, type, made);
    }
    return memory::desc(dims, type, memory::dims(strides, strides + dims.size()));
  };
  auto note_channels = [&](Side& s, const memory::dims& dims, const int64_t* strides) {
    if (s.same || p.bfloat16 || !is_dense(dims, strides, false) ||
        s.inside != memory::desc(dims, f32, last_tag)) {
      return;
    }
    s.samples = dims[0];
    s.channels = dims[1];
    s.positions = 1;
    for (size_t d = 2; d < dims.size(); ++d) s.positions *= dims[d];
    s.sample = strides[0];
  };
  auto weights_as_given = [&] {
    memory::dims strides(p.weights_strides, p.weights_strides + p.ndim + 2);
    if (p.groups != 1) strides.insert(strides.begin(), strides[0] * out_each);
    return memory::desc(weights, weights_type, strides);
  };

  auto plan = std::make_shared<ConvolutionPlan>();
  auto note_code = [&](const char* name) { plan->is_fast = std::strstr(name, "ref") == nullptr; };
  if (p.bias != nullptr) plan->bias = memory::desc({p.out_channels}, f32, tag::a);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  memory::dims stride = list(p.stride), dilation = list(p.dilation, 1), pad = list(p.padding),
               pad_end = list(p.padding_end);
  auto forward_kind =
      is_forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  auto forward_of = [&](const memory::desc& from, const memory::desc& to) {
    using Forward = dnnl::convolution_forward;
    return Forward::primitive_desc(
        p.bias != nullptr ? Forward::desc(forward_kind, algorithm, from, weights_any(type),
                                          plan->bias, to, stride, dilation, pad, pad_end)
                          : Forward::desc(forward_kind, algorithm, from, weights_any(type), to,
                                          stride, dilation, pad, pad_end),
        attributes, engine());
  };
  auto forward = forward_of(data_any(src), data_any(dst));
  // With very few products per element, results in blocks of channels are faster.
  constexpr int64_t kBlock = 16, kMaxBlockedProducts = 32;
  static constexpr tag outermost[] = {tag::abc, tag::abcd, tag::abcde};
  static constexpr tag in_blocks[] = {tag::aBc16b, tag::aBcd16b, tag::aBcde16b};
  int64_t products = p.in_channels;
  for (int d = 0; d < p.ndim; ++d) products *= p.kernel[d];
  bool is_blocked = few && dst_last && !p.bfloat16 && products <= kMaxBlockedProducts &&
                    p.out_channels % kBlock == 0 && is_dense(src, p.src_strides, false);
  if (is_blocked) {
    try {
      auto blocked = forward_of(memory::desc(src, type, outermost[p.ndim - 1]),
                                memory::desc(dst, type, in_blocks[p.ndim - 1]));
      is_blocked = std::strstr(blocked.impl_info_str(), "ref") == nullptr;
      if (is_blocked) forward = blocked;
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      is_blocked = false;
    }
  }
  memory::desc src_out = data(src, p.src_strides), dst_out = data(dst, p.dst_strides),
               weights_out = weights_as_given();
  if (is_forward) {
    plan->primitive = dnnl::convolution_forward(forward);
    note_code(forward.impl_info_str());
    plan->first = side(src_out, forward.src_desc(), false);
    plan->second = side(weights_out, forward.weights_desc(), false);
    plan->result = side(dst_out, forward.dst_desc(), true);
    plan->first_arg = DNNL_ARG_SRC;
    plan->second_arg = DNNL_ARG_WEIGHTS;
    plan->result_arg = DNNL_ARG_DST;
    // One block is all channels, side by side.
    int64_t sample = kBlock;
    for (int d = 0; d < p.ndim; ++d) sample *= p.out[d];
    bool is_one = p.out_channels == kBlock && (p.batch == 1 || p.dst_strides[0] == sample);
    if (is_blocked && is_one) plan->result.same = true;
    plan->scratchpad = forward.scratchpad_desc();
  } else if (p.kind == LAMELLA_CONVOLUTION_BACKWARD_DATA) {
    dnnl::convolution_backward_data::primitive_desc desc(
        dnnl::convolution_backward_data::desc(algorithm, data_any(src), weights_any(type),
                                              data_any(dst), stride, dilation, pad, pad_end),
        attributes, engine(), forward);
    plan->primitive = dnnl::convolution_backward_data(desc);
    note_code(desc.impl_info_str());
    plan->first = side(dst_out, desc.diff_dst_desc(), false);
    plan->second = side(weights_out, desc.weights_desc(), false);
    plan->result = side(src_out, desc.diff_src_desc(), true);
    plan->first_arg = DNNL_ARG_DIFF_DST;
    plan->second_arg = DNNL_ARG_WEIGHTS;
    plan->result_arg = DNNL_ARG_DIFF_SRC;
    plan->scratchpad = desc.scratchpad_desc();
  } else {
    dnnl::convolution_backward_weights::primitive_desc desc(
        dnnl::convolution_backward_weights::desc(algorithm, data_any(src), weights_any(f32),
                                                 data_any(dst), stride, dilation, pad, pad_end),
        attributes, engine(), forward);
    plan->primitive = dnnl::convolution_backward_weights(desc);
    note_code(desc.impl_info_str());
    plan->first = side(src_out, desc.src_desc(), false);
    plan->second = side(dst_out, desc.diff_dst_desc(), false);
    plan->result = side(weights_out, desc.diff_weights_desc(), true);
    plan->first_arg = DNNL_ARG_SRC;
    plan->second_arg = DNNL_ARG_DIFF_DST;
    plan->result_arg = DNNL_ARG_DIFF_WEIGHTS;
    plan->scratchpad = desc.scratchpad_desc();
  }
  for (Side* s : {&plan->first, &plan->second, &plan->result}) {
    if (s->outside == src_out) note_channels(*s, src, p.src_strides);
    if (s->outside == dst_out) note_channels(*s, dst, p.dst_strides);
  }
  plan->second.layout = layout_of(plan->second);
  return plan;
}

class ConvolutionPlanCache {
 public:
  std::shared_ptr<const ConvolutionPlan> get(const lamella_convolution& p) {
    ConvolutionKey key = key_of(p);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto found = index_.find(key);
      if (found != index_.end()) {
        recent_.splice(recent_.begin(), recent_, found->second);
        return recent_.front().second;
      }
    }
    std::shared_ptr<const ConvolutionPlan> plan = make_plan(p);
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = index_.find(key);
    if (found != index_.end()) return found->second->second;
    recent_.emplace_front(key, plan);
    index_[std::move(key)] = recent_.begin();
    if (recent_.size() > kCapacity) {
      index_.erase(recent_.back().first);
      recent_.pop_back();
    }
    return plan;
  }

 private:
  static constexpr size_t kCapacity = 512;
  using Recent = std::list<std::pair<ConvolutionKey, std::shared_ptr<const ConvolutionPlan>>>;
  std::mutex mutex_;
  Recent recent_;
  std::unordered_map<ConvolutionKey, Recent::iterator, KeyHash> index_;
};

void run(const lamella_convolution& p, const ConvolutionPlan& plan, void* first, void* second,
         void* result) {
  thread_local dnnl::stream stream(engine());
  auto scratch = [&](const memory::desc& desc) {
    size_t bytes = desc.get_size();
    return memory(desc, engine(), bytes == 0 ? nullptr : p.scratch(p.context, bytes));
  };
  auto reorder = [&](const Side& s, memory from, memory to) {
    s.reorder.execute(
        stream,
        {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratch(s.scratchpad)}});
  };
  auto brought_in = [&](const Side& s, void* data) {
    memory given(s.outside, engine(), data);
    if (s.same) return given;
    if (data == p.weights && p.kept != nullptr) {
      int32_t is_filled = 0;
      size_t bytes = s.inside.get_size();
      if (void* at = p.kept(p.context, s.layout, bytes, &is_filled)) {
        memory taken(s.inside, engine(), at);
        if (is_filled == 0) {
          reorder(s, given, taken);
          stream.wait();
        }
        return taken;
      }
    }
    memory taken = scratch(s.inside);
    if (s.channels == 0) {
      reorder(s, given, taken);
      return taken;
    }
    auto* to = static_cast<float*>(taken.get_data_handle());
    for (int64_t n = 0; n < s.samples; ++n) {
      transpose(static_cast<const float*>(data) + n * s.sample, s.positions,
                to + n * s.positions * s.channels, s.channels, s.channels, s.positions);
    }
    return taken;
  };
  memory written(plan.result.same ? plan.result.inside : plan.result.outside, engine(), result);
  memory made = plan.result.same ? written : scratch(plan.result.inside);
  std::unordered_map<int, memory> arguments = {{plan.first_arg, brought_in(plan.first, first)},
                                               {plan.second_arg, brought_in(plan.second, second)},
                                               {plan.result_arg, made},
                                               {DNNL_ARG_SCRATCHPAD, scratch(plan.scratchpad)}};
  if (p.bias != nullptr) {
    arguments[DNNL_ARG_BIAS] = memory(plan.bias, engine(), const_cast<void*>(p.bias));
  }
  plan.primitive.execute(stream, arguments);
  const Side& out = plan.result;
  if (!out.same && out.channels == 0) reorder(out, made, written);
  stream.wait();
  for (int64_t n = 0; n < out.samples; ++n) {
    auto* from = static_cast<const float*>(made.get_data_handle());
    transpose(from + n * out.positions * out.channels, out.channels,
              static_cast<float*>(result) + n * out.sample, out.positions, out.positions,
              out.channels);
  }
}

}  // namespace

int32_t convolution(const lamella_convolution* problem, char* message, uint64_t size) {
  const lamella_convolution& p = *problem;
  try {
    LibraryCall call;  // a fork waits for the call, and so for initialisation inside it
    static ConvolutionPlanCache* cache =
        new ConvolutionPlanCache;  // outlives threads that end after main
    std::shared_ptr<const ConvolutionPlan> plan = cache->get(p);
    if (p.src == nullptr && p.weights == nullptr && p.dst == nullptr) {
      return plan->is_fast ? LAMELLA_BLAS_OK : LAMELLA_BLAS_UNSUPPORTED;
    }
    switch (p.kind) {
      case LAMELLA_CONVOLUTION_FORWARD:
        run(p, *plan, p.src, p.weights, p.dst);
        break;
      case LAMELLA_CONVOLUTION_BACKWARD_DATA:
        run(p, *plan, p.dst, p.weights, p.src);
        break;
      default:
        run(p, *plan, p.src, p.dst, p.weights);
    }
    return LAMELLA_BLAS_OK;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return LAMELLA_BLAS_UNSUPPORTED;
    std::snprintf(message, size, "%s", error.what());
    return LAMELLA_BLAS_FAILED;
  } catch (const std::exception& error) {
    std::snprintf(message, size, "%s", error.what());
    return LAMELLA_BLAS_FAILED;
  }
}

}  // namespace lamella::blas
