// from_file: tensors over the bytes of a file.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "lamella/api/from_blob.h"

namespace lamella {

namespace detail {
// Closes a file descriptor in its destructor; the mapping stays valid.
struct OpenFile {
  int number;
  ~OpenFile() {
    if (number >= 0) ::close(number);
  }
};
}  // namespace detail

// A tensor over the first `size` elements of a memory-mapped file, in options' dtype (float32 by
// default). With `shared`, writes change the file, which is created if it is missing and extended
// if it is too short; otherwise they change only the tensor.
LAMELLA_LAZY Tensor from_file(const std::string& filename,
                              std::optional<bool> shared = std::nullopt,
                              std::optional<int64_t> size = 0, const TensorOptions& options = {}) {
  const bool writes = shared.value_or(false);
  const int64_t count = size.value_or(0);
  LAMELLA_CHECK(count >= 0, "from_file: expected 'size' to be at least 0, got ", count);
  LAMELLA_CHECK(options.device().is_cpu(), "from_file: expected 'device' to be cpu, got ",
                options.device());
  size_t bytes = 0;
  LAMELLA_CHECK(
      !__builtin_mul_overflow(static_cast<size_t>(count), element_size(options.dtype()), &bytes),
      "from_file: expected a 'size' whose bytes can be counted, got ", count);
  detail::OpenFile file{
      ::open(filename.c_str(), (writes ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666)};
  LAMELLA_CHECK(file.number >= 0, "from_file: expected 'filename' to name a file to ",
                writes ? "write" : "read", ", got '", filename, "': ", std::strerror(errno));
  struct stat facts {};
  LAMELLA_CHECK(::fstat(file.number, &facts) == 0, "from_file: '", filename,
                "': ", std::strerror(errno));
  if (static_cast<size_t>(facts.st_size) < bytes) {
    LAMELLA_CHECK(writes, "from_file: expected '", filename, "' to have at least ", bytes,
                  " bytes, got ", facts.st_size);
    LAMELLA_CHECK(::ftruncate(file.number, static_cast<off_t>(bytes)) == 0, "from_file: expected '",
                  filename, "' to become ", bytes, " bytes long: ", std::strerror(errno));
  }
  // An empty mapping is not possible.
  if (bytes == 0) return from_blob(nullptr, {0}, options);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, writes ? MAP_SHARED : MAP_PRIVATE,
                      file.number, 0);
  LAMELLA_CHECK(data != MAP_FAILED, "from_file: expected to map ", bytes, " bytes of '", filename,
                "': ", std::strerror(errno));
  return from_blob(data, {count}, [bytes](void* begin) { ::munmap(begin, bytes); }, options);
}

}  // namespace lamella
