// The kernel that casts: one boxed function for all operators, with the class as its context.
//
// Note [Autocast classes]
//   lower_precision    floating-point arguments become the thread's dtype for the device type
//   float32            they become float32
//   float32_set_dtype  the argument `dtype` becomes float32 where it is None and the first tensor
//                      would be cast; with a dtype given, nothing changes
//   widest             they become the widest dtype among them, at least that of lower precision
//   banned             an error
//   Arguments on other device types, of float64, or not of a floating-point dtype stay unchanged.
#include "lamella/layers/autocast/cast.h"

#include <array>
#include <vector>

#include "lamella/dispatch/policy.h"
#include "lamella/dispatch/registry.h"
#include "lamella/dispatch/signature.h"
#include "lamella/layers/autocast/state.h"

namespace lamella::autocast {
namespace {

constexpr uint64_t kBelow =
    DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::AutocastCPU).raw_repr();

enum class Class : uintptr_t { kLowerPrecision, kFloat32, kFloat32SetDtype, kWidest, kBanned };

DeviceType device_of(uint64_t keys) {
  const auto backends = static_cast<uint32_t>(keys & detail::kBackendMask);
  return device_type_of(static_cast<BackendComponent>(31 ^ __builtin_clz(backends | 1)));
}

// The arguments of a call, copied when the first of them is cast.
class Arguments {
 public:
  Arguments(const lamella_operator* op, const lamella_value* given)
      : given_(given), count_(op->argument_count) {}

  const lamella_value* data() const { return values_ != nullptr ? values_ : given_; }
  lamella_value& writable(uint32_t i) {
    if (values_ == nullptr) {
      if (count_ > few_.size()) many_.resize(count_);
      values_ = count_ > few_.size() ? many_.data() : few_.data();
      std::copy(given_, given_ + count_, values_);
    }
    return values_[i];
  }

  void cast_all(ScalarType dtype, DeviceType device) {
    for (uint32_t i = 0; i < count_; ++i) {
      const lamella_value& value = given_[i];
      if (value.tag == LAMELLA_TENSOR) {
        lamella_tensor* made = cast_one(value.as.tensor, dtype, device);
        if (made != value.as.tensor) writable(i).as.tensor = made;
      } else if (value.tag == LAMELLA_TENSOR_LIST) {
        cast_list(i, dtype, device);
      }
    }
  }

 private:
  lamella_tensor* cast_one(lamella_tensor* t, ScalarType dtype, DeviceType device) {
    if (t == nullptr || t->scalar_type == static_cast<uint8_t>(dtype) || !is_eligible(t, device)) {
      return t;
    }
    owned_.push_back(cast(t, dtype, device));
    return owned_.back().impl();
  }

  void cast_list(uint32_t i, ScalarType dtype, DeviceType device) {
    auto* list = static_cast<lamella_tensor* const*>(given_[i].as.pointer);
    std::vector<lamella_tensor*> made(list, list + given_[i].size);
    bool changed = false;
    for (lamella_tensor*& t : made) {
      lamella_tensor* now = cast_one(t, dtype, device);
      changed |= now != t;
      t = now;
    }
    if (!changed) return;
    lists_.push_back(std::move(made));
    writable(i).as.pointer = lists_.back().data();
  }

  const lamella_value* given_;
  uint32_t count_;
  lamella_value* values_ = nullptr;
  std::array<lamella_value, 12> few_;
  std::vector<lamella_value> many_;
  std::vector<TensorBase> owned_;
  std::vector<std::vector<lamella_tensor*>> lists_;
};

template <class F>
void each_eligible(const lamella_value* arguments, uint32_t count, DeviceType device, F&& f) {
  auto one = [&](const lamella_tensor* t) {
    if (t != nullptr && is_eligible(t, device)) f(static_cast<ScalarType>(t->scalar_type));
  };
  for (uint32_t i = 0; i < count; ++i) {
    const lamella_value& value = arguments[i];
    if (value.tag == LAMELLA_TENSOR) {
      one(value.as.tensor);
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) one(list[k]);
    }
  }
}

// The index of the argument `dtype`; -1: the operator has none.
int dtype_argument(const lamella_operator* op) {
  auto* entry = static_cast<OperatorEntry*>(const_cast<lamella_operator*>(op));
  const auto& arguments = Registry::get().schema(entry).arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == "dtype") return static_cast<int>(i);
  }
  return -1;
}

void set_dtype(Arguments& made, const lamella_operator* op, const lamella_value* arguments,
               DeviceType device) {
  const int at = dtype_argument(op);
  if (at < 0) {
    made.cast_all(ScalarType::Float, device);
    return;
  }
  if (arguments[at].tag != LAMELLA_NONE || arguments[0].tag != LAMELLA_TENSOR ||
      arguments[0].as.tensor == nullptr || !is_eligible(arguments[0].as.tensor, device)) {
    return;
  }
  made.writable(static_cast<uint32_t>(at)) =
      abi::box_int(LAMELLA_INT, static_cast<int64_t>(ScalarType::Float));
}

[[noreturn, gnu::cold]] void throw_banned(const lamella_operator* op, DeviceType device) {
  const auto& entry = *entry_of(op);
  throw Error(str(entry.full_name().substr(entry.full_name().find("::") + 2),
                  ": expected to be called outside of autocast for ", Device(device).str(),
                  ", because it is unsafe in lower precision; take its arguments to float32 inside "
                  "of autocast(enabled=False)"));
}

lamella_status call_below(const lamella_operator* op, uint64_t keys, const lamella_value* arguments,
                          lamella_value* returns) {
  const uint64_t below = abi::masked(op, keys & kBelow);
  const lamella_kernel* next = abi::kernel_of(op, below);
  return next->boxed(next, op, below, arguments, returns);
}

// Calls the operator with autocast off, on what `change(arguments, device)` makes of the arguments.
template <class F>
lamella_status call_changed(const lamella_operator* op, uint64_t keys,
                            const lamella_value* arguments, lamella_value* returns, F&& change) {
  const DeviceType device = device_of(keys);
  if (lamella_autocast_enabled(static_cast<uint8_t>(device)) == 0) {
    return call_below(op, keys, arguments, returns);
  }
  try {
    Arguments made(op, arguments);
    change(made, device);
    Off off;
    // The key set is computed anew, since a cast tensor may have other keys than the original.
    const uint64_t now =
        abi::with_thread(abi::keys_of_values(made.data(), op->argument_count), op, lamella_thread);
    return call_below(op, now, made.data(), returns);
  } catch (...) {
    for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = abi::box_none();
    return detail::status_of_current_exception();
  }
}

lamella_status run_cast(const lamella_kernel* kernel, const lamella_operator* op, uint64_t keys,
                        const lamella_value* arguments, lamella_value* returns) {
  const auto word = static_cast<Class>(reinterpret_cast<uintptr_t>(kernel->context));
  return call_changed(op, keys, arguments, returns, [&](Arguments& made, DeviceType device) {
    const auto lower =
        static_cast<ScalarType>(lamella_autocast_dtype(static_cast<uint8_t>(device)));
    switch (word) {
      case Class::kLowerPrecision:
        return made.cast_all(lower, device);
      case Class::kFloat32:
        return made.cast_all(ScalarType::Float, device);
      case Class::kFloat32SetDtype:
        return set_dtype(made, op, arguments, device);
      case Class::kWidest: {
        ScalarType widest = lower;
        each_eligible(arguments, op->argument_count, device, [&](ScalarType dtype) {
          if (dtype != lower) widest = ScalarType::Float;
        });
        return made.cast_all(widest, device);
      }
      case Class::kBanned:
        throw_banned(op, device);
    }
  });
}

lamella_status run_where_on(const lamella_kernel* kernel, const lamella_operator* op, uint64_t keys,
                            const lamella_value* arguments, lamella_value* returns) {
  if (lamella_autocast_enabled(static_cast<uint8_t>(device_of(keys))) == 0) {
    return call_below(op, keys, arguments, returns);
  }
  const auto* gated = static_cast<const lamella_kernel*>(kernel->context);
  return gated->boxed(gated, op, keys, arguments, returns);
}

const lamella_kernel* kernel_of_class(std::string_view word) {
  static constexpr std::string_view words[] = {"lower_precision", "float32", "float32_set_dtype",
                                               "widest", "banned"};
  // Made at the first use, which may come before this file's globals are initialised.
  static const auto kernels = [] {
    std::array<lamella_kernel, std::size(words)> made{};
    for (uintptr_t i = 0; i < made.size(); ++i) {
      made[i] = {nullptr, &run_cast, reinterpret_cast<void*>(i)};
    }
    return made;
  }();
  for (size_t i = 0; i < std::size(words); ++i) {
    if (words[i] == word) return &kernels[i];
  }
  return nullptr;
}

Slot casting(const OperatorEntry& op, DispatchKey key) {
  if (!is_autocast_key(key) || !Registry::get().has_backend(split_key(key)->backend)) return {};
  return {kernel_of_class(autocast_class(op, key)), nullptr, SlotOrigin::kLayer};
}
constexpr SlotRule kCasting = {&casting,
                               [](const OperatorEntry& op, DispatchKey key) {
                                 return "autocast class '" + std::string(autocast_class(op, key)) +
                                        "': casts the arguments, then goes on";
                               },
                               false};

}  // namespace

lamella_status cast_to_context(const lamella_kernel* kernel, const lamella_operator* op,
                               uint64_t keys, const lamella_value* arguments,
                               lamella_value* returns) {
  const auto dtype = static_cast<ScalarType>(reinterpret_cast<uintptr_t>(kernel->context));
  return call_changed(op, keys, arguments, returns,
                      [&](Arguments& made, DeviceType device) { made.cast_all(dtype, device); });
}

void register_layer() {
  Registry::get().add_slot_rule(kCasting);
  Registry::get().set_gate({&is_autocast_key, &run_where_on});
}

}  // namespace lamella::autocast
