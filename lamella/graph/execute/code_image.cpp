// CodeImage: serialization, and mapping into executable memory.
#include "lamella/graph/execute/code_image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

#include "lamella/core/error.h"
#include "lamella/graph/execute/digest.h"
#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo {
namespace {

constexpr std::string_view kBegin = "lamella code 1\n";

class Writer {
 public:
  template <class T>
    requires std::is_integral_v<T>
  void operator()(T number) {
    auto wide = static_cast<uint64_t>(number);
    out.append(reinterpret_cast<const char*>(&wide), sizeof(wide));
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    out += text;
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    (*this)(list.size());
    for (const T& one : list) (*this)(one);
  }
  void operator()(const std::pair<uint32_t, uint32_t>& pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  void operator()(const CodeImage::Address& one) {
    (*this)(one.offset);
    (*this)(one.name);
  }
  void operator()(const MachineCode& one) {
    (*this)(one.temporary_bytes);
    (*this)(one.may_share);
    (*this)(one.notes);
    (*this)(one.loops);
  }
  std::string out;
};

// Reads the output of a Writer. The checksum was verified before, but lengths are checked, too.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
    requires std::is_integral_v<T>
  void operator()(T& number) {
    uint64_t wide = 0;
    if (rest_.size() < sizeof(wide)) return fail();
    std::memcpy(&wide, rest_.data(), sizeof(wide));
    rest_.remove_prefix(sizeof(wide));
    number = static_cast<T>(wide);
  }
  void operator()(std::string& text) {
    uint64_t size = 0;
    (*this)(size);
    if (size > rest_.size()) return fail();
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    uint64_t size = 0;
    (*this)(size);
    if (size > rest_.size()) return fail();
    list.resize(size);
    for (T& one : list) (*this)(one);
  }
  void operator()(std::pair<uint32_t, uint32_t>& pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  void operator()(CodeImage::Address& one) {
    (*this)(one.offset);
    (*this)(one.name);
  }
  void operator()(MachineCode& one) {
    (*this)(one.temporary_bytes);
    (*this)(one.may_share);
    (*this)(one.notes);
    (*this)(one.loops);
  }
  bool is_good() const { return good_ && rest_.empty(); }

 private:
  void fail() {
    good_ = false;
    rest_ = {};
  }
  std::string_view rest_;
  bool good_ = true;
};

template <class Image, class Each>
void each_part(Image& image, Each& each) {
  each(image.capability);
  each(image.needs);
  each(image.block);
  each(image.addresses);
  each(image.regions);
  each(image.entries);
}

struct Mapping {
  explicit Mapping(size_t size) : bytes(size) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    LAMELLA_CHECK(data != MAP_FAILED, "compiler: expected ", bytes,
                  " bytes of memory for code: ", std::strerror(errno));
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(data, bytes); }
  void* data;
  size_t bytes;
};

}  // namespace

std::string to_bytes(const CodeImage& image) {
  Writer writer;
  each_part(image, writer);
  return std::string(kBegin) + digest(writer.out) + writer.out;
}
std::optional<CodeImage> image_from_bytes(std::string_view bytes) {
  constexpr size_t kHead = kBegin.size() + kDigestDigits;
  if (bytes.size() < kHead || !bytes.starts_with(kBegin)) return std::nullopt;
  std::string_view contents = bytes.substr(kHead);
  if (digest(contents) != bytes.substr(kBegin.size(), kDigestDigits)) return std::nullopt;
  CodeImage image;
  Reader reader(contents);
  each_part(image, reader);
  bool good = reader.is_good() && image.entries.size() == image.regions.size();
  for (const CodeImage::Address& one : image.addresses) {
    good = good && image.block.size() >= sizeof(void*) &&
           one.offset <= image.block.size() - sizeof(void*) &&
           (one.name.empty() || code_symbol(one.name, image.capability) != nullptr);
  }
  for (uint64_t entry : image.entries) good = good && entry < image.block.size();
  if (!good) return std::nullopt;
  return image;
}

bool can_run(const CodeImage& image) {
  const std::vector<uint32_t>& has = processor_features();
  if (image.capability > code_capability() || image.needs.size() > has.size()) return false;
  for (size_t w = 0; w < image.needs.size(); ++w) {
    if ((image.needs[w] & ~has[w]) != 0) return false;
  }
  return true;
}

std::vector<MachineCode> load(const CodeImage& image, std::shared_ptr<const void>* holder) {
  auto mapping = std::make_shared<const Mapping>(std::max<size_t>(image.block.size(), 1));
  auto* data = static_cast<char*>(mapping->data);
  std::memcpy(data, image.block.data(), image.block.size());
  for (const CodeImage::Address& one : image.addresses) {
    uint64_t value = 0;
    if (one.name.empty()) {
      std::memcpy(&value, data + one.offset, sizeof(value));
      value += reinterpret_cast<uintptr_t>(data);
    } else {
      const void* symbol = code_symbol(one.name, image.capability);
      LAMELLA_INTERNAL_ASSERT(symbol != nullptr, "compiler: code calls unknown '", one.name, "'");
      value = reinterpret_cast<uintptr_t>(symbol);
    }
    std::memcpy(data + one.offset, &value, sizeof(value));
  }
  LAMELLA_CHECK(mprotect(data, mapping->bytes, PROT_READ | PROT_EXEC) == 0,
                "compiler: failed to make code executable: ", std::strerror(errno));
  __builtin___clear_cache(data, data + mapping->bytes);
  std::vector<MachineCode> regions = image.regions;
  for (size_t r = 0; r < regions.size(); ++r) {
    regions[r].function = reinterpret_cast<MachineCode::Function>(data + image.entries[r]);
  }
  *holder = std::move(mapping);
  return regions;
}

const std::vector<uint32_t>& processor_features() {
  static const std::vector<uint32_t> words = [] {
    std::vector<uint32_t> all;
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    auto add = [&](unsigned leaf, unsigned part) {
      a = b = c = d = 0;
      __get_cpuid_count(leaf, part, &a, &b, &c, &d);
    };
    add(1, 0);
    all.insert(all.end(), {c, d});
    add(7, 0);
    all.insert(all.end(), {b, c, d});
    add(7, 1);
    all.push_back(a);
    add(0x80000001, 0);
    all.insert(all.end(), {c, d});
#elif defined(__linux__)
    for (unsigned long kind : {AT_HWCAP, AT_HWCAP2}) {
      auto bits = static_cast<uint64_t>(getauxval(kind));
      all.push_back(static_cast<uint32_t>(bits));
      all.push_back(static_cast<uint32_t>(bits >> 32));
    }
#endif
    return all;
  }();
  return words;
}

}  // namespace lamella::hlo
