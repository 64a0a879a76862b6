// Memory that records whether it was accessed. Internal to Lamella.
#pragma once
#include <cstddef>

namespace lamella::compliance {

// Inaccessible pages. A signal handler records the first access and then turns them into ordinary
// zeroed memory, so that the accessing code can go on.
class Trap {
 public:
  // Throws if there is no address space left or there are too many traps.
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
