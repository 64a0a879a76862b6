// The C functions of batching rules.
#include "lamella/abi/vmap.h"

#include <memory>

#include "lamella/abi/operators.h"
#include "lamella/core/error.h"
#include "lamella/layers/vmap/vmap.h"

using namespace lamella;

namespace {
// A vmap of lamella_vmap_enter().
struct EnteredLevel {
  vmap::Level level;
  uint64_t excluded = 0;
};
static_assert(offsetof(EnteredLevel, level) == 0);
}  // namespace

extern "C" {

lamella_status lamella_vmap_enter(int64_t size, uint32_t* number) noexcept {
  return lamella::detail::guarded([&] {
    auto entered = std::make_unique<EnteredLevel>();
    entered->level.number = *number = vmap::next_level_number();
    entered->level.size = size;
    entered->level.randomness = vmap::Randomness::kDifferent;
    // A batched tensor has no memory, so its layer must see each call, even if excluded outside.
    entered->excluded = lamella_thread.excluded & vmap::kBatchedBit;
    lamella_thread.excluded &= ~vmap::kBatchedBit;
    vmap::enter(&entered.release()->level);
  });
}

void lamella_vmap_leave(uint32_t number) noexcept {
  vmap::Level* level = vmap::find_level(number);
  if (level == nullptr) return;
  std::unique_ptr<EnteredLevel> entered(reinterpret_cast<EnteredLevel*>(level));
  vmap::leave(level);
  lamella_thread.excluded |= entered->excluded;
}

lamella_status lamella_vmap_wrap_all(lamella_tensor* tensor, lamella_tensor** result) noexcept {
  return lamella::detail::guarded(
      [&] { *result = vmap::batch_over_all(TensorBase::borrow(tensor)).unsafe_release(); });
}

lamella_status lamella_vmap_unwrap_all(lamella_tensor* tensor, uint32_t number,
                                       lamella_tensor** result) noexcept {
  return lamella::detail::guarded([&] {
    const vmap::Level* level = vmap::find_level(number);
    LAMELLA_CHECK(level != nullptr, "vmap: expected a level that is running on this thread, got ",
                  number);
    *result = vmap::expose(TensorBase::borrow(tensor), *level).unsafe_release();
  });
}

lamella_status lamella_vmap_level_of(const lamella_tensor* tensor,
                                     lamella_vmap_level* result) noexcept {
  try {
    *result = {};
    if (tensor == nullptr || !vmap::is_batched(tensor)) return LAMELLA_OK;
    const vmap::Level& level = vmap::level_of(tensor, "vmap");
    *result = {level.number, static_cast<uint32_t>(level.randomness), level.size};
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

lamella_tensor* lamella_vmap_unwrap(lamella_tensor* tensor, uint32_t level) noexcept {
  if (tensor == nullptr || !vmap::is_batched(tensor) || vmap::level_number(tensor) != level) {
    return nullptr;
  }
  return TensorBase::borrow(vmap::wrapped(tensor)).unsafe_release();
}

lamella_status lamella_vmap_wrap(lamella_tensor* value, uint32_t number,
                                 lamella_tensor** result) noexcept {
  return lamella::detail::guarded([&] {
    const vmap::Level* level = vmap::find_level(number);
    LAMELLA_CHECK(level != nullptr, "vmap: expected a level that is running on this thread, got ",
                  number);
    LAMELLA_CHECK(value != nullptr && value->ndim >= 1 && value->sizes[0] == level->size,
                  "vmap: expected a value with the batch of ", level->size, " in dimension 0");
    *result = vmap::make_batched(TensorBase::borrow(value), number).unsafe_release();
  });
}

}  // extern "C"
