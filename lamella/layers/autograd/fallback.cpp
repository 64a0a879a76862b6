// The boxed kernels behind autogradNotImplementedFallback() and its companion for writes and views.
//
// Note [Foreign views and writes]
//   A kernel built outside of Lamella may return a tensor over its argument's memory that was not
//   made as a view, and may write without counting it. This kernel enforces the schema:
//   results in an alias set become views of their argument's base, and a write is counted unless
//   the kernel did. Operators that write and are not Lamella's own get this at ADInplaceOrView
//   unless they bring a kernel for it.
#include "lamella/core/error.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/record.h"
#include "lamella/layers/autograd/variable.h"

using namespace lamella;
using namespace lamella::autograd;

namespace {

// The same tensor as a view of `base`.
void become_view(lamella_value* result, lamella_tensor* base) {
  lamella_tensor* t = result->as.tensor;
  auto* impl = static_cast<TensorImpl*>(t);
  if (impl->base != nullptr || t->storage != base->storage) return;
  auto n = static_cast<size_t>(t->ndim);
  TensorBase view = make_view_as(TensorBase::borrow(base), {t->sizes, n}, {t->strides, n},
                                 t->storage_offset, static_cast<ScalarType>(t->scalar_type));
  lamella::detail::release(t);
  result->as.tensor = view.unsafe_release();
}

}  // namespace

extern "C" {

lamella_status lamella_autograd_inplace_or_view(const lamella_kernel*, const lamella_operator* op,
                                                uint64_t keys, const lamella_value* arguments,
                                                lamella_value* returns) noexcept {
  try {
    const RecordPlan* plan = plan_of(op);
    std::vector<uint32_t> versions;
    for (uint16_t i : plan->written) {
      bool one = arguments[i].tag == LAMELLA_TENSOR && arguments[i].as.tensor != nullptr;
      versions.push_back(one ? lamella_tensor_version(arguments[i].as.tensor) : 0);
    }
    constexpr uint64_t below =
        DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::ADInplaceOrView).raw_repr();
    lamella_status status = lamella_redispatch_boxed(op, keys & below, arguments, returns);
    if (status != LAMELLA_OK) return status;
    for (size_t k = 0; k < plan->written.size(); ++k) {
      const lamella_value& value = arguments[plan->written[k]];
      if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
        if (lamella_tensor_version(value.as.tensor) == versions[k]) {
          lamella_tensor_bump_version(value.as.tensor);
        }
      } else if (value.tag == LAMELLA_TENSOR_LIST) {
        auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
        for (uint32_t i = 0; i < value.size; ++i) {
          if (list[i] != nullptr) lamella_tensor_bump_version(list[i]);
        }
      }
    }
    for (size_t r = 0; r < plan->returns.size(); ++r) {
      if (!plan->returns[r].is_view || returns[r].tag != LAMELLA_TENSOR ||
          returns[r].as.tensor == nullptr) {
        continue;
      }
      for (uint32_t i = 0; i < op->argument_count; ++i) {
        if (arguments[i].tag == LAMELLA_TENSOR && arguments[i].as.tensor != nullptr) {
          become_view(&returns[r], arguments[i].as.tensor);
        }
      }
    }
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

// Raises an error in backward: the operator has no derivative. Note [By parts].
lamella_status lamella_autograd_not_implemented(const lamella_kernel*, const lamella_operator* op,
                                                uint64_t keys, const lamella_value* arguments,
                                                lamella_value* returns) noexcept {
  return lamella::autograd::kRecord.boxed(nullptr, op, keys, arguments, returns);
}

}  // extern "C"

namespace lamella::autograd {
const lamella_kernel kCountWrites = {nullptr, &lamella_autograd_inplace_or_view, nullptr};
}
