// The C ABI: sequences of calls as a foreign library makes them, with arguments of every kind.
#include "lamella/abi/abi.h"

#include "target.h"

namespace lamella::fuzz {
namespace {

constexpr const char* kOperators[][2] = {
    {"aten::add", "Tensor"},
    {"aten::mul", "Scalar"},
    {"aten::view", ""},
    {"aten::cat", ""},
    {"aten::as_strided", ""},
    {"aten::index_select", ""},
    {"aten::sum", "dim_IntList"},
    {"aten::split", "Tensor"},
    {"aten::expand", ""},
    {"aten::gather", ""},
    {"aten::narrow", ""},
    {"aten::where", "self"},
    {"aten::matmul", ""},
    {"aten::slice", "Tensor"},
    {"aten::max", "dim"},
    {"aten::item", ""},
    {"aten::_local_scalar_dense", ""},
};
constexpr size_t kMostTensors = 8;
constexpr int64_t kMostElements = 1 << 12;
constexpr double kMostResults = 1 << 24;

class Session {
 public:
  explicit Session(Bytes& in) : in_(in) {}
  ~Session() {
    for (lamella_tensor* tensor : tensors_) drop(tensor);
    for (lamella_library* library : libraries_) lamella_library_close(library);
    for (lamella_value& value : values_) lamella_value_release(&value);
  }

  void step() {
    switch (in_.below(12)) {
      case 0:
        return make_empty();
      case 1:
        return make_view();
      case 2:
        return call();
      case 3:
        return call();
      case 4:
        return look_at_tensor();
      case 5:
        return look_at_operator();
      case 6:
        return make_value();
      case 7:
        return open_library();
      case 8:
        return define();
      case 9:
        return implement();
      case 10:
        return close_library();
      default:
        return from_memory();
    }
  }

 private:
  static void drop(lamella_tensor* tensor) {
    if (tensor != nullptr && __atomic_sub_fetch(&tensor->references, 1, __ATOMIC_ACQ_REL) == 0) {
      lamella_tensor_destroy(tensor);
    }
  }
  // Every failure has a text; a success gives a tensor whose elements lie within its storage.
  void keep(lamella_status status, lamella_tensor* tensor) {
    if (status != LAMELLA_OK) {
      if (status == LAMELLA_INTERNAL_ERROR) found(lamella_error_text());
      if (lamella_error_text()[0] == '\0') found("a failure without a text");
      return;
    }
    if (tensor == nullptr) return;
    check_reach(tensor);
    tensors_.push_back(tensor);
    if (tensors_.size() > kMostTensors) {
      drop(tensors_.front());
      tensors_.erase(tensors_.begin());
    }
  }
  void check_reach(const lamella_tensor* tensor) {
    if (tensor->numel == 0 || tensor->storage == nullptr || tensor->data == nullptr) return;
    __int128 last = tensor->storage_offset;
    __int128 first = last;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
      __int128 reach = static_cast<__int128>(tensor->sizes[d] - 1) * tensor->strides[d];
      (reach < 0 ? first : last) += reach;
    }
    // An element has a byte at least.
    if (first < 0 || last >= static_cast<__int128>(lamella_tensor_storage_bytes(tensor))) {
      found("a tensor with elements outside its storage");
    }
  }
  lamella_tensor* any_tensor() {
    return tensors_.empty() ? nullptr : tensors_[in_.below(tensors_.size())];
  }

  void make_empty() {
    std::vector<int64_t> sizes = in_.numbers(in_.below(5));
    lamella_tensor* made = nullptr;
    lamella_status status = lamella_tensor_empty(
        static_cast<int32_t>(sizes.size()), sizes.data(), static_cast<uint8_t>(in_.below(40)),
        static_cast<uint8_t>(in_.byte() < 230 ? 0 : in_.byte()),
        static_cast<int8_t>(in_.byte() < 230 ? -1 : in_.byte()), &made);
    keep(status, made);
  }
  void make_view() {
    lamella_tensor* from = any_tensor();
    if (from == nullptr) return;
    std::vector<int64_t> sizes = in_.numbers(in_.below(5)), strides = in_.numbers(sizes.size());
    lamella_tensor* made = nullptr;
    lamella_status status =
        lamella_tensor_as_strided(from, static_cast<int32_t>(sizes.size()), sizes.data(),
                                  strides.data(), in_.number(), &made);
    keep(status, made);
  }
  // The memory is as large as the sizes and strides ask for; what asks for more must be refused
  // or is not tried.
  void from_memory() {
    static double memory[kMostElements];
    std::vector<int64_t> sizes(in_.below(4));
    int64_t count = 1;
    for (int64_t& size : sizes) {
      size = in_.byte() < 250 ? static_cast<int64_t>(in_.below(8)) : -in_.byte();
      count *= size;
    }
    lamella_tensor* made = nullptr;
    lamella_status status = lamella_tensor_from_blob(
        memory, static_cast<int32_t>(sizes.size()), sizes.data(), nullptr,
        static_cast<uint8_t>(in_.below(8)), 0, -1, nullptr, nullptr, &made);
    keep(status, made);
  }
  void look_at_tensor() {
    lamella_tensor* tensor = any_tensor();
    if (tensor == nullptr) return;
    lamella_tensor_version(tensor);
    lamella_tensor_bump_version(tensor);
    lamella_tensor_storage_bytes(tensor);
    lamella_tensor_storage_data(tensor);
  }

  const lamella_operator* any_operator() {
    const auto& name = kOperators[in_.below(std::size(kOperators))];
    const lamella_operator* op = nullptr;
    if (lamella_find_operator(name[0], name[1], &op) != LAMELLA_OK) return nullptr;
    return op;
  }
  void look_at_operator() {
    std::string name = in_.text(30), overload = in_.text(6);
    const lamella_operator* op = nullptr;
    keep(lamella_find_operator(name.c_str(), overload.c_str(), &op), nullptr);
    op = any_operator();
    if (op == nullptr) return;
    lamella_operator_schema(op);
    lamella_argument_info info{};
    keep(lamella_operator_argument(op, static_cast<int32_t>(in_.number()),
                                   static_cast<uint32_t>(in_.number()), &info),
         nullptr);
    keep(lamella_check_signature(op, in_.text(40).c_str()), nullptr);
    uint16_t key = 0;
    keep(lamella_dispatch_key_from_name(in_.text(12).c_str(), &key), nullptr);
    lamella_dispatch_key_name(in_.take<uint16_t>());
  }

  // Arguments of the kind that the schema asks for most of the time, and of any kind else. Lists
  // borrow from `kept`.
  struct Kept {
    std::vector<int64_t> numbers;
    std::vector<lamella_tensor*> tensors;
    double parts[2];
  };
  lamella_value argument(const char* type, Kept& kept) {
    std::string_view name = type == nullptr ? "" : type;
    lamella_value value{};
    uint8_t kind = in_.byte();
    if (name.starts_with("Tensor") && name.find("[]") == std::string_view::npos && kind < 220) {
      value.tag = LAMELLA_TENSOR;
      value.as.tensor = kind < 200 ? any_tensor() : nullptr;
    } else if (name.starts_with("Tensor") && kind < 220) {
      for (size_t n = in_.below(4); n > 0; --n) kept.tensors.push_back(any_tensor());
      value.tag = LAMELLA_TENSOR_LIST;
      value.as.pointer = kept.tensors.data();
      value.size = static_cast<uint32_t>(kept.tensors.size());
    } else if (name.find("[]") != std::string_view::npos ||
               name.find("[1]") != std::string_view::npos || kind >= 245) {
      kept.numbers = in_.numbers(in_.below(5));
      value.tag = LAMELLA_INT_LIST;
      value.as.pointer = kept.numbers.data();
      value.size = static_cast<uint32_t>(kept.numbers.size());
    } else if (name.starts_with("int") || name.starts_with("SymInt") ||
               name.starts_with("Scalar")) {
      value.tag = kind < 200 ? LAMELLA_INT : LAMELLA_DOUBLE;
      if (value.tag == LAMELLA_INT) {
        value.as.i = in_.number();
      } else {
        value.as.d = in_.take<double>();
      }
    } else if (name.starts_with("bool") || kind < 120) {
      value.tag = LAMELLA_BOOL;
      value.as.i = in_.byte() & 1;
    } else {
      value.tag = LAMELLA_NONE;
    }
    return value;
  }
  // How many elements the tensors have when broadcast together, at most. Views with strides of zero
  // make small memory large.
  static double broadcast_elements(const std::vector<Kept>& kept,
                                   const std::vector<lamella_value>& arguments) {
    double product = 1;
    auto multiply = [&](const lamella_tensor* t) {
      if (t != nullptr && t->numel > 1) product *= static_cast<double>(t->numel);
    };
    for (const lamella_value& value : arguments) {
      if (value.tag == LAMELLA_TENSOR) multiply(value.as.tensor);
    }
    for (const Kept& lists : kept) {
      for (const lamella_tensor* t : lists.tensors) multiply(t);
    }
    return product;
  }
  void call() {
    const lamella_operator* op = any_operator();
    if (op == nullptr) return;
    std::vector<Kept> kept(op->argument_count);
    std::vector<lamella_value> arguments;
    for (uint32_t n = 0; n < op->argument_count; ++n) {
      lamella_argument_info info{};
      lamella_operator_argument(op, 0, n, &info);
      arguments.push_back(argument(info.type, kept[n]));
    }
    if (broadcast_elements(kept, arguments) > kMostResults) return;
    auto given = static_cast<uint32_t>(in_.byte() < 250 ? arguments.size() : in_.below(3));
    if (given > arguments.size()) given = static_cast<uint32_t>(arguments.size());
    std::vector<lamella_value> returns(op->return_count);
    lamella_status status = lamella_call_boxed(op, arguments.data(), given, returns.data(),
                                               static_cast<uint32_t>(returns.size()));
    keep(status, nullptr);
    if (status != LAMELLA_OK) return;
    for (lamella_value& value : returns) {
      if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
        check_reach(value.as.tensor);
        if (value.as.tensor->numel <= kMostElements) {
          keep(LAMELLA_OK, value.as.tensor);
          continue;
        }
      }
      lamella_value_release(&value);
    }
  }

  void make_value() {
    lamella_value value{};
    auto tag = static_cast<uint8_t>(in_.below(20));
    size_t size = in_.byte() < 230 ? in_.below(9) : static_cast<size_t>(in_.take<uint64_t>());
    lamella_status status = lamella_value_allocate(tag, size, &value);
    keep(status, nullptr);
    if (status != LAMELLA_OK) return;
    lamella_value copy{};
    status = lamella_value_copy(&value, &copy);
    keep(status, nullptr);
    if (status == LAMELLA_OK) lamella_value_release(&copy);
    values_.push_back(value);
  }

  void open_library() {
    if (libraries_.size() >= 4) return;
    std::string name = in_.byte() < 200 ? "fuzzed" + std::to_string(in_.below(3)) : in_.text(10);
    lamella_library* library = nullptr;
    lamella_status status = lamella_library_open(static_cast<int32_t>(in_.below(4)), name.c_str(),
                                                 in_.byte() < 200 ? 0xffff : in_.take<uint16_t>(),
                                                 __FILE__, __LINE__, &library);
    keep(status, nullptr);
    if (status == LAMELLA_OK) libraries_.push_back(library);
  }
  lamella_library* any_library() {
    return libraries_.empty() ? nullptr : libraries_[in_.below(libraries_.size())];
  }
  void define() {
    lamella_library* library = any_library();
    if (library == nullptr) return;
    std::string schema = in_.byte() < 150
                             ? "f" + std::to_string(in_.below(3)) + "(Tensor x, int n=1) -> Tensor"
                             : in_.text(60);
    std::string inferred = in_.text(20), tags = in_.text(12);
    keep(lamella_library_define(library, schema.c_str(),
                                in_.byte() < 230 ? nullptr : inferred.c_str(),
                                in_.byte() < 230 ? "" : tags.c_str(), __FILE__, __LINE__),
         nullptr);
  }
  static lamella_status refuse(const lamella_kernel*, const lamella_operator*, uint64_t,
                               const lamella_value*, lamella_value*) {
    return lamella_fail(LAMELLA_ERROR, "refused", 7);
  }
  void implement() {
    lamella_library* library = any_library();
    if (library == nullptr) return;
    lamella_kernel_description kernel{};
    kernel.boxed = in_.byte() < 230 ? refuse : nullptr;
    kernel.file = __FILE__;
    std::string name = in_.byte() < 200 ? "f" + std::to_string(in_.below(3)) : in_.text(12);
    uint16_t key = in_.byte() < 200 ? 0xffff : in_.take<uint16_t>();
    keep(lamella_library_implement(library, name.c_str(), key, &kernel), nullptr);
  }
  void close_library() {
    if (libraries_.empty()) return;
    size_t n = in_.below(libraries_.size());
    lamella_library_close(libraries_[n]);
    libraries_.erase(libraries_.begin() + static_cast<ptrdiff_t>(n));
  }

  Bytes& in_;
  std::vector<lamella_tensor*> tensors_;
  std::vector<lamella_value> values_;
  std::vector<lamella_library*> libraries_;
};

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (unsigned n = 0; n < 40; ++n) {
    std::string one;
    uint32_t state = n * 2654435761u + 1;
    for (int k = 0; k < 240; ++k) {
      state = state * 1664525u + 1013904223u;
      // Tensors first, then calls of all kinds.
      one += static_cast<char>(k < 40 ? state >> 24 & 7 : state >> 24);
    }
    all.push_back(std::move(one));
  }
  return all;
}
std::vector<std::string> words() { return {"Tensor x", " -> ()", "CPU", "int[]"}; }

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella::fuzz;
  [[maybe_unused]] static const bool registered = (lamella_register_all(), true);
  Bytes in(data, size);
  Session session(in);
  for (int steps = 0; steps < 64 && !in.empty(); ++steps) session.step();
  return 0;
}
