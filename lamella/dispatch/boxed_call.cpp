// Boxed calls from C: key sets from schemas, and queries about an operator.
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/registry.h"
#include "lamella/dispatch/return_rules.h"

namespace lamella {
namespace {

[[gnu::cold, gnu::noinline]] lamella_status fail_count(const lamella_operator* op, const char* what,
                                                       uint32_t expected, uint32_t got) {
  return lamella::detail::fail(LAMELLA_ERROR, std::string(op->name) + ": expected " +
                                                  std::to_string(expected) + " " + what + ", got " +
                                                  std::to_string(got));
}

}  // namespace

uint64_t key_set_of_call(const lamella_operator* op, const lamella_value* arguments) {
  return abi::with_thread(abi::keys_of_values(arguments, op->argument_count), op, lamella_thread);
}

}  // namespace lamella

using namespace lamella;

extern "C" {

lamella_status lamella_call_boxed(const lamella_operator* op, const lamella_value* arguments,
                                  uint32_t argument_count, lamella_value* returns,
                                  uint32_t return_count) noexcept {
  if (argument_count != op->argument_count) [[unlikely]] {
    return fail_count(op, "arguments", op->argument_count, argument_count);
  }
  if (return_count != op->return_count) [[unlikely]] {
    return fail_count(op, "returns", op->return_count, return_count);
  }
  uint64_t keys =
      abi::with_thread(abi::keys_of_values(arguments, argument_count), op, lamella_thread);
#ifdef NDEBUG
  return abi::call_boxed(op, keys, arguments, returns);
#else
  lamella_status status = abi::call_boxed(op, keys, arguments, returns);
  return status == LAMELLA_OK ? check_undefined_returns(op, arguments, returns) : status;
#endif
}

lamella_status lamella_redispatch_boxed(const lamella_operator* op, uint64_t key_set,
                                        const lamella_value* arguments,
                                        lamella_value* returns) noexcept {
  return abi::call_boxed(op, abi::masked(op, key_set), arguments, returns);
}

lamella_status lamella_find_operator(const char* name, const char* overload,
                                     const lamella_operator** op) noexcept {
  return lamella::detail::guarded([&] { *op = Registry::get().find(name, overload); });
}

const lamella_operator* lamella_lookup_operator(const char* name, const char* overload,
                                                int32_t defined) noexcept {
  try {
    OperatorEntry* op = Registry::get().lookup(name, overload);
    if (op == nullptr) return nullptr;
    Registry::get().resolve(op);
    return defined != 0 && !op->is_published() ? nullptr : op;
  } catch (...) {
    lamella::detail::status_of_current_exception();
    return nullptr;
  }
}

const char* lamella_operator_schema(const lamella_operator* op) noexcept {
  std::lock_guard lock(Registry::get().mutex());
  OperatorEntry* entry = entry_of(op);
  return entry->defined() && entry->schema != nullptr ? entry->current->canonical.c_str() : nullptr;
}

lamella_status lamella_operator_argument(const lamella_operator* op, int32_t kind, uint32_t index,
                                         lamella_argument_info* info) noexcept {
  return lamella::detail::guarded([&] {
    OperatorEntry* entry = entry_of(op);
    std::lock_guard lock(Registry::get().mutex());
    const FunctionSchema& schema = Registry::get().schema(entry);
    const auto& list = kind == 0 ? schema.arguments : schema.returns;
    LAMELLA_CHECK_INDEX(index < list.size(), entry->full_name(), ": expected an index below ",
                        list.size(), ", got ", index);
    const Argument& argument = list[index];
    *info = {
        argument.name.c_str(),
        (kind == 0 ? entry->current->argument_types : entry->current->return_types)[index].c_str(),
        argument.kwarg_only,
        argument.is_write(),
        argument.alias() != nullptr,
        argument.is_out(),
        argument.default_value.has_value(),
        argument.type.holds_tensor()};
  });
}

int32_t lamella_operator_has_kernel(const lamella_operator* op, uint16_t key) noexcept {
  std::lock_guard lock(Registry::get().mutex());
  const auto& kernels = entry_of(op)->kernels;
  auto found = kernels.find(static_cast<DispatchKey>(key));
  return found != kernels.end() && !found->second.empty() ? 1 : 0;
}

}  // extern "C"
