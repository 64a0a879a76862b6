// Note [Shapes from the Meta backend] in call.h, and walks over operands.
#include "lamella/cuda/call.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "lamella/core/memory_overlap.h"
#include "lamella/cuda/driver.h"
#include "lamella/kernels/default_dtype.h"
#include "lamella/structured.h"

namespace lamella::cuda {
namespace {

// The arguments that an operator writes, and the operator's name without namespace.
struct Facts {
  std::vector<uint32_t> written;
  std::vector<std::string> names;
};
const Facts& facts_of(const lamella_operator* op) {
  static auto* all = new std::unordered_map<const lamella_operator*, Facts>();
  static std::mutex mutex;
  // What this thread asked for last, by the operator's address.
  static thread_local std::pair<const lamella_operator*, const Facts*> known[64];
  auto& last = known[reinterpret_cast<uintptr_t>(op) / sizeof(lamella_operator) % 64];
  if (LAMELLA_LIKELY(last.first == op)) return *last.second;
  std::lock_guard lock(mutex);
  auto [at, is_new] = all->try_emplace(op);
  if (is_new) {
    // "aten::gather.out(Tensor self, ..., *, Tensor(a!) out) -> Tensor(a!)"
    std::string_view schema = lamella_operator_schema(op);
    schema = schema.substr(schema.find('(') + 1);
    schema = schema.substr(0, schema.find(") ->"));
    size_t begin = 0;
    int depth = 0;
    for (size_t i = 0; i <= schema.size(); ++i) {
      const char c = i < schema.size() ? schema[i] : ',';
      depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
      if (c != ',' || depth != 0) continue;
      std::string_view argument = schema.substr(begin, i - begin);
      begin = i + 2;
      if (argument == "*") continue;
      argument = argument.substr(0, argument.find('='));
      if (argument.find('!') != std::string_view::npos) {
        at->second.written.push_back(static_cast<uint32_t>(at->second.names.size()));
      }
      at->second.names.emplace_back(argument.substr(argument.rfind(' ') + 1));
    }
  }
  last = {op, &at->second};
  return at->second;
}

// A tensor with the shape, strides and dtype of another, on a device.
Tensor made_with(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, bool is_contiguous,
                 Device device) {
  if (!is_contiguous) {
    return lamella::empty_strided(sizes, strides, TensorOptions(dtype).device(device));
  }
  lamella_tensor* made = nullptr;
  lamella::detail::check(lamella_tensor_empty(
      static_cast<int32_t>(sizes.size()), sizes.data(), static_cast<uint8_t>(dtype),
      static_cast<uint8_t>(device.type()), device.index(), &made));
  return Tensor(TensorBase::adopt(made));
}
Tensor made_like(const Tensor& t, Device device) {
  return made_with(t.sizes(), t.strides(), t.scalar_type(), t.is_contiguous(), device);
}
// What calls alike have in common: dtypes, sizes and strides of tensors, and other arguments.
struct Geometry {
  static constexpr int kMostDims = 8;
  ScalarType dtype;
  bool is_contiguous;
  int ndim;
  int64_t sizes[kMostDims], strides[kMostDims];
};
constexpr int kMostWords = 88;
struct KnownCall {
  std::mutex mutex;
  int words = 0;
  int64_t key[kMostWords];
  int count = 0;
  Geometry outputs[2];
};
KnownCall& known_call(const lamella_operator* op) {
  constexpr uintptr_t kKnown = 64;
  static auto* all = new KnownCall[kKnown];
  return all[reinterpret_cast<uintptr_t>(op) / sizeof(lamella_operator) % kKnown];
}

Tensor on_meta(const Tensor& t) { return t.defined() ? made_like(t, kMeta) : t; }

}  // namespace

std::vector<Tensor> Call::tensors(int i) const {
  std::vector<Tensor> result;
  result.reserve(count(i));
  for (size_t k = 0; k < count(i); ++k) result.push_back(tensor_of(i, k));
  return result;
}
std::vector<int64_t> Call::integers(int i) const {
  const lamella_value& list = at(i);
  const auto* from = static_cast<const int64_t*>(list.as.pointer);
  return std::vector<int64_t>(from, from + list.size);
}
void Call::start_from(const Tensor& self) const {
  if (!output().is_same(self)) lamella::_copy_from(self, output(), false);
}

struct Call::Key {
  int count = 0;
  int64_t words[kMostWords];
  int device = -1;
  bool fits = true;  // and all tensors are on the device

  void add(int64_t word) {
    if (count < kMostWords) words[count] = word;
    fits = fits && count++ < kMostWords;
  }
  void add(const void* bytes, size_t size) {
    for (size_t k = 0; k < size; k += 8) {
      int64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(bytes) + k, std::min<size_t>(8, size - k));
      add(word);
    }
  }
  void add(const lamella_tensor* t) {
    if (t == nullptr) return add(-1);
    if (device < 0) device = t->device_index;
    fits = fits && t->device_type == static_cast<uint8_t>(DeviceType::CUDA) &&
           t->device_index == device && t->ndim <= Geometry::kMostDims;
    if (!fits) return;
    constexpr uint32_t kSeen =
        LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG | LAMELLA_TENSOR_WRAPPED_NUMBER;
    add(t->ndim | t->scalar_type << 8 | static_cast<int64_t>(t->flags & kSeen) << 16);
    for (int32_t d = 0; d < t->ndim; ++d) {
      add(t->sizes[d]);
      add(t->strides[d]);
    }
  }
  void add(const lamella_value& value) {
    add(value.tag | static_cast<int64_t>(value.size) << 8);
    switch (value.tag) {
      case LAMELLA_NONE:
        return;
      case LAMELLA_TENSOR:
        return add(value.as.tensor);
      case LAMELLA_TENSOR_LIST:
        for (uint32_t k = 0; k < value.size && fits; ++k) {
          add(static_cast<lamella_tensor* const*>(value.as.pointer)[k]);
        }
        return;
      case LAMELLA_INT:
      case LAMELLA_DOUBLE:
      case LAMELLA_BOOL:
        return add(value.as.i);
      case LAMELLA_STRING:
      case LAMELLA_BOOL_LIST:
        return add(value.as.pointer, value.size);
      case LAMELLA_INT_LIST:
      case LAMELLA_DOUBLE_LIST:
        return add(value.as.pointer, value.size * size_t{8});
      default:
        fits = false;
    }
  }
};

// Makes the outputs of a call that is like the last one.
bool Call::look_up(Key* key) {
  key->add(reinterpret_cast<int64_t>(op_));
  key->add(static_cast<int64_t>(get_default_dtype()));
  for (uint32_t i = 0; i < op_->argument_count && key->fits; ++i) key->add(at(static_cast<int>(i)));
  if (!key->fits || key->device < 0) return false;
  Geometry found[2];
  int count = 0;
  {
    KnownCall& known = known_call(op_);
    std::lock_guard lock(known.mutex);
    if (known.words != key->count ||
        std::memcmp(known.key, key->words, static_cast<size_t>(key->count) * 8) != 0) {
      return false;
    }
    count = known.count;
    for (int i = 0; i < count; ++i) found[i] = known.outputs[i];
  }
  device_ = key->device;
  const Device device(DeviceType::CUDA, static_cast<DeviceIndex>(device_));
  for (int i = 0; i < count; ++i) {
    const Geometry& g = found[i];
    const auto rank = static_cast<size_t>(g.ndim);
    outputs_.push_back(
        made_with({g.sizes, rank}, {g.strides, rank}, g.dtype, g.is_contiguous, device));
  }
  return true;
}
void Call::note(const Key& key) const {
  KnownCall& known = known_call(op_);
  if (!key.fits || outputs_.size() > std::size(known.outputs)) return;
  for (const Tensor& t : outputs_) {
    if (t.dim() > Geometry::kMostDims) return;
  }
  std::lock_guard lock(known.mutex);
  known.words = key.count;
  std::copy_n(key.words, key.count, known.key);
  known.count = static_cast<int>(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Tensor& t = outputs_[i];
    Geometry& g = known.outputs[i];
    g.dtype = t.scalar_type();
    g.is_contiguous = t.is_contiguous();
    g.ndim = static_cast<int>(t.dim());
    std::copy(t.sizes().begin(), t.sizes().end(), g.sizes);
    std::copy(t.strides().begin(), t.strides().end(), g.strides);
  }
}

bool Call::prepare(Overlap overlap) {
  const Facts& facts = facts_of(op_);
  const std::string_view full = op_->name;
  name_ = op_->name + (full.find("::") == std::string_view::npos ? 0 : full.find("::") + 2);
  // What the kernel for Meta is called with: the arguments, with tensors on Meta that `held` owns.
  constexpr uint32_t kMostValues = 32;
  if (op_->argument_count > kMostValues || op_->return_count > kMostOutputs) return false;
  Key key;
  if (facts.written.empty() && look_up(&key)) return true;
  lamella_value raw[kMostValues], results[kMostOutputs];
  std::copy_n(arguments_, op_->argument_count, raw);
  std::vector<IValue> held;
  std::vector<Tensor> given;  // tensors of arguments, undefined for others
  bool here = true, any = false;
  std::vector<uint32_t> numbers;  // arguments of the host without dimensions
  held.reserve(op_->argument_count);
  given.reserve(op_->argument_count);
  auto see = [&](const Tensor& t) {
    if (!t.defined()) return;
    if (!t.is_cuda()) {
      here = false;
    } else if (!any) {
      device_ = t.device().index();
      any = true;
    } else {
      here = here && t.device().index() == device_;
    }
  };
  for (uint32_t i = 0; i < op_->argument_count; ++i) {
    given.emplace_back();
    if (arguments_[i].tag == LAMELLA_TENSOR) {
      given.back() = tensor(static_cast<int>(i));
      const Tensor& t = given.back();
      if (t.defined() && t.is_cpu() && t.dim() == 0) {
        numbers.push_back(i);
      } else {
        see(t);
      }
      if (!t.defined()) continue;
      held.emplace_back(on_meta(t));
      raw[i] = held.back().value();
    } else if (arguments_[i].tag == LAMELLA_TENSOR_LIST) {
      std::vector<Tensor> list = tensors(static_cast<int>(i));
      for (Tensor& t : list) {
        if (t.defined() && !(t.is_cpu() && t.dim() == 0)) see(t);
        t = on_meta(t);
      }
      held.emplace_back(ArrayRef<Tensor>(list));
      raw[i] = held.back().value();
    }
  }
  if (!here || !any) return false;
  const Device device(DeviceType::CUDA, static_cast<DeviceIndex>(device_));
  for (uint32_t i : numbers) {
    for (uint32_t w : facts.written) here = here && w != i;
    const Tensor number = given[i];
    given[i] = lamella::full({}, number.item(), TensorOptions(number.scalar_type()).device(device));
    held_.push_back(given[i]);
    if (changed_.empty()) changed_.assign(arguments_, arguments_ + op_->argument_count);
    arguments_ = changed_.data();
    changed_[i].as.tensor = given[i].impl();
  }
  if (!here) return false;
  for (uint32_t w : facts.written) {
    for (uint32_t i = 0; overlap != Overlap::kAny && i < given.size(); ++i) {
      const bool same = i == 0 && overlap == Overlap::kSelf && given[0].is_same(given[w]);
      if (i == w || !given[i].defined() || same) continue;
      std::string op(name_);
      check_no_overlap(op.c_str(), facts.names[w].c_str(), given[w], facts.names[i].c_str(),
                       given[i]);
    }
  }
  std::fill_n(results, op_->return_count, lamella_value{{0}, 0, 0, 0, 0});
  const uint64_t meta = DispatchKeySet(DispatchKey::Meta).raw_repr();
  lamella::detail::check(lamella::abi::call_boxed(op_, meta, raw, results));
  std::vector<Tensor> shapes;
  for (uint32_t i = 0; i < op_->return_count; ++i) {
    shapes.push_back(IValue::adopt(results[i]).toTensor());
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Tensor& shape = shapes[i];
    if (facts.written.empty()) {
      outputs_.push_back(made_like(shape, device));
      continue;
    }
    const uint32_t w = facts.written[i];
    const Tensor& target = given[w];
    targets_.push_back(target);
    bool apart = true;
    for (uint32_t k = 0; k < given.size(); ++k) {
      if (k == w || !given[k].defined()) continue;
      apart = apart && (given[k].is_same(target) || !may_share_memory(given[k], target));
    }
    for (uint32_t k = 0; k < op_->argument_count; ++k) {
      if (arguments_[k].tag != LAMELLA_TENSOR_LIST) continue;
      for (const Tensor& t : tensors(static_cast<int>(k))) {
        apart = apart && (!t.defined() || !may_share_memory(t, target));
      }
    }
    if (!apart) {
      outputs_.push_back(made_like(shape, device));
      const bool is_input = w == 0;
      if (is_input) outputs_.back().copy_(target);
      continue;
    }
    if (target.sizes() != shape.sizes()) {
      lamella::detail::resize_out(target, shape.sizes(),
                                  shape.is_contiguous() ? IntArrayRef() : shape.strides());
    }
    outputs_.push_back(target);
  }
  if (facts.written.empty()) note(key);
  return true;
}

void Call::finish(lamella_value* returns) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (targets_.empty()) {
      returns[i] = IValue(TensorBase(outputs_[i])).unsafe_release();
      continue;
    }
    Tensor& target = targets_[i];
    if (target.is_same(outputs_[i])) {
      lamella_tensor_bump_version(target.impl());
    } else {
      if (target.sizes() != outputs_[i].sizes()) {
        lamella::detail::resize_out(target, outputs_[i].sizes(), IntArrayRef());
      }
      target.copy_(outputs_[i]);
    }
    returns[i] = IValue(TensorBase(target)).unsafe_release();
  }
}

lamella_status run_call(CallBody body, Overlap overlap, const lamella_kernel* kernel,
                        const lamella_operator* op, uint64_t key_set,
                        const lamella_value* arguments, lamella_value* returns) noexcept {
  for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = lamella_value{{0}, 0, 0, 0, 0};
  bool done = false;
  const lamella_status status = lamella::detail::guarded([&] {
    Call call(op, arguments);
    if (!call.prepare(overlap)) return;
    ContextGuard guard(call.device());
    done = body(call);
    if (done) call.finish(returns);
  });
  if (done || status != LAMELLA_OK) return status;
  return counting_fallback(kernel, op, key_set, arguments, returns);
}

// ---- Walks ----

bool lay_walk(IntArrayRef sizes, const Strided* operands, int count, Walk<1>* head,
              int64_t (*strides)[kWalkDims], uint64_t* data) {
  head->numel = 1;
  head->ndim = 0;
  for (int k = 0; k < count; ++k) data[k] = reinterpret_cast<uint64_t>(operands[k].data);
  for (size_t d = sizes.size(); d-- > 0;) {
    const int64_t size = sizes[d];
    head->numel *= size;
    if (size == 1) continue;
    const int last = head->ndim - 1;
    bool joins = last >= 0;
    for (int k = 0; k < count && joins; ++k) {
      joins = operands[k].strides[d] * operands[k].bytes == head->sizes[last] * strides[k][last];
    }
    if (joins) {
      head->sizes[last] *= size;
      continue;
    }
    if (head->ndim == kWalkDims) return false;
    head->sizes[head->ndim] = size;
    for (int k = 0; k < count; ++k) {
      strides[k][head->ndim] = operands[k].strides[d] * operands[k].bytes;
    }
    ++head->ndim;
  }
  head->narrow = head->numel <= INT32_MAX ? 1 : 0;
  return true;
}

Sizes broadcast_strides(const Tensor& t, IntArrayRef sizes, size_t rank) {
  Sizes result(rank, 0);
  for (size_t back = 1; back <= t.sizes().size() && back <= sizes.size(); ++back) {
    const size_t d = t.sizes().size() - back;
    if (t.sizes()[d] != 1) result[rank - back] = t.strides()[d];
  }
  return result;
}

}  // namespace lamella::cuda
