// OutputArchive and InputArchive: files of named values, exchangeable with PyTorch's C++ archives
// and torch.jit.
#pragma once
#include <fstream>
#include <functional>
#include <iterator>

#include "lamella/layers/autograd/grad_mode.h"
#include "lamella/nn/serialize/pickle_reader.h"
#include "lamella/nn/serialize/pickle_writer.h"
#include "lamella/nn/serialize/safetensors.h"

namespace lamella::serialize {

LAMELLA_LAZY class OutputArchiveOf {
  using Tree = ArchiveTreeOf<lazy_>;

 public:
  OutputArchiveOf() : tree_(std::make_shared<Tree>()) {}
  // For PyTorch's signature: its archives share a compilation unit, these have none.
  explicit OutputArchiveOf(std::nullptr_t) : OutputArchiveOf() {}
  std::nullptr_t compilation_unit() const { return nullptr; }

  // The tensor is a parameter unless `is_buffer`; an undefined one is not written.
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false) {
    if (!tensor.defined()) return;
    add(key, is_buffer ? Tree::Kind::kBuffer : Tree::Kind::kParameter, IValue(tensor), nullptr);
  }
  // The value is None, a tensor, a number, a string, a list of numbers or a tuple of these.
  void write(const std::string& key, const IValue& value) {
    add(key, Tree::Kind::kAttribute, value, nullptr);
  }
  void write(const std::string& key, OutputArchiveOf& nested) {
    add(key, Tree::Kind::kAttribute, IValue(), nested.tree_);
  }
  template <class... A>
  void operator()(A&&... arguments) {
    write(std::forward<A>(arguments)...);
  }

  void save_to(const std::string& filename) {
    const std::string bytes = packed();
    std::ofstream file(filename, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    LAMELLA_CHECK(file, "save: expected to write '", filename, "'");
  }
  void save_to(std::ostream& stream) {
    const std::string bytes = packed();
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    LAMELLA_CHECK(stream, "save: expected a stream that can be written to");
  }
  void save_to(const std::function<size_t(const void*, size_t)>& write) {
    const std::string bytes = packed();
    const size_t written = write(bytes.data(), bytes.size());
    LAMELLA_CHECK(written == bytes.size(), "save: expected ", bytes.size(),
                  " bytes to be written, got ", written);
  }

 private:
  void add(const std::string& key, typename Tree::Kind kind, IValue value,
           std::shared_ptr<Tree> inner) {
    LAMELLA_CHECK(tree_->find(key) == nullptr, "OutputArchive: expected a new key, got '", key,
                  "' again");
    tree_->entries.push_back({key, kind, std::move(value), std::move(inner)});
  }
  std::string packed() const {
    detail::ZipWriterOf<lazy_> files;
    detail::PickleWriterOf<lazy_> pickles(&files);
    const std::string tree = pickles.pickle(*tree_);
    files.add("archive/data.pkl", tree);
    files.add("archive/constants.pkl", std::string_view("\x80\x02).", 4));
    pickles.write_code();
    files.add("archive/byteorder", "little");
    files.add("archive/version", "3\n");
    return files.finish();
  }

  std::shared_ptr<Tree> tree_;
};
using OutputArchive = OutputArchiveOf<>;

// Reads the files that OutputArchive, PyTorch's archives and torch.jit.save() write, state
// dictionaries that torch.save() writes, where a dot in a key separates the name of an inner
// archive, and safetensors files, which Python's lamella.save() writes.
LAMELLA_LAZY class InputArchiveOf {
  using Tree = ArchiveTreeOf<lazy_>;

 public:
  InputArchiveOf() : tree_(std::make_shared<Tree>()) {}

  // False if the key is missing; parameters and buffers are read alike. A defined tensor gets the
  // data that is read, with its dtype; an undefined one becomes the tensor that is read.
  bool try_read(const std::string& key, Tensor& tensor, bool = false) {
    const auto* found = tree_->find(key);
    if (found == nullptr || !found->value.isTensor()) return false;
    Tensor read = found->value.template toTensor<Tensor>();
    if (device_) read = read.to(*device_);
    if (tensor.defined()) {
      NoGradGuard guard;
      tensor.set_data(read);
    } else {
      tensor = read;
    }
    return true;
  }
  bool try_read(const std::string& key, IValue& value) {
    const auto* found = tree_->find(key);
    if (found == nullptr || found->inner != nullptr) return false;
    value = found->value;
    return true;
  }
  bool try_read(const std::string& key, InputArchiveOf& archive) {
    const auto* found = tree_->find(key);
    if (found == nullptr || found->inner == nullptr) return false;
    archive.tree_ = found->inner;
    archive.device_ = device_;
    archive.path_ = path_ + key + ".";
    return true;
  }
  // Error if the key is missing.
  void read(const std::string& key, Tensor& tensor, bool = false) {
    LAMELLA_CHECK(try_read(key, tensor), "load: expected a tensor '", path_, key, "', got none");
  }
  void read(const std::string& key, IValue& value) {
    LAMELLA_CHECK(try_read(key, value), "load: expected a value '", path_, key, "', got none");
  }
  void read(const std::string& key, InputArchiveOf& archive) {
    LAMELLA_CHECK(try_read(key, archive), "load: expected an archive '", path_, key, "', got none");
  }
  template <class... A>
  void operator()(A&&... arguments) {
    read(std::forward<A>(arguments)...);
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& entry : tree_->entries) all.push_back(entry.key);
    return all;
  }

  // Tensors are moved to the device, if one is given.
  void load_from(const std::string& filename, std::optional<Device> device = std::nullopt) {
    std::ifstream file(filename, std::ios::binary);
    LAMELLA_CHECK(file, "load: expected a file '", filename, "', got none that can be read");
    load_from(file, device);
  }
  void load_from(std::istream& stream, std::optional<Device> device = std::nullopt) {
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    load_from(bytes.data(), bytes.size(), device);
  }
  void load_from(const char* data, size_t size, std::optional<Device> device = std::nullopt) {
    device_ = device;
    if (detail::is_safetensors({data, size})) {
      tree_ = detail::safetensors_tree({data, size});
      return;
    }
    detail::ZipReaderOf<lazy_> files(std::string_view(data, size));
    LAMELLA_CHECK(!files.has("byteorder") || files.get("byteorder") == "little",
                  "load: expected numbers whose lowest byte is first, got '",
                  files.get("byteorder"), "'");
    tree_ = detail::PickleReaderOf<lazy_>(files, files.get("data.pkl")).read();
  }
  void load_from(const std::function<size_t(uint64_t at, void* to, size_t count)>& read,
                 const std::function<size_t()>& size, std::optional<Device> device = std::nullopt) {
    std::string bytes(size(), '\0');
    LAMELLA_CHECK(read(0, bytes.data(), bytes.size()) == bytes.size(), "load: expected ",
                  bytes.size(), " bytes, got fewer");
    load_from(bytes.data(), bytes.size(), device);
  }

 private:
  std::shared_ptr<Tree> tree_;
  std::optional<Device> device_;
  std::string path_;  // of an inner archive, with a dot behind it
};
using InputArchive = InputArchiveOf<>;

LAMELLA_LAZY OutputArchiveOf<lazy_>& operator<<(OutputArchiveOf<lazy_>& archive,
                                                const Tensor& tensor) {
  archive.write("0", tensor);
  return archive;
}
LAMELLA_LAZY InputArchiveOf<lazy_>& operator>>(InputArchiveOf<lazy_>& archive, Tensor& tensor) {
  archive.read("0", tensor);
  return archive;
}

}  // namespace lamella::serialize

namespace lamella {

// A file, as bytes, that Python's torch.load() and pickle_load() read. The value consists of
// tensors, numbers, strings and containers of these; TypeError for others.
LAMELLA_LAZY std::vector<char> pickle_save(const IValue& value) {
  serialize::detail::ZipWriterOf<lazy_> files;
  const std::string pickle = serialize::detail::PickleWriterOf<lazy_>(&files).pickle(value);
  files.add("archive/data.pkl", pickle);
  files.add("archive/byteorder", "little");
  files.add("archive/version", "3\n");
  const std::string bytes = files.finish();
  return std::vector<char>(bytes.begin(), bytes.end());
}
// Reads the bytes of a file of pickle_save() or of Python's torch.save(). A list that is empty or
// of mixed types becomes a list of values of any type.
LAMELLA_LAZY IValue pickle_load(const std::vector<char>& data) {
  serialize::detail::ZipReaderOf<lazy_> files(std::string_view(data.data(), data.size()));
  return serialize::detail::PickleReaderOf<lazy_>(files, files.get("data.pkl")).read_value();
}

}  // namespace lamella
