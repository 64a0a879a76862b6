// Memory that notes when it is touched. Internal to Lamella.
#pragma once
#include <cstddef>

namespace lamella::compliance {

// Pages of which none may be accessed. The first access is noted by a signal handler, which then
// makes them ordinary memory of zeros, so that whoever touched them goes on.
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
