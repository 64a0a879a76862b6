// The fallbacks that resolve lazy conjugates and negatives: see Note [Lazy conjugates].
#include "lamella/layers/conj/conj.h"

#include <string_view>
#include <vector>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/layer_fallback.h"
#include "lamella/dispatch/registry.h"
#include "lamella/dispatch/signature.h"

namespace lamella::lazy {
namespace {

// The flag, key and operators of lazy conjugates or of lazy negatives.
struct Lazy {
  DispatchKey key;
  uint32_t flag;
  // The same memory with the flag on or off.
  Tensor (*toggled)(const Tensor& tensor);
  Tensor (*computed)(const Tensor& tensor);
  void (*compute_in_place)(Tensor& tensor);
};

const Lazy kConjugate = {DispatchKey::Conjugate, LAMELLA_TENSOR_CONJ,
                         [](const Tensor& t) { return lamella::_conj(t); },
                         [](const Tensor& t) { return lamella::conj_physical(t); },
                         [](Tensor& t) { t.conj_physical_(); }};
const Lazy kNegative = {DispatchKey::Negative, LAMELLA_TENSOR_NEG,
                        [](const Tensor& t) { return lamella::_neg_view(t); },
                        [](const Tensor& t) { return lamella::neg(t); },
                        [](Tensor& t) { t.neg_(); }};

// Layers that see operators: they see clone where a lazy value is computed.
constexpr uint64_t kSeeing = detail::functionality_bit(detail::Functionality::Functionalize) |
                             detail::functionality_bit(detail::Functionality::Python);

struct Facts {
  bool seen = false;    // one of these layers follows
  bool clones = false;  // the operator computes lazy values, and nothing else
  bool passes = false;  // its kernel handles tensors with the flag
  std::vector<bool> written;
};

Facts facts_of(const lamella_operator* op, uint64_t keys) {
  auto* entry = entry_of(op);
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex());
  const FunctionSchema& schema = registry.schema(entry);
  Slot slot = registry.slot(entry, static_cast<DispatchKey>(lamella::detail::slot_of(keys)));
  Facts facts;
  facts.passes = schema.is_view() || (slot.entry != nullptr &&
                                      slot.entry->key == DispatchKey::CompositeImplicitAutograd);
  for (const std::string& tag : entry->tags) facts.passes |= tag == "inplace_view";
  // These change a tensor's metadata but no element.
  std::string_view name = entry->name_storage;
  facts.passes |= name == "aten::set_" || name == "aten::resize_" || name == "aten::resize_as_";
  facts.seen = (keys & kSeeing) != 0;
  facts.clones = name == "aten::clone";
  facts.passes |= facts.seen && (facts.clones || name == "aten::copy_");
  for (const Argument& argument : schema.arguments) facts.written.push_back(argument.is_write());
  return facts;
}

// The arguments of one call without the flag.
class Resolved {
 public:
  Resolved(const Lazy& lazy, const lamella_operator* op, const lamella_value* arguments,
           const Facts& facts)
      : lazy_(lazy),
        seen_(facts.seen),
        values_(arguments, arguments + op->argument_count),
        lists_(values_.size()) {
    AutoDispatchBelowAutograd below;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!facts.written[i]) continue;
      each_tensor(arguments[i], [&](lamella_tensor* t) {
        if (is_lazy(t)) targets_.push_back(t);
      });
    }
    // Read arguments are resolved first: resolving a written one in place changes its aliases.
    for (bool written : {false, true}) {
      for (size_t i = 0; i < values_.size(); ++i) {
        if (facts.written[i] != written) continue;
        lamella_value& value = values_[i];
        if (value.tag == LAMELLA_TENSOR) {
          value.as.tensor = resolved(value.as.tensor, written);
        } else if (value.tag == LAMELLA_TENSOR_LIST) {
          each_tensor(arguments[i],
                      [&](lamella_tensor* t) { lists_[i].push_back(resolved(t, written)); });
          value.as.pointer = lists_[i].data();
          value.flags = 0;
        }
      }
    }
  }

  const lamella_value* data() const { return values_.data(); }

  // Written arguments become lazy again.
  void change_back() {
    AutoDispatchBelowAutograd below;
    for (Written& written : written_) {
      if (seen_) {
        written.lazy.copy_(written.plain);
        continue;
      }
      lazy_.compute_in_place(written.plain);
      const lamella_tensor* now = written.plain.impl();
      auto n = static_cast<size_t>(now->ndim);
      if (written.plain.sizes() != written.lazy.sizes() ||
          now->storage != written.lazy.impl()->storage) {
        // An out argument that was resized.
        shallow_copy_from(TensorImpl::of(written.lazy),
                          TensorImpl::of(lazy_.toggled(written.plain)));
      } else {
        set_sizes_and_strides(TensorImpl::of(written.lazy), {now->sizes, n}, {now->strides, n},
                              now->storage_offset);
      }
    }
    written_.clear();
  }

  // Returns that are arguments become the caller's tensors again, with the flag.
  void restore(const lamella_operator* op, lamella_value* returns) const {
    for (uint32_t r = 0; r < op->return_count; ++r) {
      if (returns[r].tag != LAMELLA_TENSOR) continue;
      for (const Written& written : kept_) {
        if (returns[r].as.tensor != written.plain.impl()) continue;
        lamella_value_release(&returns[r]);
        returns[r] = lamella_value{{0}, 0, LAMELLA_TENSOR, 0, 0};
        returns[r].as.tensor = Tensor(written.lazy).unsafe_release();
        break;
      }
    }
  }

 private:
  struct Written {
    Tensor lazy, plain;
  };

  bool is_lazy(const lamella_tensor* t) const {
    return t != nullptr && (t->flags & lazy_.flag) != 0;
  }
  bool shares_memory_with_target(const lamella_tensor* t) const {
    for (const lamella_tensor* target : targets_) {
      if (t->storage != nullptr && t->storage == target->storage) return true;
    }
    return false;
  }

  lamella_tensor* resolved(lamella_tensor* t, bool written) {
    if (t == nullptr) return t;
    Tensor tensor{TensorBase::borrow(t)};
    if (!is_lazy(t)) {
      if (written || !shares_memory_with_target(t)) return t;
      copies_.push_back(tensor.clone());
      return copies_.back().impl();
    }
    if (seen_ && !written) return copies_.emplace_back(tensor.clone()).impl();
    Tensor plain = seen_ ? tensor.clone() : lazy_.toggled(tensor);
    if (written) {
      for (const Written& before : kept_) {
        if (before.lazy.is_same(tensor)) return before.plain.impl();
      }
      if (!seen_) lazy_.compute_in_place(plain);
      written_.push_back({tensor, plain});
      kept_.push_back({tensor, plain});
    } else {
      plain = lazy_.computed(plain);
      copies_.push_back(plain);
    }
    return plain.impl();
  }

  const Lazy& lazy_;
  const bool seen_;
  std::vector<lamella_value> values_;
  std::vector<std::vector<lamella_tensor*>> lists_;
  std::vector<Tensor> copies_;
  std::vector<lamella_tensor*> targets_;  // lazy ones that are written
  std::vector<Written> written_, kept_;
};

lamella_status run(const lamella_kernel* kernel, const lamella_operator* op, uint64_t key_set,
                   const lamella_value* arguments, lamella_value* returns) noexcept {
  try {
    const Lazy& lazy = *static_cast<const Lazy*>(kernel->context);
    uint64_t keys = key_set & DispatchKeySet(DispatchKeySet::FULL_AFTER, lazy.key).raw_repr();
    Facts facts = facts_of(op, keys);
    if (facts.passes) return lamella_redispatch_boxed(op, keys, arguments, returns);
    if (facts.clones && arguments[1].tag == LAMELLA_NONE) {
      AutoDispatchBelowAutograd below;
      Tensor plain = lazy.toggled(Tensor(TensorBase::borrow(arguments[0].as.tensor)));
      returns[0] = IValue(lazy.computed(plain)).unsafe_release();
      return LAMELLA_OK;
    }
    Resolved resolved(lazy, op, arguments, facts);
    lamella_status status = lamella_redispatch_boxed(op, keys, resolved.data(), returns);
    if (status != LAMELLA_OK) {
      std::string text = lamella_error_text();
      resolved.change_back();
      return detail::fail(status, text);
    }
    resolved.change_back();
    resolved.restore(op, returns);
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

void register_fallback(const Lazy& lazy) {
  register_layer_fallback(lazy.key, &run, __FILE__, __LINE__, const_cast<Lazy*>(&lazy));
}

}  // namespace

void register_layer() {
  register_fallback(kConjugate);
  register_fallback(kNegative);
}

}  // namespace lamella::lazy
