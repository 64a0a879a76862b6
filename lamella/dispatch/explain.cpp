// Explains which kernel a call reaches and why, and reports a missing kernel.
//
// Note [Explaining a call]
//   explain() walks the same key set and the same slots as a call, from the highest key down, and
//   states for each key why it is skipped, down to the kernel that would run. It runs no kernel.
#include <algorithm>

#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/explain.h"
#include "lamella/dispatch/policy.h"
#include "lamella/dispatch/registry.h"
#include "lamella/dispatch/value_text.h"

namespace lamella {
namespace {

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) text += (i ? between : "") + parts[i];
  return text;
}

std::string describe_tensor(const lamella_tensor* tensor) {
  if (tensor == nullptr) return "undefined";
  std::string text = dtype_name(static_cast<ScalarType>(tensor->scalar_type));
  text += "[";
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    text += (i ? ", " : "") + std::to_string(tensor->sizes[i]);
  }
  text += "] on ";
  text += Device(static_cast<DeviceType>(tensor->device_type), tensor->device_index).str();
  return text;
}

// The keys at which a backend's kernel is registered, the CPU first.
std::vector<const KernelEntry*> backend_kernels(const OperatorEntry& op) {
  std::vector<const KernelEntry*> result;
  for (const auto& [key, list] : op.kernels) {
    if (!list.empty() && is_backend_key(key)) result.push_back(list.front().get());
  }
  return result;
}

std::string device_of_key(DispatchKey key) {
  std::string name = dispatch_key_name(key);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return name;
}

// Describes what the kernel that records gradients does for the operator.
Explanation::Step recording(const OperatorEntry& op, DispatchKey key) {
  const lamella_derivative* derivative = op.derivative;
  if (derivative == nullptr) {
    return {key, "runs", "records the gradient as an operator without a derivative, then goes on"};
  }
  std::string which = "derivative";
  for (uint32_t i = 0; i < derivative->keyed_count; ++i) {
    if (dispatch_key_from_name(derivative->keyed[i].key) != key) continue;
    which += std::string(" for ") + derivative->keyed[i].key;
    derivative = derivative->keyed[i].derivative;
    break;
  }
  which += " registered at " + op.derivative_file + ":" + std::to_string(op.derivative_line);
  if ((derivative->flags & LAMELLA_NOT_DIFFERENTIABLE) != 0) {
    return {key, "skipped", "not differentiable according to the " + which};
  }
  return {key, "runs", "records the gradient with the " + which + ", then goes on"};
}

// Shows tensors by dtype, shape and device instead of their elements.
class Description final : public ValueWords {
 public:
  std::string tensor(lamella_tensor* tensor) override { return describe_tensor(tensor); }
  std::string other(const lamella_value& value, SchemaType) override {
    if (value.tag != LAMELLA_TENSOR_LIST) return detail::tag_name(value.tag);
    auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
    std::vector<std::string> parts;
    for (uint32_t i = 0; i < value.size && i < 4; ++i) parts.push_back(describe_tensor(list[i]));
    if (value.size > 4) parts.push_back("...");
    return "[" + join(parts, ", ") + "]";
  }
};

}  // namespace

std::string describe_value(const lamella_value& value) {
  Description words;
  return value_text(value, SchemaType::atom(TypeKind::kAny), words);
}

std::string missing_kernel_report(const lamella_operator* op, uint64_t key_set,
                                  const lamella_value* arguments) {
  const OperatorEntry& entry = *entry_of(op);
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex());
  DispatchKey key = static_cast<DispatchKey>(detail::slot_of(key_set));
  std::string text = entry.full_name() + ": no kernel for " + dispatch_key_name(key);
  std::vector<std::string> parts;
  const FunctionSchema& schema = registry.schema(const_cast<OperatorEntry*>(&entry));
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    if (schema.arguments[i].type.holds_tensor() && arguments[i].tag != LAMELLA_NONE) {
      parts.push_back("'" + schema.arguments[i].name + "' " + describe_value(arguments[i]));
    }
  }
  text += "\n  Could not run '" + entry.full_name() + "' with arguments from the '" +
          dispatch_key_name(key) + "' backend.";
  text += "\n  called with " + (parts.empty() ? "no tensors" : join(parts, ", "));
  std::vector<const KernelEntry*> kernels = backend_kernels(entry);
  if (kernels.empty()) {
    text += "\n  no kernel is registered for any backend";
  } else {
    const KernelEntry* nearest = kernels.front();
    std::vector<std::string> names;
    for (const KernelEntry* kernel : kernels) names.push_back(dispatch_key_name(kernel->key));
    text += "\n  nearest kernel: " + dispatch_key_name(nearest->key) + ", registered at " +
            nearest->where();
    if (names.size() > 1) text += " (kernels exist for " + join(names, ", ") + ")";
  }
  std::string name_space = entry.name_storage.substr(0, entry.name_storage.find("::"));
  text += "\n  to do: register one with LAMELLA_LIBRARY_IMPL(" + name_space + ", " +
          dispatch_key_name(key) + ", m)";
  if (!kernels.empty()) {
    text += ", or move the arguments to " + device_of_key(kernels.front()->key);
  }
  return text;
}

Explanation explain(const lamella_operator* op, const lamella_value* arguments) {
  Registry& registry = Registry::get();
  OperatorEntry* entry = entry_of(op);
  std::lock_guard lock(registry.mutex());
  registry.schema(entry);  // raises where it is not defined
  Explanation result;
  result.operator_name = entry->full_name();
  result.schema = entry->current->canonical;
  // All keys that take part, before any is taken away.
  uint64_t everything = 0;
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    const lamella_value& value = arguments[i];
    if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
      everything |= value.as.tensor->key_set;
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) everything |= list[k] ? list[k]->key_set : 0;
    }
  }
  constexpr uint64_t thread_init = detail::functionality_bit(detail::Functionality::ThreadInit);
  uint64_t called = key_set_of_call(op, arguments) & ~thread_init;
  if (everything == 0) everything = called;
  uint64_t from_thread = lamella_thread.included & ~thread_init;
  everything |= from_thread | op->always;
  result.key_set = to_string(DispatchKeySet::from_raw_repr(everything));
  uint64_t remaining = everything;
  while (true) {
    uint64_t highest = uint64_t{1} << (63 - __builtin_clzll(remaining | 1));
    DispatchKey key = static_cast<DispatchKey>(detail::slot_of(remaining));
    Slot slot = registry.slot(entry, key);
    std::string reason;
    if (lamella_thread.excluded & highest) {
      reason = "excluded on this thread";
    } else if (slot.origin == SlotOrigin::kDerivative) {
      constexpr uint64_t all = autograd_dispatch_keyset.raw_repr();
      constexpr uint64_t needed =
          all & ~detail::functionality_bit(detail::Functionality::AutogradFunctionality);
      if ((highest & needed) != 0) {
        result.steps.push_back(recording(*entry, key));
        remaining &= ~all;
        continue;
      }
      reason = "no argument requires gradients";
    } else if (slot.origin == SlotOrigin::kLayer) {
      result.steps.push_back({key, "runs", slot.rule->describe(*entry, key)});
      remaining &= ~highest;
      continue;
    } else if (slot.origin == SlotOrigin::kFallthrough) {
      reason = slot.entry != nullptr ? "falls through, as registered at " + slot.entry->where()
                                     : "no kernel and no fallback: falls through";
    } else {
      switch (slot.origin) {
        case SlotOrigin::kKernel:
          reason = "kernel registered at " + slot.entry->where();
          break;
        case SlotOrigin::kAlias:
          reason =
              dispatch_key_name(slot.entry->key) + " kernel registered at " + slot.entry->where();
          break;
        case SlotOrigin::kFallback:
          reason = "fallback for all operators registered at " +
                   (slot.entry != nullptr ? slot.entry->where() : std::string("Lamella"));
          break;
        case SlotOrigin::kAmbiguous:
          reason = "several kernels could serve it; register an autograd kernel";
          break;
        default:
          break;
      }
      if (slot.entry != nullptr) {
        result.steps.push_back({key, "runs", reason});
        result.kernel = dispatch_key_name(key) + ": " + reason;
      } else {
        if (reason.empty()) reason = "no kernel";
        result.steps.push_back({key, "fails", reason});
      }
      return result;
    }
    result.steps.push_back({key, "skipped", reason});
    remaining &= ~highest;
    if ((highest & ~detail::kBackendMask) == 0) return result;
  }
}

std::string Explanation::str() const {
  std::string text = operator_name + "\n  schema: " + schema + "\n  keys: " + key_set;
  size_t width = 0;
  for (const Step& step : steps) width = std::max(width, dispatch_key_name(step.key).size());
  for (const Step& step : steps) {
    std::string name = dispatch_key_name(step.key);
    name.resize(width, ' ');
    text += "\n  " + name + "  " + step.verdict + ": " + step.reason;
  }
  return text;
}

}  // namespace lamella
