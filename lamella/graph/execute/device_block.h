// DeviceBlock: one block of a device's memory for the intermediate arrays of a computation.
//
// Note [One block]
//   Which steps of a computation read an array is known when it is compiled, so its intermediate
//   arrays get offsets in one block then, by the same plan as the temporary memory of a region. A
//   run takes the block from the device's allocator, and while a step runs, what the step allocates
//   with the size of a planned array gets that place. The operator that allocates knows nothing of
//   it: an allocation of another size comes from the device's allocator, and so does one whose
//   place is still used, as by a result that is an operand although its operator does not say so.
//   The result of a computation is not in the block. The block goes back when its run and all
//   arrays in it have ended.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "lamella/core/allocator.h"
#include "lamella/core/tensor_base.h"

namespace lamella::hlo {

class BlockPlan {
 public:
  // Adds an array that the step number `step` allocates; `last` is the number of the last step that
  // reads it. Steps are added in their order.
  void add(size_t step, size_t last, int64_t bytes);
  // Gives the arrays their offsets, for this number of steps.
  void finish(size_t steps);
  int64_t bytes() const { return bytes_; }
  size_t size() const { return arrays_.size(); }

 private:
  friend class DeviceBlock;
  struct Array {
    size_t step, last;
    size_t bytes, offset;
    std::vector<size_t> before;  // arrays of earlier steps that have had some of these bytes
  };
  std::vector<Array> arrays_;
  std::vector<size_t> first_;  // the first array of each step, and the end
  int64_t bytes_ = 0;
};

class DeviceBlock final : public Allocator {
 public:
  struct Release {
    void operator()(DeviceBlock* block) const noexcept { block->release(); }
  };
  using Held = std::unique_ptr<DeviceBlock, Release>;
  // The block of one run; null if no memory for all of it is free.
  static Held make(const BlockPlan& plan, Device device);
  // From now on the places of this step are handed out.
  void begin(size_t step) { step_ = step; }
  void* allocate(size_t bytes, DeviceIndex index, void** place) override;
  void deallocate(void* data, size_t bytes, DeviceIndex index, void* place) noexcept override;

 private:
  DeviceBlock(const BlockPlan& plan, TensorBase memory);
  ~DeviceBlock() override = default;
  void release() noexcept;

  const BlockPlan& plan_;  // which the run keeps alive; arrays may live longer
  TensorBase memory_;
  std::unique_ptr<std::atomic<bool>[]> is_used_;  // by array
  std::atomic<int64_t> users_{1};                 // the run, and arrays
  size_t step_ = 0;
};

}  // namespace lamella::hlo
