// The on-disk cache of compiled code: its folder, its files, and its limit of size.
#include "lamella/graph/execute/code_cache.h"

#include <fcntl.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <unordered_set>

#include "lamella/core/allocator.h"
#include "lamella/core/fork.h"
#include "lamella/graph/execute/digest.h"
#include "lamella/graph/execute/machine_code.h"
#include "lamella/graph/hlo/effects.h"

namespace lamella::hlo {
namespace {

namespace fs = std::filesystem;
constexpr const char* kEnding = ".code";

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

// True if only this user can write the file or folder.
bool is_safe(const struct stat& info) {
  return info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The cache folder, created if necessary; empty if there is none to use.
std::string folder() {
  std::string path = environment("LAMELLA_CACHE");
  // LAMELLA_DUMP_LLVM dumps code while it is compiled, so cached code must not be used.
  if (path == "off" || path == "0" || !environment("LAMELLA_DUMP_LLVM").empty()) return "";
  if (path.empty()) {
    std::string base = environment("XDG_CACHE_HOME");
    if (base.empty() || base[0] != '/') {
      base = environment("HOME");
      if (base.empty()) return "";
      base += "/.cache";
    }
    path = base + "/lamella";
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    std::error_code failed;
    fs::create_directories(fs::path(path).parent_path(), failed);
    if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return "";
    if (stat(path.c_str(), &info) != 0) return "";
  }
  return S_ISDIR(info.st_mode) && is_safe(info) ? path : "";
}

int64_t limit_bytes() {
  std::string text = environment("LAMELLA_CACHE_LIMIT");
  int64_t mebibytes = text.empty() ? 512 : std::strtoll(text.c_str(), nullptr, 10);
  return std::clamp<int64_t>(mebibytes, 0, int64_t{1} << 40) << 20;
}

std::string surrounding_text;
fork::Once surroundings_read;

std::string path_of(const std::string& regions) {
  std::string path = folder();
  if (path.empty()) return path;
  return str(path, "/", digest(str(surroundings(), "\n", regions)), kEnding);
}

class File {
 public:
  explicit File(int number) : number_(number) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (number_ >= 0) close(number_);
  }
  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  bool read_all(std::string* to, size_t size) const {
    to->resize(size);
    for (size_t at = 0; at < size;) {
      ssize_t got = read(number_, to->data() + at, size - at);
      if (got <= 0 && !(got < 0 && errno == EINTR)) return false;
      at += static_cast<size_t>(std::max<ssize_t>(got, 0));
    }
    return true;
  }
  bool write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      ssize_t done = write(number_, bytes.data(), bytes.size());
      if (done <= 0 && !(done < 0 && errno == EINTR)) return false;
      bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(done, 0)));
    }
    return true;
  }

 private:
  int number_;
};

// Removes the least recently used files until a quarter of the limit is free.
void make_room(const std::string& path, int64_t limit) {
  struct Kept {
    fs::path path;
    int64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Kept> files;
  int64_t sum = 0;
  std::error_code failed;
  auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    auto bytes = static_cast<int64_t>(at->file_size(gone));
    auto used = at->last_write_time(gone);
    if (gone) continue;
    std::string name = at->path().filename().string();
    // A temporary file that a terminated process has left.
    if (name.starts_with(".new-") && now - used > std::chrono::hours(1)) {
      fs::remove(at->path(), gone);
    }
    if (at->path().extension() != kEnding) continue;
    files.push_back({at->path(), bytes, used});
    sum += bytes;
  }
  if (sum <= limit) return;
  std::sort(files.begin(), files.end(),
            [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& one : files) {
    if (sum <= limit / 4 * 3) return;
    fs::remove(one.path, failed);
    sum -= one.bytes;
  }
}

// The digest of the contents of the regions and of all computations that they call.
std::string regions_digest(const Module& module, std::span<const Region* const> regions) {
  std::string text;
  auto add = [&](const Instruction* i) {
    text += i->parent->name;
    text += '.';
    text += i->name;
    text += '\n';
  };
  PrintOptions options;
  options.metadata = false;
  auto state = [&](const Instruction* i) {
    if (i->opcode != Opcode::Constant) {
      text += to_string(*i, options);
    } else {
      // The bits, as printed numbers do not distinguish NaNs.
      text += str(i->name, " constant ", i->shape->to_string(true), " ");
      text.append(static_cast<const char*>(i->literal->data()), i->literal->bytes());
    }
    text += '\n';
  };
  for (const Region* region : regions) {
    text += "region\n";
    for (const Instruction* i : region->inputs) {
      text += str(i->name, " ", i->shape->to_string(true), "\n");
    }
    for (const Instruction* i : region->instructions) state(i);
    for (const Instruction* i : region->outputs) add(i);
  }
  std::unordered_set<const Computation*> seen;
  std::vector<const Computation*> todo;
  auto visit = [&](const Instruction* i) {
    for_each_called(*i, [&](const Computation& called) {
      if (seen.insert(&called).second) todo.push_back(&called);
    });
  };
  for (const Region* region : regions) {
    for (const Instruction* i : region->instructions) visit(i);
  }
  for (size_t n = 0; n < todo.size(); ++n) {
    text += str("computation ", todo[n]->name, "\n");
    for (const Instruction* i : todo[n]->instructions) {
      state(i);
      visit(i);
    }
    add(todo[n]->root);
  }
  // The limit of instructions in one function depends on the module's instruction count.
  return digest(str(module.instruction_count(), "\n", text));
}

// Returns cached code for regions with this digest, if this processor can run it.
std::optional<CodeImage> find_code(const std::string& regions) {
  std::string path = path_of(regions);
  if (path.empty()) return std::nullopt;
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!file || fstat(file.number(), &info) != 0 || !S_ISREG(info.st_mode) || !is_safe(info)) {
    return std::nullopt;
  }
  std::string bytes;
  if (!file.read_all(&bytes, static_cast<size_t>(info.st_size))) return std::nullopt;
  std::optional<CodeImage> image = image_from_bytes(bytes);
  if (!image) {
    unlink(path.c_str());
    return image;
  }
  if (!can_run(*image)) return std::nullopt;
  futimens(file.number(), nullptr);  // marks it as just used
  return image;
}

void keep_code(const std::string& regions, const CodeImage& image) {
  std::string path = path_of(regions);
  if (path.empty()) return;
  std::string bytes = to_bytes(image);
  int64_t limit = limit_bytes();
  if (static_cast<int64_t>(bytes.size()) > limit / 4) return;
  std::string in = path.substr(0, path.rfind('/'));
  std::string name = in + "/.new-XXXXXX";
  File file(mkostemp(name.data(), O_CLOEXEC));
  if (!file) return;
  if (!file.write_all(bytes) || rename(name.c_str(), path.c_str()) != 0) {
    unlink(name.c_str());
    return;
  }
  // Checks the limit when this process first stores code, and again after each sixteenth of the
  // limit.
  static std::atomic<int64_t> since{INT64_MAX / 2};
  if (since.fetch_add(static_cast<int64_t>(bytes.size())) > limit / 16) {
    since = 0;
    make_room(in, limit);
  }
}

}  // namespace

const std::string& surroundings() {
  surroundings_read([] {
    std::string all = str(code_capability());
    for (uint32_t word : processor_features()) all += str(" ", word);
    for (const std::string& path : compiler_libraries()) {
      struct stat info {};
      if (stat(path.c_str(), &info) != 0) continue;
      all +=
          str("\n", path, " ", info.st_size, " ", info.st_mtim.tv_sec, " ", info.st_mtim.tv_nsec);
    }
    surrounding_text = std::move(all);
  });
  return surrounding_text;
}

std::optional<CodeImage> image_of(const Module& module, std::span<const Region* const> regions,
                                  StoredCode* stored, bool on_device) {
  std::string digest_of_regions = regions_digest(module, regions);
  if (on_device) digest_of_regions += " ptx";
  std::optional<CodeImage> image;
  if (stored != nullptr && stored->regions == digest_of_regions) {
    image = image_from_bytes(stored->image);
    if (image && can_run(*image)) return image;
  }
  if (!may_have_machine_compiler()) return std::nullopt;
  image = find_code(digest_of_regions);
  if (!image || image->regions.size() != regions.size()) {
    // So that the compiler takes the memory that the program's making has freed.
    empty_cpu_cache();
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    MachineCompiler* compiler = machine_compiler();
    if (compiler == nullptr) return std::nullopt;
    image = on_device ? compiler->compile_for_device(regions) : compiler->compile(regions);
    if (!image) return std::nullopt;
    keep_code(digest_of_regions, *image);
  }
  if (stored != nullptr && stored->image.empty()) {
    *stored = {digest_of_regions, to_bytes(*image)};
  }
  return image;
}

}  // namespace lamella::hlo
