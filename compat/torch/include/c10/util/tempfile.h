// c10::TempFile and c10::TempDir: a file and a folder with new names, which end with their objects.
#pragma once
#include <c10/util/Exception.h>

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace c10 {
namespace detail {
// A template for mkstemp and mkdtemp, in the folder that the environment names for such files.
inline std::string temporary_name(const std::string& prefix) {
  for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    if (const char* folder = getenv(name)) return std::string(folder) + "/" + prefix + "XXXXXX";
  }
  return "/tmp/" + prefix + "XXXXXX";
}
}  // namespace detail

struct TempFile {
  TempFile() = default;
  TempFile(std::string file, int open) : name(std::move(file)), fd(open) {}
  TempFile(TempFile&& other) noexcept
      : name(std::exchange(other.name, {})), fd(std::exchange(other.fd, -1)) {}
  TempFile& operator=(TempFile&& other) noexcept {
    std::swap(name, other.name);
    std::swap(fd, other.fd);
    return *this;
  }
  ~TempFile() {
    if (fd >= 0) close(fd);
    if (!name.empty()) std::remove(name.c_str());  // an empty folder as well
  }
  std::string name;
  int fd = -1;
};
struct TempDir : TempFile {
  explicit TempDir(std::string folder = {}) : TempFile(std::move(folder), -1) {}
};

inline std::optional<TempFile> try_make_tempfile(const std::string& prefix = "torch-file-") {
  std::string name = detail::temporary_name(prefix);
  const int fd = mkstemp(name.data());
  if (fd < 0) return std::nullopt;
  return std::make_optional<TempFile>(std::move(name), fd);
}
inline TempFile make_tempfile(const std::string& prefix = "torch-file-") {
  std::optional<TempFile> file = try_make_tempfile(prefix);
  TORCH_CHECK(file.has_value(), "make_tempfile: ", std::strerror(errno));
  return std::move(*file);
}
inline std::optional<TempDir> try_make_tempdir(const std::string& prefix = "torch-dir-") {
  std::string name = detail::temporary_name(prefix);
  if (mkdtemp(name.data()) == nullptr) return std::nullopt;
  return std::make_optional<TempDir>(std::move(name));
}
inline TempDir make_tempdir(const std::string& prefix = "torch-dir-") {
  std::optional<TempDir> folder = try_make_tempdir(prefix);
  TORCH_CHECK(folder.has_value(), "make_tempdir: ", std::strerror(errno));
  return std::move(*folder);
}
}  // namespace c10
