// One call of a composite kernel under guard: maps guards to tensors and back. Internal to
// Lamella; see Note [Composite kernels under guard].
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lamella/core/tensor_impl.h"
#include "lamella/layers/compliance/trap.h"

namespace lamella::compliance {

class Session {
 public:
  // The guard of a tensor, made on the first request. `origin` says what the tensor is, for
  // messages: "argument 'self'". Guards and tensors without a storage are returned as they are.
  TensorBase guard(const TensorBase& tensor, const std::string& origin);
  // The tensor behind a guard; any other tensor is returned as it is. Throws if the guard's
  // metadata differs from the tensor's, or if a tensor over a guard's memory was not made by an
  // operator.
  TensorBase real(const TensorBase& tensor);
  // After a call with the real tensors: copies changed metadata of an argument to its guard.
  void renew(const TensorBase& tensor);
  // The same for the flags of all guards: a write through a view gives its base a history.
  void renew_flags();
  // Throws if elements of any guard were accessed since the last check.
  void check_memory();

  // The composite kernels that are running, innermost last.
  struct Running {
    std::string name;
    bool may_read;       // data-dependent by its tag
    bool may_write_out;  // has an out argument itself
  };
  std::vector<Running> stack;

 private:
  struct Guarded {
    TensorBase real;
    TensorBase guard;
    std::string origin;
    uint32_t flags;    // those that the guard was given
    uint64_t key_set;  // likewise
  };
  struct GuardedStorage {
    std::shared_ptr<Trap> trap;  // empty: the storage has no memory
    Storage* storage;            // the guard's; kept by its tensors
    std::string origin;
    bool reported = false;
  };
  const std::string& name() const { return stack.back().name; }
  Storage* storage_for(Storage* real, const std::string& origin);
  [[noreturn]] void fail(const std::string& what) const;
  void check_metadata(const Guarded& guarded) const;

  std::unordered_map<lamella_tensor*, size_t> by_guard_;
  std::unordered_map<lamella_tensor*, size_t> by_real_;
  std::vector<Guarded> guarded_;  // keeps both alive, so that no address is reused
  std::unordered_map<Storage*, GuardedStorage> storages_;
  std::unordered_map<Storage*, Storage*> real_storages_;  // by the guards'
};

}  // namespace lamella::compliance
