// Packed forms of a tensor's elements, cached with its storage until the storage is written.
// Internal.
//
// Note [What is kept with a storage]
//   A matrix product packs a weight into its own order before reading it. On the second request
//   since the last write, that packed form is kept, and later products read it without packing. It
//   is valid while the storage's counts of writes are unchanged: `version`, and `writes_apart` for
//   writes that Note [Who counts writes] counts elsewhere. The first request after a write drops
//   it, and so does the end of the storage.
//   Memory that may be written without being counted has no such forms: foreign memory, memory of a
//   replaced allocator, and any storage whose address was given out. A NumPy array, a memoryview or
//   a DLPack capsule tells when it no longer uses the memory, after which forms are kept again;
//   data_ptr() in Python or in a user's C++ code and lamella_tensor_expose() last for ever.
//   All forms together take at most an eighth of the machine's memory and at most 1 GiB; a form
//   that would not fit is not kept. A storage without forms pays one comparison when it ends.
#pragma once
#include <array>
#include <cstdint>

#include "lamella/core/storage.h"

namespace lamella {

// Identifies a form of a storage: the operand's address, strides and sizes, and the form's purpose.
using KeptFormKey = std::array<int64_t, 6>;

// The result of requesting a form; holds a reference to the form for its lifetime.
class KeptForm {
 public:
  // `bytes` is the size of the form. The storage must outlive this object and must not be written
  // meanwhile.
  LAMELLA_PRIVATE_API KeptForm(Storage* storage, const KeptFormKey& key, int64_t bytes);
  ~KeptForm() {
    if (form_ != nullptr) storage_release(form_);
  }
  KeptForm(const KeptForm&) = delete;
  KeptForm& operator=(const KeptForm&) = delete;

  // The form, NULL where none is kept.
  const void* data() const { return form_ != nullptr ? form_->data : nullptr; }
  // True if the caller should make the form: fill the memory that make() returns, then call keep().
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

// Between these two calls the storage's memory may be written without being counted.
LAMELLA_PRIVATE_API void begin_exposure(Storage* storage) noexcept;
LAMELLA_PRIVATE_API void end_exposure(Storage* storage) noexcept;

namespace detail {
// Drops the forms of a storage that ends; called if has_kept_forms is set.
void forget_kept_forms(const Storage* storage) noexcept;
}  // namespace detail

}  // namespace lamella
