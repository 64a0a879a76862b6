// Memory that notes when it is touched. Internal to Lamella.
#pragma once
#include <cstddef>

namespace lamella::compliance {

// Pages that must not be accessed. A signal handler notes the first access and then turns them into
// ordinary memory of zeros, so that the accessing code can go on.
class Trap {
 public:
  // Throws where there is no address space or there are too many traps.
  explicit Trap(size_t bytes);
  ~Trap();
  Trap(const Trap&) = delete;
  Trap& operator=(const Trap&) = delete;

  void* data() const { return data_; }
  bool touched() const;

 private:
  void* data_;
  size_t bytes_;
  int slot_;
};

}  // namespace lamella::compliance
