// A writer of the pickles in PyTorch's archives, as torch.jit.load() reads them: a tree of named
// values, with tensor data in separate files and classes declared as code.
#pragma once
#include "lamella/core/list.h"
#include "lamella/nn/serialize/tree.h"
#include "lamella/nn/serialize/zip.h"

namespace lamella::serialize::detail {

LAMELLA_LAZY class PickleWriterOf {
 public:
  explicit PickleWriterOf(ZipWriterOf<lazy_>* files) : files_(files) {}
  // Pickles the tree as an object of a class that write_code() declares.
  std::string pickle(const ArchiveTreeOf<lazy_>& tree) {
    out_ = "\x80\x02";
    object(tree);
    return std::move(out_) + '.';
  }
  // Pickles a plain value, as Python's torch.save() does.
  std::string pickle(const IValue& value) {
    out_ = "\x80\x02";
    this->value(value);
    return std::move(out_) + '.';
  }
  // Adds the declarations of all classes as code files.
  void write_code() const {
    for (size_t i = 0; i < code_.size(); ++i) {
      files_->add(
          "archive/code/" + std::string(i == 0 ? "" : "__torch__/") + module_name(i) + ".py",
          code_[i]);
    }
  }

 private:
  static std::string module_name(size_t i) {
    return i == 0 ? "__torch__" : "___torch_mangle_" + std::to_string(i - 1);
  }
  static std::string class_of(size_t i) {
    return (i == 0 ? "__torch__" : "__torch__." + module_name(i)) + ".Module";
  }
  static bool is_word(const std::string& text) {
    for (char c : text) {
      bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      if (!letter && !(c >= '0' && c <= '9')) return false;
    }
    return !text.empty() && !(text[0] >= '0' && text[0] <= '9');
  }
  static std::string type_of(const IValue& value) {
    switch (value.tag()) {
      case LAMELLA_NONE:
        return "NoneType";
      case LAMELLA_TENSOR:
        return "Tensor";
      case LAMELLA_BOOL:
        return "bool";
      case LAMELLA_INT:
        return "int";
      case LAMELLA_DOUBLE:
        return "float";
      case LAMELLA_STRING:
        return "str";
      case LAMELLA_INT_LIST:
        return "List[int]";
      case LAMELLA_DOUBLE_LIST:
        return "List[float]";
      case LAMELLA_TENSOR_LIST:
        return "List[Tensor]";
      case LAMELLA_TUPLE: {
        std::string all;
        for (const IValue& item : value.elements())
          all += (all.empty() ? "" : ", ") + type_of(item);
        return "Tuple[" + all + "]";
      }
      default:
        lamella::detail::throw_tag(
            "a tensor, a number, a string, a list of numbers or a tuple of "
            "these to save",
            value.tag());
    }
  }

  void object(const ArchiveTreeOf<lazy_>& tree) {
    const size_t number = code_.size();
    code_.emplace_back();
    std::string lists[2], attributes;
    bool has_dictionary = false;
    global(number == 0 ? "__torch__" : "__torch__." + module_name(number), "Module");
    out_ += ")\x81}(";
    for (const auto& entry : tree.entries) {
      text(entry.key);
      std::string type;
      if (entry.inner != nullptr) {
        type = class_of(code_.size());
        object(*entry.inner);
      } else {
        type = type_of(entry.value);
        value(entry.value);
      }
      if (entry.kind != ArchiveTreeOf<lazy_>::Kind::kAttribute) {
        lists[entry.kind == ArchiveTreeOf<lazy_>::Kind::kBuffer] += '"' + entry.key + "\", ";
      }
      if (is_word(entry.key)) {
        attributes += "  " + entry.key + " : " + type + "\n";
        continue;
      }
      if (!has_dictionary) attributes = "  __annotations__ = []\n" + attributes;
      has_dictionary = true;
      attributes += "  __annotations__[\"" + entry.key + "\"] = " + type + "\n";
    }
    out_ += "ub";
    code_[number] = "class Module(Module):\n  __parameters__ = [" + lists[0] +
                    "]\n  __buffers__ = [" + lists[1] + "]\n" + attributes;
  }
  void value(const IValue& value) {
    switch (value.tag()) {
      case LAMELLA_NONE:
        out_ += 'N';
        break;
      case LAMELLA_TENSOR:
        tensor(value.template toTensor<Tensor>());
        break;
      case LAMELLA_BOOL:
        out_ += value.toBool() ? '\x88' : '\x89';
        break;
      case LAMELLA_INT:
        number(value.toInt());
        break;
      case LAMELLA_DOUBLE:
        number(value.toDouble());
        break;
      case LAMELLA_STRING:
        text(value.toStringView());
        break;
      case LAMELLA_INT_LIST:
        list("build_intlist", value.toIntList());
        break;
      case LAMELLA_DOUBLE_LIST:
        list("build_doublelist", value.toDoubleList());
        break;
      case LAMELLA_BOOL_LIST:
        global("torch.jit._pickle", "build_boollist");
        out_ += "(](";
        for (const IValue& each : value.toList()) this->value(each);
        out_ += "etR";
        break;
      case LAMELLA_TUPLE:
        values("(", value, "t");
        break;
      case LAMELLA_LIST:
        values("](", value, "e");
        break;
      case LAMELLA_DICT:
        values("}(", value, "u");
        break;
      case LAMELLA_TENSOR_LIST:
        global("torch.jit._pickle", "build_tensorlist");
        out_ += "(](";
        for (const Tensor& each : value.template toTensorList<Tensor>()) tensor(each);
        out_ += "etR";
        break;
      default:
        lamella::detail::throw_tag(
            "a tensor, a number, a string, or a list, tuple or dictionary of these to save",
            value.tag());
    }
  }
  void values(const char* before, const IValue& of, const char* behind) {
    out_ += before;
    for (const IValue& item : of.elements()) value(item);
    out_ += behind;
  }
  template <class List>
  void list(const char* name, const List& numbers) {
    global("torch.jit._pickle", name);
    out_ += "(](";
    for (auto each : numbers) number(each);
    out_ += "etR";
  }
  void number(int64_t number) {
    if (number >= INT32_MIN && number <= INT32_MAX) {
      out_ += 'J';
      put(out_, static_cast<uint32_t>(static_cast<int32_t>(number)), 4);
    } else {
      out_ += "\x8a\x08";
      put(out_, static_cast<uint64_t>(number), 8);
    }
  }
  void number(double number) {
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    out_ += 'G';
    put(out_, __builtin_bswap64(bits), 8);
  }
  void text(std::string_view text) {
    out_ += 'X';
    put(out_, text.size(), 4);
    out_ += text;
  }
  void global(const std::string& module, const std::string& name) {
    out_ += 'c' + module + '\n' + name + '\n';
  }
  void sizes(IntArrayRef sizes) {
    out_ += '(';
    for (int64_t size : sizes) number(size);
    out_ += 't';
  }
  void tensor(const Tensor& given) {
    Tensor tensor = given.detach().cpu().resolve_conj().resolve_neg().contiguous();
    const char* storage = nullptr;
    for (const StorageName& each : kStorages) {
      if (each.dtype == tensor.scalar_type()) storage = each.name;
    }
    LAMELLA_CHECK(storage != nullptr, "save: expected a dtype that PyTorch's files have, got ",
                  tensor.scalar_type());
    const std::string key = std::to_string(tensors_++);
    const size_t bytes = static_cast<size_t>(tensor.numel()) * tensor.element_size();
    files_->add("archive/data/" + key, {static_cast<const char*>(tensor.const_data_ptr()), bytes});
    global("torch._utils", "_rebuild_tensor_v2");
    out_ += "((";
    text("storage");
    global("torch", storage);
    text(key);
    text("cpu");
    number(tensor.numel());
    out_ += "tQ";
    number(int64_t{0});
    sizes(tensor.sizes());
    sizes(tensor.strides());
    out_ += given.requires_grad() ? '\x88' : '\x89';
    global("collections", "OrderedDict");
    out_ += ")RtR";
  }

  ZipWriterOf<lazy_>* files_;
  std::string out_;
  std::vector<std::string> code_;  // one for each object
  int64_t tensors_ = 0;
};

}  // namespace lamella::serialize::detail
