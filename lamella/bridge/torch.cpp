// Kernels of PyTorch's operators that call Lamella's, by libtorch's C functions: no header of
// torch, and no link to it. Schemas, derivatives and fake kernels are registered in Python
// (bridge/_torch.py).
//
// Note [Torch's stable calls]
//   torch calls a kernel with one array of 64-bit values, the arguments first and the returns after
//   the call, and without a context: each operator takes one of a pool of functions. The kernel
//   owns the tensors, lists, strings and optional values that it is given. An output of Lamella's
//   becomes a tensor of torch over the same memory; one that shares memory with an argument, which
//   the schema does not say, or with another output is copied.
//   Some arguments have no stable form. A kernel in Python gives them to an operator of other
//   parameters: for a Scalar (int kind, int, float, float), of which the kind 0 is none, 1 an int,
//   2 a float, 3 a bool and 4 a complex number; for a Tensor?[] (Tensor[] those that are there,
//   int[] of each entry its number among them or -1).
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "lamella/bridge/chain.h"
#include "lamella/bridge/python.h"
#include "lamella/bridge/torch_values.h"

namespace lamella::bridge {
namespace {

struct BridgedOperator {
  const lamella_operator* op = nullptr;
  std::vector<Argument> arguments, returns;
  std::vector<int> written;  // of each return: the argument that it is, -1: a new value
  bool is_write = false;     // torch's operator has no return for what is written
  bool is_flat = false;      // torch's operator has other parameters: Note [Torch's stable calls]
  // True for a derivative, which lamella_bridge_torch_backward made; the rest is set for it alone.
  bool backward = false;
  std::vector<uint16_t> slots;
  std::vector<uint32_t> saved_returns;
  bool one_gradient = false;
  std::vector<Argument> parameters;  // of torch's operator
  std::string recorded, eager;  // torch's operators, in Python, that take calls that are not plain
  void* apply = nullptr;        // the function of Python behind `eager`, if C can call it
};

StableValue as_stable(Handle handle) { return reinterpret_cast<StableValue>(handle); }

StableValue list_of(const lamella_value& value, Exporter& exporter) {
  Handle list = nullptr;
  done(torch.torch_new_list_reserve_size(value.size, &list), "making a list");
  for (uint32_t i = 0; i < value.size; ++i) {
    StableValue item = 0;
    if (value.tag == LAMELLA_TENSOR_LIST) {
      lamella_tensor* t = static_cast<lamella_tensor* const*>(value.as.pointer)[i];
      retain(t);
      item = as_stable(exporter.tensor(t));
    } else if (value.tag == LAMELLA_BOOL_LIST) {
      item = static_cast<const uint8_t*>(value.as.pointer)[i];
    } else {
      std::memcpy(&item, static_cast<const char*>(value.as.pointer) + 8 * i, 8);
    }
    done(torch.torch_list_push_back(list, item), "making a list");
  }
  return as_stable(list);
}

StableValue returned(const Argument& what, lamella_value& value, Exporter& exporter) {
  StableValue out = 0;
  if (what.optional &&
      (value.tag == LAMELLA_NONE || (value.tag == LAMELLA_TENSOR && value.as.tensor == nullptr))) {
    return 0;
  }
  switch (what.kind) {
    case Kind::kTensor:
      if (value.as.tensor == nullptr) throw Failure("expected a tensor to be returned, got none");
      value.tag = LAMELLA_NONE;
      out = as_stable(exporter.tensor(value.as.tensor));
      break;
    case Kind::kInt:
    case Kind::kBool:
    case Kind::kDouble:
      std::memcpy(&out, &value.as, sizeof out);
      break;
    case Kind::kString: {
      Handle text = nullptr;
      done(torch.torch_new_string_handle(static_cast<const char*>(value.as.pointer), value.size,
                                         &text),
           "making a string");
      out = as_stable(text);
      break;
    }
    default:
      out = list_of(value, exporter);
  }
  if (!what.optional) return out;
  StableValue* inner = nullptr;
  if (torch.torch_new_stable_ivalue != nullptr) {
    done(torch.torch_new_stable_ivalue(&inner), "making an optional value");
  } else {
    inner = new StableValue;
  }
  *inner = out;
  return reinterpret_cast<StableValue>(inner);
}

void call(const BridgedOperator& bridged, StableValue* stack) {
  const lamella_operator* op = bridged.op;
  CallArguments arguments(bridged.parameters.size());
  arguments.set_all(bridged.parameters, stack);
  std::optional<Gathered> gathered;
  if (bridged.is_flat) gathered.emplace(bridged.arguments, arguments.values.data());
  const lamella_value* values = gathered ? gathered->data() : arguments.values.data();
  std::vector<std::pair<const lamella_tensor*, const void*>> before;
  for (size_t r = 0; r < bridged.written.size(); ++r) {
    if (bridged.written[r] < 0) continue;
    const lamella_tensor* t = arguments.values[static_cast<size_t>(bridged.written[r])].as.tensor;
    before.emplace_back(t, t->data);
  }
  Results results(op);
  const lamella_status status = results.call(values);
  if (status != LAMELLA_OK) {
    const std::string text = lamella_error_text();
    if (before.empty() || !text.starts_with("resize_: ")) throw Failure(text, status);
    throw Failure(std::string(std::strstr(op->name, "::") + 2) +
                      ": expected the tensor that it writes to have the size of the result (" +
                      text + ")",
                  status);
  }
  for (const auto& [t, data] : before) {
    if (t->data != data) {
      throw Failure(std::string(op->name) +
                    ": expected the tensor that it writes to have the size of the result, got one "
                    "that had to be resized");
    }
  }
  Exporter exporter(arguments);
  for (uint32_t r = 0, next = 0; r < op->return_count; ++r) {
    const int written = bridged.written[r];
    if (written < 0) {
      stack[next++] = returned(bridged.returns[r], results[r], exporter);
    } else if (!bridged.is_write) {
      stack[next++] = as_stable(arguments.handles[static_cast<size_t>(written)].take());
    }
  }
}

// (Tensor? gradient of each return, arguments..., Tensor saved returns..., int needs) -> Tensor[];
// the gradient of the only return is given, and that of the only slot is no list.
void call_backward(const BridgedOperator& bridged, StableValue* stack) {
  const lamella_operator* op = bridged.op;
  CallArguments all(bridged.parameters.size());
  all.set_all(bridged.parameters, stack);
  lamella_value* const arguments = all.values.data() + op->return_count;
  const lamella_value* const saved_results = arguments + op->argument_count;
  const auto needs = static_cast<uint64_t>(all.values[all.values.size() - 1].as.i);
  Scratch<lamella_tensor*> grads(op->return_count);
  for (uint32_t r = 0; r < op->return_count; ++r) {
    if (all.values[r].tag == LAMELLA_TENSOR) grads[r] = all.values[r].as.tensor;
  }
  Scratch<lamella_value> saved(op->return_count);
  for (size_t k = 0; k < bridged.saved_returns.size(); ++k) {
    saved[bridged.saved_returns[k]] = saved_results[k];
  }
  std::vector<lamella_tensor*> inputs;
  std::vector<bool> wanted;
  for (size_t s = 0; s < bridged.slots.size(); ++s) {
    const lamella_value& value = arguments[bridged.slots[s]];
    const bool wants = (needs >> s & 1) != 0;
    if (value.tag == LAMELLA_TENSOR_LIST) {
      each(value, [&](lamella_tensor* t) { inputs.push_back(t); });
    } else {
      inputs.push_back(value.tag == LAMELLA_TENSOR ? value.as.tensor : nullptr);
    }
    wanted.resize(inputs.size(), wants);
  }
  struct MadeTensors : std::vector<lamella_tensor*> {
    using std::vector<lamella_tensor*>::vector;
    ~MadeTensors() {
      for (lamella_tensor* t : *this) release(t);
    }
  } made(inputs.size(), nullptr);
  check(lamella_call_backward(op, arguments, saved.data(), grads.data(), op->return_count, needs,
                              made.data(), static_cast<uint32_t>(made.size())));
  Exporter exporter(all);
  Handle list = nullptr;
  if (!bridged.one_gradient) {
    done(torch.torch_new_list_reserve_size(made.size(), &list), "making a list");
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (!wanted[i] || inputs[i] == nullptr) continue;
    lamella_tensor* t = std::exchange(made[i], nullptr);
    if (t == nullptr) {
      check(lamella_tensor_empty(inputs[i]->ndim, inputs[i]->sizes, inputs[i]->scalar_type,
                                 inputs[i]->device_type, inputs[i]->device_index, &t));
      std::memset(t->data, 0, lamella_tensor_storage_bytes(t));
    }
    const StableValue gradient = as_stable(exporter.tensor(t, true));
    if (bridged.one_gradient) {
      stack[0] = gradient;
      return;
    }
    done(torch.torch_list_push_back(list, gradient), "making a list");
  }
  if (bridged.one_gradient) throw Failure("expected a gradient to be wanted");
  stack[0] = as_stable(list);
}

constexpr int kMaxOperators = 1024;
std::array<BridgedOperator, kMaxOperators> operators;
std::atomic<int> used{0};

template <class Body>
void entered(Body&& body) {
  lamella_status status;
  {
    const TorchThreads threads;
    status = guarded(body);
  }
  if (status != LAMELLA_OK) raise(status, lamella_error_text());
}
[[gnu::noinline]] void run(const BridgedOperator& bridged, StableValue* stack) {
  entered([&] { (bridged.backward ? call_backward : call)(bridged, stack); });
}

std::shared_ptr<const Chain> chain_of(const std::string& text) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::shared_ptr<const Chain>> known;
  std::lock_guard lock(mutex);
  auto& found = known[text];
  if (found == nullptr) {
    auto made = std::make_shared<const Chain>(text);
    if (known.size() > 4096) known.clear();
    return known[text] = std::move(made);
  }
  return found;
}
// lamella_bridge::call(str chain, Tensor[] tensors) -> Tensor[]
void chain_kernel(StableValue* stack, uint64_t, uint64_t) {
  static const std::vector<Argument> parameters = [] {
    std::vector<Argument> made(2);
    made[0].kind = Kind::kString;
    made[1].kind = Kind::kTensorList;
    return made;
  }();
  entered([&] {
    CallArguments arguments(2);
    arguments.set_all(parameters, stack);
    const lamella_value &text = arguments.values[0], &tensors = arguments.values[1];
    Tensors results =
        chain_of(std::string(static_cast<const char*>(text.as.pointer), text.size))
            ->run({static_cast<lamella_tensor* const*>(tensors.as.pointer), tensors.size});
    Exporter exporter(arguments);
    Handle list = nullptr;
    done(torch.torch_new_list_reserve_size(results.size(), &list), "making a list");
    for (OwnedTensor& t : results) {
      if (t.get() == nullptr) continue;
      done(torch.torch_list_push_back(list, as_stable(exporter.tensor(t.take(), true))),
           "making a list");
    }
    stack[0] = as_stable(list);
  });
}

[[gnu::noinline]] void run_autograd(const BridgedOperator& bridged, StableValue* stack) {
  const Part part = part_of_torch(bridged.parameters, stack);
  if (part == Part::kPlain) return run(bridged, stack);
  if (part == Part::kGradient && bridged.apply != nullptr) {
    stack[0] = applied(bridged.apply, bridged.parameters, stack);
    return;
  }
  const bool is_eager = part == Part::kGradient && !bridged.eager.empty();
  const char* name = (is_eager ? bridged.eager : bridged.recorded).c_str();
  const int status =
      torch.torch_call_dispatcher != nullptr
          ? torch.torch_call_dispatcher(name, "", stack, torch.aoti_torch_abi_version())
          : torch.aoti_torch_call_dispatcher(name, "", stack);
  if (status == 0) return;
  auto text = torch.torch_exception_get_what_without_backtrace;
  raise_kept(text != nullptr ? text() : name);
}
template <int I>
void kernel(StableValue* stack, uint64_t, uint64_t) {
  run(operators[I], stack);
}
template <int I>
void autograd_kernel(StableValue* stack, uint64_t, uint64_t) {
  run_autograd(operators[I], stack);
}
template <int... I>
constexpr std::array<StableKernel[2], sizeof...(I)> kernels_of(std::integer_sequence<int, I...>) {
  return {{{&kernel<I>, &autograd_kernel<I>}...}};
}
constexpr auto kKernels = kernels_of(std::make_integer_sequence<int, kMaxOperators>());

bool all_known(const std::vector<Argument>& all) {
  for (const Argument& one : all) {
    // A list of tensors that is written has no stable form either.
    if (one.kind >= Kind::kScalar || (one.kind == Kind::kTensorList && one.write)) return false;
  }
  return true;
}

// Registers a kernel for a dispatch key, for as long as the process lives.
void register_kernel(std::string_view name, const char* key, StableKernel function) {
  const std::string name_space(name.substr(0, name.find("::")));
  const std::string rest(name.substr(name_space.size() + 2));
  Handle block = nullptr;
  done(torch.aoti_torch_library_init_impl(name_space.c_str(), key, "lamella", 0, &block),
       "opening a library");
  done(torch.torch_library_impl != nullptr
           ? torch.torch_library_impl(block, rest.c_str(), function, torch.aoti_torch_abi_version())
           : torch.aoti_torch_library_impl(block, rest.c_str(), function),
       rest.c_str());
}

void implement(BridgedOperator bridged, const char* torch_name, const char* recorded) {
  const int at = used.fetch_add(1);
  if (at >= kMaxOperators) {
    throw Failure(std::string(torch_name) + ": expected at most 1024 operators in one process");
  }
  if (recorded != nullptr) bridged.recorded = recorded;
  operators[static_cast<size_t>(at)] = std::move(bridged);
  const StableKernel* both = kKernels[static_cast<size_t>(at)];
  register_kernel(torch_name, "CPU", both[0]);
  if (recorded != nullptr) register_kernel(torch_name, "Autograd", both[1]);
}

BridgedOperator found(const char* name, const char* overload) {
  BridgedOperator bridged;
  check(lamella_find_operator(name, overload, &bridged.op));
  bridged.arguments = arguments_of(bridged.op, 0);
  bridged.returns = arguments_of(bridged.op, 1);
  return bridged;
}

}  // namespace
}  // namespace lamella::bridge

using namespace lamella;
using namespace lamella::bridge;

// Finds libtorch's functions. torch must have been imported.
LAMELLA_BRIDGE_API lamella_status lamella_bridge_torch_open(const char* library) {
  return guarded([&] {
    open_python();
    open_torch(library);
  });
}

// Registers the kernel of the operator of chains.
LAMELLA_BRIDGE_API lamella_status lamella_bridge_torch_chains() {
  return guarded([&] { register_kernel("lamella_bridge::call", "CPU", &chain_kernel); });
}

// Registers the kernel of torch's operator `torch_name` for the CPU and, where `recorded` names
// torch's operator for calls that are not plain, for autograd. *is_done: 0 where an argument or
// return has no stable form. form, a sum: 1: torch's operator does not return what it writes; 2:
// where gradients alone are wanted, operator `recorded`_eager takes the calls; 4: torch's operator
// has the parameters of Note [Torch's stable calls].
LAMELLA_BRIDGE_API lamella_status lamella_bridge_torch_implement(const char* name,
                                                                 const char* overload,
                                                                 const char* torch_name,
                                                                 const char* recorded, int32_t form,
                                                                 int32_t* is_done) {
  return guarded([&] {
    *is_done = 0;
    BridgedOperator bridged = found(name, overload);
    bridged.is_write = (form & 1) != 0;
    bridged.is_flat = (form & 4) != 0;
    if ((form & 2) != 0 && recorded != nullptr) bridged.eager = std::string(recorded) + "_eager";
    for (const Argument& one : bridged.arguments) {
      const bool is_list = one.kind == Kind::kOptionalTensors;
      if (!bridged.is_flat || (one.kind != Kind::kScalar && !is_list)) {
        bridged.parameters.push_back(one);
        continue;
      }
      for (Kind kind : is_list
                           ? std::vector{Kind::kTensorList, Kind::kIntList}
                           : std::vector{Kind::kInt, Kind::kInt, Kind::kDouble, Kind::kDouble}) {
        bridged.parameters.emplace_back().kind = kind;
      }
    }
    if (!all_known(bridged.parameters) || !all_known(bridged.returns)) return;
    for (const Argument& result : bridged.returns) {
      int from = -1;
      for (size_t i = 0; i < bridged.parameters.size(); ++i) {
        if (result.write && bridged.parameters[i].aliases == result.aliases) {
          from = static_cast<int>(i);
        }
      }
      bridged.written.push_back(from);
    }
    implement(std::move(bridged), torch_name, recorded);
    *is_done = 1;
  });
}

// The same for the operator that computes its gradients by what its derivative saves.
LAMELLA_BRIDGE_API lamella_status lamella_bridge_torch_backward(const char* name,
                                                                const char* overload,
                                                                const char* torch_name,
                                                                const char* recorded, int32_t,
                                                                int32_t* is_done) {
  return guarded([&] {
    *is_done = 0;
    BridgedOperator bridged = found(name, overload);
    const lamella_derivative* d = lamella_operator_derivative(bridged.op);
    if (d == nullptr || d->backward == nullptr || !all_known(bridged.arguments)) return;
    bridged.backward = true;
    bridged.slots.assign(d->slots, d->slots + d->slot_count);
    for (const Argument& one : bridged.arguments) {
      if (one.write) return;
    }
    for (const Argument& one : bridged.returns) {
      if (one.kind == Kind::kTensorList) return;
    }
    for (uint32_t r = 0; r < bridged.returns.size(); ++r) {
      for (uint32_t k = 0; k < d->saved_count; ++k) {
        if (d->saved[k].is_return == 0 || d->saved[k].index != r) continue;
        if (bridged.returns[r].kind != Kind::kTensor) return;
        bridged.saved_returns.push_back(r);
        break;
      }
    }
    auto& parameters = bridged.parameters;
    auto add = [&](Kind kind, bool optional = false) {
      Argument& one = parameters.emplace_back();
      one.kind = kind;
      one.optional = optional;
    };
    for (size_t r = 0; r < bridged.returns.size(); ++r) {
      add(Kind::kTensor, bridged.returns.size() > 1);
    }
    parameters.insert(parameters.end(), bridged.arguments.begin(), bridged.arguments.end());
    for (size_t k = 0; k < bridged.saved_returns.size(); ++k) add(Kind::kTensor);
    add(Kind::kInt);
    bridged.one_gradient =
        d->slot_count == 1 && bridged.arguments[d->slots[0]].kind == Kind::kTensor;
    implement(std::move(bridged), torch_name, recorded);
    *is_done = 1;
  });
}

// Names the function behind the operator `eager`. With the GIL.
LAMELLA_BRIDGE_API void lamella_bridge_torch_apply(const char* eager, void* function) {
  for (BridgedOperator& one : operators) {
    if (one.eager != eager || !can_apply(one.parameters)) continue;
    python.Py_IncRef(static_cast<PyObject*>(function));
    one.apply = function;
  }
}
