// Helpers of the vmap tests: a running level, and tensors in and out of it.
#pragma once
#include "lamella/layers/vmap/vmap.h"
#include "tests/layers/autograd/testing.h"

namespace lamella {

// A vmap over `size` examples that runs as long as it lives.
class Mapped {
 public:
  explicit Mapped(int64_t size, vmap::Randomness randomness = vmap::Randomness::kError) {
    level_.number = vmap::next_level_number();
    level_.size = size;
    level_.randomness = randomness;
    vmap::enter(&level_);
  }
  ~Mapped() { vmap::leave(&level_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  Tensor in(const Tensor& all) const {
    return Tensor(vmap::make_batched(TensorBase(all), level_.number));
  }
  Tensor out(const Tensor& one) const { return Tensor(vmap::expose(one, level_)); }
  const vmap::Level& level() const { return level_; }

 private:
  vmap::Level level_;
};

}  // namespace lamella
