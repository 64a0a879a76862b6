// See Note [One block] in device_block.h.
#include "lamella/graph/execute/device_block.h"

#include <algorithm>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/graph/execute/memory_plan.h"

namespace lamella::hlo {

void BlockPlan::add(size_t step, size_t last, int64_t bytes) {
  if (bytes > 0) arrays_.push_back({step, last, static_cast<size_t>(bytes), 0, {}});
}

void BlockPlan::finish(size_t steps) {
  constexpr size_t kAlignment = 512;  // of the device's allocator
  MemoryPlan memory;
  std::vector<std::vector<int64_t>> ending(steps);
  size_t next = 0;
  for (size_t step = 0; step < steps; ++step) {
    first_.push_back(next);
    for (; next < arrays_.size() && arrays_[next].step == step; ++next) {
      Array& one = arrays_[next];
      const size_t whole = (one.bytes + kAlignment - 1) / kAlignment * kAlignment;
      const int64_t at = memory.take(static_cast<int64_t>(whole));
      one.offset = static_cast<size_t>(at);
      ending[one.last].push_back(at);
      for (size_t other = 0; other < first_.back(); ++other) {
        const Array& earlier = arrays_[other];
        if (earlier.offset < one.offset + one.bytes &&
            one.offset < earlier.offset + earlier.bytes) {
          one.before.push_back(other);
        }
      }
    }
    for (int64_t at : ending[step]) memory.give_back(at);
  }
  first_.push_back(next);
  bytes_ = memory.most();
}

DeviceBlock::DeviceBlock(const BlockPlan& plan, TensorBase memory)
    : plan_(plan), memory_(std::move(memory)), is_used_(new std::atomic<bool>[plan.size()]()) {}

DeviceBlock::Held DeviceBlock::make(const BlockPlan& plan, Device device) {
  try {
    return Held(new DeviceBlock(
        plan, lamella::empty({plan.bytes()}, TensorOptions(ScalarType::Byte).device(device))));
  } catch (const OutOfMemoryError&) {
    return nullptr;  // the arrays may fit one by one
  }
}
void DeviceBlock::release() noexcept {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void* DeviceBlock::allocate(size_t bytes, DeviceIndex index, void** place) {
  if (index != memory_.device().index()) return nullptr;
  for (size_t a = plan_.first_[step_]; a < plan_.first_[step_ + 1]; ++a) {
    const BlockPlan::Array& one = plan_.arrays_[a];
    auto is_used = [&](size_t n) { return is_used_[n].load(std::memory_order_acquire); };
    if (one.bytes != bytes || is_used(a) || std::ranges::any_of(one.before, is_used)) continue;
    is_used_[a].store(true, std::memory_order_relaxed);
    users_.fetch_add(1, std::memory_order_relaxed);
    *place = &is_used_[a];
    return static_cast<char*>(memory_.impl()->data) + one.offset;
  }
  return nullptr;
}
void DeviceBlock::deallocate(void*, size_t, DeviceIndex, void* place) noexcept {
  static_cast<std::atomic<bool>*>(place)->store(false, std::memory_order_release);
  release();
}

}  // namespace lamella::hlo
