// The handlers of XLA's typed custom calls by which JAX calls any operator of Lamella. Primitives,
// their rules and the attributes of calls are made in Python (bridge/_jax.py).
//
// Note [A call from XLA]
//   One pair of handlers serves all operators. When a program is compiled, `instantiate` reads the
//   attributes once and makes the plan of the call; each run reads the plan alone. Attributes:
//     operator   "ns::name.overload"
//     arguments  for each argument, between commas: t a buffer, l3 a list of three buffers, n none,
//                v the value of the attribute a0, a1, ... with the argument's number
//     given, needs   of a backward alone: which returns have a gradient, which slots want one
//   Buffers come in this order: a backward's gradients, the arguments.
//   An operator with an `out` form writes into XLA's buffers; otherwise its results are copied
//   there.
#include <cstring>
#include <memory>

#include "lamella/bridge/bridge.h"
#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::bridge {
namespace {

namespace ffi = hlo::ffi;

// Lamella's number of each of XLA's element types, 255: none.
constexpr uint8_t kScalarTypes[] = {255, 11, 1,   2,   3, 4,  0,   27, 28, 29, 5,
                                    6,   7,  255, 255, 9, 15, 255, 10, 23, 24};

struct CallPlan {
  const lamella_operator* op = nullptr;
  const lamella_operator* out = nullptr;  // its form that writes given tensors
  std::vector<Argument> arguments, returns;
  // For each argument, the number of buffers that hold it; -1: it is a value, -2: it is absent.
  std::vector<int> buffers;
  std::vector<lamella_value> values;
  std::vector<std::unique_ptr<std::string>> texts;
  std::vector<std::unique_ptr<std::vector<uint64_t>>> words;
  bool backward = false;
  uint64_t given = 0, needs = 0;
  std::vector<uint16_t> slots;
  bool saves_returns = false;
  // True if run_directly() can make the call; `places` are then the values that are buffers.
  bool is_direct = false;
  std::vector<uint8_t> places;
};
constexpr size_t kMostDirect = 12;  // values of a direct call

std::string_view text_of(const ffi::ByteSpan& span) { return {span.ptr, span.len}; }

int find(const ffi::Attrs& attrs, std::string_view name) {
  for (int64_t i = 0; i < attrs.size; ++i) {
    if (text_of(*attrs.names[i]) == name) return static_cast<int>(i);
  }
  return -1;
}
std::string string_attr(const ffi::Attrs& attrs, const char* name) {
  const int i = find(attrs, name);
  if (i < 0 || attrs.types[i] != ffi::AttrType::String) {
    throw Failure(std::string("bridge.jax: expected a string as the attribute '") + name + "'");
  }
  return std::string(text_of(*static_cast<ffi::ByteSpan*>(attrs.attrs[i])));
}
uint64_t int_attr(const ffi::Attrs& attrs, const char* name) {
  const int i = find(attrs, name);
  if (i < 0 || attrs.types[i] != ffi::AttrType::Scalar) return 0;
  return *static_cast<uint64_t*>(static_cast<ffi::Scalar*>(attrs.attrs[i])->value);
}

void set_value(CallPlan& plan, size_t i, const ffi::Attrs& attrs) {
  const Argument& argument = plan.arguments[i];
  lamella_value& out = plan.values[i];
  const int at = find(attrs, "a" + std::to_string(i));
  if (at < 0) throw Failure("bridge.jax: expected a value for '" + argument.name + "'");
  void* attr = attrs.attrs[at];
  const ffi::AttrType type = attrs.types[at];
  auto& words = *plan.words.emplace_back(new std::vector<uint64_t>);
  if (type == ffi::AttrType::Array) {
    const auto& array = *static_cast<ffi::Array*>(attr);
    const bool bools = argument.kind == Kind::kBoolList;
    words.resize(array.size + 1);
    std::memcpy(words.data(), array.data, array.size * sizeof(uint64_t));
    auto* bytes = reinterpret_cast<uint8_t*>(words.data());
    for (size_t k = 0; bools && k < array.size; ++k) bytes[k] = words[k] != 0;
    out.as.pointer = words.data();
    out.size = static_cast<uint32_t>(array.size);
    out.tag = bools                                ? LAMELLA_BOOL_LIST
              : argument.kind == Kind::kDoubleList ? LAMELLA_DOUBLE_LIST
                                                   : LAMELLA_INT_LIST;
  } else if (type == ffi::AttrType::String) {
    auto& text =
        *plan.texts.emplace_back(new std::string(text_of(*static_cast<ffi::ByteSpan*>(attr))));
    out.as.pointer = text.data();
    out.size = static_cast<uint32_t>(text.size());
    out.tag = LAMELLA_STRING;
  } else if (type == ffi::AttrType::Scalar) {
    const void* value = static_cast<ffi::Scalar*>(attr)->value;
    if (argument.kind == Kind::kBool) {
      out.as.i = *static_cast<const uint8_t*>(value) != 0;
      out.tag = LAMELLA_BOOL;
    } else {
      std::memcpy(&out.as, value, 8);
      out.tag = argument.kind == Kind::kDouble ? LAMELLA_DOUBLE : LAMELLA_INT;
    }
  }
}

// The form of the operator that has the same arguments and writes one tensor for each return.
const lamella_operator* out_form(const CallPlan& plan) {
  for (const Argument& one : plan.returns) {
    if (one.kind != Kind::kTensor) return nullptr;
  }
  const std::string overload = plan.op->overload;
  for (const std::string& name : {std::string("out"), overload + "_out"}) {
    const lamella_operator* out = lamella_lookup_operator(plan.op->name, name.c_str(), 1);
    if (out == nullptr || out->argument_count != plan.op->argument_count + plan.op->return_count) {
      continue;
    }
    const std::vector<Argument> arguments = arguments_of(out, 0);
    bool same = true;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& one = arguments[i];
      same &= i < plan.arguments.size() ? one.name == plan.arguments[i].name &&
                                              one.kind == plan.arguments[i].kind && !one.write
                                        : one.kind == Kind::kTensor && one.write;
    }
    if (same) return out;
  }
  return nullptr;
}

std::unique_ptr<CallPlan> plan_of(const ffi::Attrs& attrs) {
  auto plan = std::make_unique<CallPlan>();
  const std::string full = string_attr(attrs, "operator");
  const size_t dot = full.rfind('.');
  check(
      lamella_find_operator(full.substr(0, dot).c_str(), full.substr(dot + 1).c_str(), &plan->op));
  plan->arguments = arguments_of(plan->op, 0);
  plan->returns = arguments_of(plan->op, 1);
  plan->values.resize(plan->arguments.size());
  std::string rest = string_attr(attrs, "arguments");
  for (size_t i = 0; i < plan->arguments.size(); ++i) {
    const size_t comma = rest.find(',');
    const std::string word = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    int count = -2;
    if (word == "t") {
      count = 1;
    } else if (!word.empty() && word[0] == 'l') {
      count = std::atoi(word.c_str() + 1);
    } else if (word == "v") {
      count = -1;
      set_value(*plan, i, attrs);
    }
    plan->buffers.push_back(count);
  }
  plan->backward = find(attrs, "needs") >= 0;
  if (!plan->backward) {
    plan->out = out_form(*plan);
    uint16_t cpu = 0;
    check(lamella_dispatch_key_from_name("CPU", &cpu));
    plan->is_direct = plan->out != nullptr && plan->out->argument_count <= kMostDirect &&
                      lamella_operator_has_kernel(plan->out, cpu) != 0;
    if (plan->out != nullptr) plan->values.resize(plan->out->argument_count);
    for (size_t i = 0; i < plan->values.size(); ++i) {
      const bool is_out = i >= plan->arguments.size();
      if (!is_out && plan->buffers[i] < 0) continue;
      plan->is_direct = plan->is_direct && (is_out || plan->arguments[i].kind == Kind::kTensor);
      plan->places.push_back(static_cast<uint8_t>(i));
    }
    return plan;
  }
  plan->given = int_attr(attrs, "given");
  plan->needs = int_attr(attrs, "needs");
  const lamella_derivative* d = lamella_operator_derivative(plan->op);
  if (d == nullptr) throw Failure(full + ": has no derivative", LAMELLA_NOT_IMPLEMENTED);
  plan->slots.assign(d->slots, d->slots + d->slot_count);
  for (uint32_t k = 0; k < d->saved_count; ++k) plan->saves_returns |= d->saved[k].is_return != 0;
  return plan;
}

// A tensor over a buffer.
lamella_tensor* tensor_of(const void* buffer) {
  const auto& b = *static_cast<const ffi::Buffer*>(buffer);
  const auto type = static_cast<size_t>(b.dtype);
  if (type >= std::size(kScalarTypes) || kScalarTypes[type] == 255) {
    throw Failure("bridge.jax: expected an array of a dtype that Lamella has");
  }
  lamella_tensor* made = nullptr;
  check(lamella_tensor_from_blob(b.data, static_cast<int32_t>(b.rank), b.dims, nullptr,
                                 kScalarTypes[type], 0, -1, nullptr, nullptr, &made));
  return made;
}

struct OwnedTensors {
  explicit OwnedTensors(size_t most) : all(most) {}
  ~OwnedTensors() {
    for (lamella_tensor* t : all) release(t);
  }
  lamella_tensor* keep(lamella_tensor* t) { return all[count++] = t; }
  lamella_tensor* of(const void* buffer) { return keep(tensor_of(buffer)); }
  Scratch<lamella_tensor*> all;
  size_t count = 0;
};

// Copies a result into XLA's buffer, where it does not lie there.
void put(lamella_tensor* t, const void* buffer, const char* name) {
  const auto& b = *static_cast<const ffi::Buffer*>(buffer);
  const auto type = static_cast<size_t>(b.dtype);
  bool same =
      t->ndim == b.rank && type < std::size(kScalarTypes) && t->scalar_type == kScalarTypes[type];
  for (int32_t i = 0; same && i < t->ndim; ++i) same = t->sizes[i] == b.dims[i];
  if (!same) {
    throw Failure(
        std::string(name) +
        ": expected results of the shape and dtype that its Meta kernel says, got others");
  }
  if (t->data == b.data || t->numel == 0) return;
  constexpr uint32_t kLazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
  OwnedTensors own(1);
  if ((t->flags & LAMELLA_TENSOR_CONTIGUOUS) == 0 || (t->flags & kLazy) != 0) {
    t = own.keep(copied(t));
  }
  static constexpr uint8_t kBytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4,
                                       2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1,  1, 2, 4, 8};
  std::memcpy(b.data, t->data, static_cast<size_t>(t->numel) * kBytes[t->scalar_type]);
}

// The keys of a tensor on the CPU without those of autograd, which has no part in a program of XLA.
uint64_t keys_of_cpu() {
  static const uint64_t keys = [] {
    const uint32_t before = lamella_set_modes(LAMELLA_MODE_INFERENCE, LAMELLA_MODE_INFERENCE);
    lamella_tensor* t = nullptr;
    const lamella_status status = lamella_tensor_empty(0, nullptr, 6, 0, -1, &t);
    lamella_set_modes(LAMELLA_MODE_INFERENCE, before);
    check(status);
    const uint64_t found = t->key_set;
    release(t);
    return found;
  }();
  return keys;
}

// A call whose arguments are one buffer each or known, and whose results are written in place.
void run_directly(const CallPlan& plan, const ffi::CallFrame& frame) {
  struct Owned {
    lamella_value values[kMostDirect], results[kMostDirect];
    const CallPlan& plan;
    size_t made = 0;
    explicit Owned(const CallPlan& plan) : plan(plan) {
      std::memcpy(values, plan.values.data(), plan.values.size() * sizeof *values);
      for (uint32_t r = 0; r < plan.out->return_count; ++r) results[r].tag = LAMELLA_NONE;
    }
    ~Owned() {
      for (uint32_t r = 0; r < plan.out->return_count; ++r) {
        if (results[r].tag == LAMELLA_TENSOR) release(results[r].as.tensor);
      }
      for (size_t k = 0; k < made; ++k) release(values[plan.places[k]].as.tensor);
    }
  } owned(plan);
  const auto arguments = static_cast<size_t>(frame.args.size);
  auto buffer = [&](size_t k) {
    return k < arguments ? frame.args.args[k] : frame.rets.rets[k - arguments];
  };
  for (; owned.made < plan.places.size(); ++owned.made) {
    lamella_value& value = owned.values[plan.places[owned.made]];
    value.as.tensor = tensor_of(buffer(owned.made));
    value.tag = LAMELLA_TENSOR;
  }
  check(lamella_redispatch_boxed(plan.out, keys_of_cpu(), owned.values, owned.results));
  for (size_t k = arguments; k < owned.made; ++k) {
    put(owned.values[plan.places[k]].as.tensor, buffer(k), plan.op->name);
  }
}

void run(const CallPlan& plan, const ffi::CallFrame& frame) {
  if (plan.is_direct) return run_directly(plan, frame);
  const lamella_operator* op = plan.op;
  OwnedTensors owned(static_cast<size_t>(frame.args.size + frame.rets.size));
  int64_t at = 0;
  Scratch<lamella_tensor*> grads(plan.backward ? op->return_count : 0);
  for (size_t r = 0; r < grads.size(); ++r) {
    if ((plan.given >> r & 1) != 0) grads[r] = owned.of(frame.args.args[at++]);
  }
  const size_t n = plan.arguments.size();
  const bool writes = !plan.backward && plan.out != nullptr;
  Scratch<lamella_value> values(writes ? plan.out->argument_count : n);
  std::copy_n(plan.values.begin(), n, values.begin());
  std::vector<std::unique_ptr<std::vector<lamella_tensor*>>> lists;
  for (size_t i = 0; i < n; ++i) {
    const int count = plan.buffers[i];
    if (count < 0) continue;
    if (plan.arguments[i].kind == Kind::kTensor) {
      values[i].tag = LAMELLA_TENSOR;
      values[i].as.tensor = owned.of(frame.args.args[at++]);
      continue;
    }
    auto& list = *lists.emplace_back(new std::vector<lamella_tensor*>);
    for (int k = 0; k < count; ++k) list.push_back(owned.of(frame.args.args[at++]));
    values[i].tag = LAMELLA_TENSOR_LIST;
    values[i].as.pointer = list.data();
    values[i].size = static_cast<uint32_t>(count);
  }
  if (writes) {
    for (size_t i = n; i < values.size(); ++i) {
      values[i].tag = LAMELLA_TENSOR;
      values[i].as.tensor = owned.of(frame.rets.rets[i - n]);
    }
    Results results(plan.out->return_count);
    check(lamella_call_boxed(plan.out, values.data(), plan.out->argument_count, results.data(),
                             plan.out->return_count));
    for (size_t i = n; i < values.size(); ++i) {
      put(values[i].as.tensor, frame.rets.rets[i - n], op->name);
    }
    return;
  }
  int64_t next = 0;
  auto give = [&](lamella_tensor* t) {
    if (t == nullptr || next >= frame.rets.size) {
      throw Failure(std::string(op->name) + ": expected " + std::to_string(frame.rets.size) +
                    " results that are tensors");
    }
    put(t, frame.rets.rets[next++], op->name);
  };
  if (!plan.backward) {
    Results results(op->return_count);
    check(lamella_call_boxed(op, values.data(), static_cast<uint32_t>(n), results.data(),
                             op->return_count));
    for (uint32_t r = 0; r < op->return_count; ++r) {
      if (results[r].tag != LAMELLA_TENSOR_LIST) {
        give(results[r].as.tensor);
        continue;
      }
      auto* list = static_cast<lamella_tensor* const*>(results[r].as.pointer);
      for (uint32_t k = 0; k < results[r].size; ++k) give(list[k]);
    }
    return;
  }
  // Results that the derivative saves are computed anew.
  Results saved(op->return_count);
  if (plan.saves_returns) {
    check(lamella_call_boxed(op, values.data(), static_cast<uint32_t>(n), saved.data(),
                             op->return_count));
  }
  std::vector<bool> wanted;
  for (size_t s = 0; s < plan.slots.size(); ++s) {
    const lamella_value& value = values[plan.slots[s]];
    const size_t count = value.tag == LAMELLA_TENSOR_LIST ? value.size : 1;
    wanted.resize(wanted.size() + count, (plan.needs >> s & 1) != 0);
  }
  OwnedTensors made(wanted.size());
  check(lamella_call_backward(op, values.data(), saved.data(), grads.data(), op->return_count,
                              plan.needs, made.all.data(), static_cast<uint32_t>(wanted.size())));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    if (made.all[i] != nullptr) {
      give(made.all[i]);
    } else {
      const auto& b = *static_cast<ffi::Buffer*>(frame.rets.rets[next]);
      OwnedTensors zeros(1);
      lamella_tensor* t = zeros.of(frame.rets.rets[next++]);
      std::memset(b.data, 0, lamella_tensor_storage_bytes(t));
    }
  }
}

ffi::TypeId plan_type{0};

void delete_plan(void* plan) { delete static_cast<CallPlan*>(plan); }
ffi::TypeInfo plan_info{sizeof(ffi::TypeInfo), nullptr, &delete_plan};

ffi::HandlerError* error_of(const ffi::Api* api, lamella_status status) {
  ffi::ErrorCreateArgs args{};
  args.struct_size = sizeof args;
  args.message = lamella_error_text();
  args.errc = status == LAMELLA_NOT_IMPLEMENTED  ? ffi::ErrorCode::Unimplemented
              : status == LAMELLA_OUT_OF_MEMORY  ? ffi::ErrorCode::ResourceExhausted
              : status == LAMELLA_INTERNAL_ERROR ? ffi::ErrorCode::Internal
                                                 : ffi::ErrorCode::InvalidArgument;
  return api->error_create(&args);
}

// True where the frame asks for the handler's description only, which is then filled in.
bool described(ffi::CallFrame* frame) {
  ffi::ExtensionBase* extension = frame->extension_start;
  if (extension == nullptr || extension->type != ffi::ExtensionType::Metadata) return false;
  ffi::Metadata* data = reinterpret_cast<ffi::MetadataExtension*>(extension)->metadata;
  data->api_version.major_version = ffi::api_major;
  data->api_version.minor_version = ffi::api_minor;
  data->traits = 0;
  if (data->struct_size >= LAMELLA_FFI_SIZE(ffi::Metadata, state_type_id)) {
    data->state_type_id = plan_type;
  }
  return true;
}

}  // namespace
}  // namespace lamella::bridge

using namespace lamella::bridge;
namespace ffi = lamella::hlo::ffi;

// The identity of plans among the states of handlers, to be registered with XLA.
LAMELLA_BRIDGE_API void* lamella_bridge_jax_type() { return &plan_type; }
LAMELLA_BRIDGE_API void* lamella_bridge_jax_type_info() { return &plan_info; }

LAMELLA_BRIDGE_API ffi::HandlerError* lamella_bridge_jax_instantiate(ffi::CallFrame* frame) {
  if (described(frame)) return nullptr;
  std::unique_ptr<CallPlan> plan;
  lamella_status status = guarded([&] { plan = plan_of(frame->attrs); });
  if (status != LAMELLA_OK) return error_of(frame->api, status);
  ffi::StateSetArgs args{};
  args.struct_size = sizeof args;
  args.ctx = frame->ctx;
  args.stage = ffi::Stage::Instantiate;
  args.type_id = &plan_type;
  args.state = plan.release();
  return frame->api->state_set(&args);
}

LAMELLA_BRIDGE_API ffi::HandlerError* lamella_bridge_jax_execute(ffi::CallFrame* frame) {
  if (described(frame)) return nullptr;
  ffi::StateGetArgs args{};
  args.struct_size = sizeof args;
  args.ctx = frame->ctx;
  args.stage = ffi::Stage::Instantiate;
  args.type_id = &plan_type;
  if (ffi::HandlerError* error = frame->api->state_get(&args)) return error;
  lamella_status status = guarded([&] { run(*static_cast<const CallPlan*>(args.state), *frame); });
  return status == LAMELLA_OK ? nullptr : error_of(frame->api, status);
}
