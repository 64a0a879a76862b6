// Runs composite kernels on guards: see Note [Composite kernels under guard].
#include "lamella/layers/compliance/compliance.h"
#include "lamella/dispatch/boxed_tensors.h"

#include <string_view>

#include "lamella/core/fork.h"
#include "lamella/core/ivalue.h"
#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/layer_fallback.h"
#include "lamella/dispatch/registry.h"
#include "lamella/dispatch/return_rules.h"
#include "lamella/dispatch/signature.h"
#include "lamella/layers/compliance/session.h"

namespace lamella::compliance {
namespace {

constexpr uint64_t kBit =
    lamella::detail::functionality_bit(lamella::detail::Functionality::TESTING_ONLY_GenericMode);

// The composite kernel around the current call, if it was called by one. A plain pointer, for the
// library's thread-local block has no room for destructors.
thread_local Session* session = nullptr;

struct Enter {
  explicit Enter(Session* now) : before(session) { session = now; }
  ~Enter() { session = before; }
  Session* before;
};

struct Running {
  Running(Session& in, Session::Running now) : in(in) { in.stack.push_back(std::move(now)); }
  ~Running() { in.stack.pop_back(); }
  Session& in;
};

// Facts about an operator, from the registry.
struct Facts {
  bool composite = false;
  bool may_read = false;
  bool has_out = false;
  std::string name;
  std::vector<std::string> arguments;
};

Facts facts_of(const lamella_operator* op, uint64_t keys) {
  auto* entry = entry_of(op);
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex());
  Facts facts;
  const FunctionSchema& schema = registry.schema(entry);
  Slot slot = registry.slot(entry, static_cast<DispatchKey>(lamella::detail::slot_of(keys)));
  facts.composite =
      slot.entry != nullptr && slot.entry->key == DispatchKey::CompositeImplicitAutograd;
  for (const std::string& tag : entry->tags) {
    facts.may_read |= tag == "data_dependent_output" || tag == "dynamic_output_shape";
  }
  facts.name = entry->full_name();
  for (const Argument& argument : schema.arguments) {
    facts.has_out |= argument.is_out();
    facts.arguments.push_back(argument.name);
  }
  return facts;
}

// ---- Replacing the tensors of values -----------------------------------------------------------

// Arguments of a call with each tensor replaced. Owns what it points to.
class Arguments {
 public:
  template <class Change>  // (tensor, index of the argument) -> tensor
  Arguments(const lamella_operator* op, const lamella_value* from, Change change)
      : values_(from, from + op->argument_count), lists_(op->argument_count) {
    for (uint32_t i = 0; i < op->argument_count; ++i) {
      lamella_value& value = values_[i];
      if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
        kept_.push_back(change(TensorBase::borrow(value.as.tensor), i));
        value.as.tensor = kept_.back().impl();
      } else if (value.tag == LAMELLA_TENSOR_LIST) {
        auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
        for (uint32_t k = 0; k < value.size; ++k) {
          lamella_tensor* tensor = list[k];
          if (tensor != nullptr) {
            kept_.push_back(change(TensorBase::borrow(tensor), i));
            tensor = kept_.back().impl();
          }
          lists_[i].push_back(tensor);
        }
        value.as.pointer = lists_[i].data();
        value.flags = 0;
      }
    }
  }
  const lamella_value* data() const { return values_.data(); }

 private:
  std::vector<lamella_value> values_;
  std::vector<std::vector<lamella_tensor*>> lists_;
  std::vector<TensorBase> kept_;
};

// Replaces the tensors of owned returns. If it throws, all returns are released.
template <class Change>
void change_returns(const lamella_operator* op, lamella_value* returns, Change change) {
  try {
    for (uint32_t i = 0; i < op->return_count; ++i) {
      lamella_value& value = returns[i];
      if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
        TensorBase now = change(TensorBase::borrow(value.as.tensor), i);
        lamella_value_release(&value);
        value = IValue(std::move(now)).unsafe_release();
      } else if (value.tag == LAMELLA_TENSOR_LIST) {
        auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
        std::vector<TensorBase> now;
        for (uint32_t k = 0; k < value.size; ++k) {
          now.push_back(change(TensorBase::borrow(list[k]), i));
        }
        lamella_value made;
        lamella::detail::check(lamella_value_allocate(LAMELLA_TENSOR_LIST, now.size(), &made));
        for (size_t k = 0; k < now.size(); ++k) {
          static_cast<lamella_tensor**>(made.as.pointer)[k] = now[k].unsafe_release();
        }
        lamella_value_release(&value);
        value = made;
      }
    }
  } catch (...) {
    for (uint32_t i = 0; i < op->return_count; ++i) lamella_value_release(&returns[i]);
    throw;
  }
}

// ---- Calls ------------------------------------------------------------------------------------

void check_call(const Session& in, const Facts& facts, std::string_view name) {
  bool reads =
      name == "aten::item" || name == "aten::_local_scalar_dense" || name == "aten::is_nonzero";
  bool changes = name == "aten::resize_" || name == "aten::resize_as_" || name == "aten::set_";
  bool may_read = false, may_write = false;
  for (const Session::Running& running : in.stack) {
    may_read |= running.may_read;
    may_write |= running.may_write_out;
  }
  bool allowed = (!reads || may_read) && !changes && (!facts.has_out || may_write);
  LAMELLA_CHECK(allowed, in.stack.back().name,
                ": expected its composite kernel not to read elements, resize tensors or write to "
                "out arguments, but it called ",
                facts.name);
}

lamella_status run_composite(const lamella_operator* op, const Facts& facts, uint64_t keys,
                             const lamella_value* arguments, lamella_value* returns) {
  Session fresh;
  bool outermost = session == nullptr;
  Session& in = outermost ? fresh : *session;
  Enter enter(&in);
  Running running(in, {facts.name, facts.may_read, facts.has_out});
  Arguments guarded(op, arguments, [&](const TensorBase& tensor, uint32_t i) {
    return in.guard(tensor, "argument '" + facts.arguments[i] + "'");
  });
  lamella_status status = abi::call_boxed(op, keys, guarded.data(), returns);
  if (status == LAMELLA_OK) {
    // Called in nested kernels too, since real() checks every guard that is returned.
    change_returns(op, returns, [&](const TensorBase& tensor, uint32_t) {
      TensorBase real = in.real(tensor);
      return outermost ? real : tensor;
    });
    try {
      for (uint32_t i = 0; i < op->argument_count; ++i) {
        const lamella_value& value = guarded.data()[i];
        if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
          in.real(TensorBase::borrow(value.as.tensor));
        }
      }
      in.check_memory();
    } catch (...) {
      for (uint32_t i = 0; i < op->return_count; ++i) lamella_value_release(&returns[i]);
      throw;
    }
  }
  return status;
}

lamella_status run_operator(const lamella_operator* op, const Facts& facts, uint64_t keys,
                            const lamella_value* arguments, lamella_value* returns) {
  if (session == nullptr) {
    lamella_status status = abi::call_boxed(op, keys, arguments, returns);
    return status == LAMELLA_OK ? check_undefined_returns(op, arguments, returns) : status;
  }
  Session& in = *session;
  Arguments real(op, arguments,
                 [&](const TensorBase& tensor, uint32_t) { return in.real(tensor); });
  lamella_status status;
  {
    Enter enter(nullptr);
    // Not simply `keys`: arguments that are not guards may contribute keys that `keys` lacks.
    uint64_t now = key_set_of_call(op, real.data()) & ~kBit & keys;
    status = abi::call_boxed(op, now, real.data(), returns);
    if (status == LAMELLA_OK) status = check_undefined_returns(op, real.data(), returns);
  }
  Arguments renewed(op, arguments, [&](const TensorBase& tensor, uint32_t) {
    in.renew(tensor);
    return tensor;
  });
  in.renew_flags();
  if (status != LAMELLA_OK) return status;
  change_returns(op, returns, [&](const TensorBase& tensor, uint32_t) {
    return in.guard(tensor, "the result of " + facts.name);
  });
  return status;
}

lamella_status run(const lamella_kernel*, const lamella_operator* op, uint64_t key_set,
                   const lamella_value* arguments, lamella_value* returns) {
  try {
    uint64_t keys = key_set & ~kBit;
    Facts facts = facts_of(op, keys);
    if (session != nullptr) check_call(*session, facts, op->name);
    return facts.composite ? run_composite(op, facts, keys, arguments, returns)
                           : run_operator(op, facts, keys, arguments, returns);
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

fork::Once registered;

}  // namespace

void set_on_thread(bool on) {
  registered([] {
    register_layer_fallback(DispatchKey::TESTING_ONLY_GenericMode, &run, __FILE__, __LINE__);
  });
  lamella_thread.included = on ? lamella_thread.included | kBit : lamella_thread.included & ~kBit;
}

}  // namespace lamella::compliance
