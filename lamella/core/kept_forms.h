// Other forms of a tensor's elements that are kept with its storage while nobody writes them.
// Internal.
//
// Note [What is kept with a storage]
//   A product reads a weight in an order of its own, into which the weight must be brought first.
//   Where it is asked for the second time since the last write, that form is kept, and every
//   further product reads it as it is. It is good for as long as the storage's counts of writes
//   stand still: `version`, and `writes_apart` for writes that Note [Who counts writes] counts
//   elsewhere. The first request after a write drops it, and so does the end of the storage.
//   Memory that may be written without being counted has no such forms: foreign memory, that of a
//   replaced allocator, and any storage of which an address was given out. An array of NumPy, a
//   memoryview or a capsule of DLPack says when it is done with the memory, which then begins anew;
//   data_ptr() in Python or in somebody's C++ and lamella_tensor_expose() hold for ever.
//   Forms take at most an eighth of the machine's memory and 1 GiB together; what would not fit is
//   not kept. A storage that is never asked for pays one comparison when it ends.
#pragma once
#include <array>
#include <cstdint>

#include "lamella/core/storage.h"

namespace lamella {

// What tells the forms of one storage apart: address and strides in it, sizes, what it is made for.
using KeptFormKey = std::array<int64_t, 6>;

// The answer to a request; holds a reference to the form while it lives.
class KeptForm {
 public:
  // `bytes` is the size of the form. The storage outlives this object, and is not written
  // meanwhile.
  LAMELLA_PRIVATE_API KeptForm(Storage* storage, const KeptFormKey& key, int64_t bytes);
  ~KeptForm() {
    if (form_ != nullptr) storage_release(form_);
  }
  KeptForm(const KeptForm&) = delete;
  KeptForm& operator=(const KeptForm&) = delete;

  // The form, NULL where none is kept.
  const void* data() const { return form_ != nullptr ? form_->data : nullptr; }
  // Whether the caller is to make the form: to fill the memory that make() gives, then call keep().
  bool is_wanted() const { return is_wanted_; }
  LAMELLA_PRIVATE_API void* make();
  LAMELLA_PRIVATE_API void keep() noexcept;

 private:
  Storage* storage_;
  KeptFormKey key_;
  int64_t bytes_;
  uint64_t writes_ = 0;  // to the storage when this was made
  Storage* form_ = nullptr;
  bool is_wanted_ = false;
};

// Bytes that all kept forms take.
LAMELLA_PRIVATE_API int64_t kept_form_bytes();

// Between the two, others may write the memory of the storage without being counted.
LAMELLA_PRIVATE_API void begin_exposure(Storage* storage) noexcept;
LAMELLA_PRIVATE_API void end_exposure(Storage* storage) noexcept;

namespace detail {
// For the end of a storage that has_kept_forms.
void forget_kept_forms(const Storage* storage) noexcept;
}  // namespace detail

}  // namespace lamella
