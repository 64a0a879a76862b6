// Loads a library of operators and describes them.
#include "lamella/abi/loading.h"
#include "lamella/abi/policy.h"
#include "lamella/bridge/bridge.h"

namespace lamella::bridge {
namespace {

std::string_view without_aliases(std::string_view type, std::string* aliases, std::string* whole) {
  size_t open = type.find('(');
  if (open == std::string_view::npos) return type;
  size_t close = type.find(')', open);
  *aliases = type.substr(open + 1, close - open - 1);
  *whole = std::string(type.substr(0, open)) + std::string(type.substr(close + 1));
  return *whole;
}

std::string word_of(const lamella_operator* op, const char* policy) {
  const char* word = lamella_operator_policy(op, policy);
  return word != nullptr ? word : "";
}

// One line for an operator: fields between tabs, in the order in which python/lamella/bridge reads
// them.
lamella_status describe(void* context, const lamella_operator* op) {
  std::string& text = *static_cast<std::string*>(context);
  const lamella_derivative* d = lamella_operator_derivative(op);
  text += std::string(op->name) + '\t' + op->overload + '\t' + lamella_operator_schema(op) + '\t' +
          word_of(op, "batching") + '\t' + word_of(op, "autocast") + '\t';
  if (d != nullptr) {
    for (uint32_t s = 0; s < d->slot_count; ++s) text += std::to_string(d->slots[s]) + ' ';
    text += '\t' + std::to_string(d->differentiable_returns) + '\t' + std::to_string(d->flags) +
            '\t' + (d->backward != nullptr ? '1' : '0') + '\t';
    for (uint32_t k = 0; k < d->saved_count; ++k) {
      if (d->saved[k].is_return != 0) text += std::to_string(d->saved[k].index) + ' ';
    }
  } else {
    text += "\t\t\t\t";
  }
  text += '\n';
  return LAMELLA_OK;
}

}  // namespace

std::vector<Argument> arguments_of(const lamella_operator* op, int32_t kind) {
  const uint32_t count = kind == 0 ? op->argument_count : op->return_count;
  std::vector<Argument> all;
  for (uint32_t i = 0; i < count; ++i) {
    lamella_argument_info info;
    check(lamella_operator_argument(op, kind, i, &info));
    Argument one;
    one.name = info.name;
    one.write = info.is_write != 0;
    std::string whole;
    std::string_view type = without_aliases(info.type, &one.aliases, &whole);
    if (type.ends_with('?')) {
      one.optional = true;
      type.remove_suffix(1);
    }
    const size_t list = type.rfind('[');
    const bool is_list = list != std::string_view::npos && type.ends_with(']');
    const std::string_view element = is_list ? type.substr(0, list) : type;
    if (element == "Tensor") {
      one.kind = is_list ? Kind::kTensorList : Kind::kTensor;
    } else if (element == "Tensor?" && is_list) {
      one.kind = Kind::kOptionalTensors;
    } else if (element == "Scalar" && !is_list) {
      one.kind = Kind::kScalar;
    } else if (element == "int" || element == "SymInt") {
      one.kind = is_list ? Kind::kIntList : Kind::kInt;
    } else if (element == "float") {
      one.kind = is_list ? Kind::kDoubleList : Kind::kDouble;
    } else if (element == "bool") {
      one.kind = is_list ? Kind::kBoolList : Kind::kBool;
    } else if (element == "str" && !is_list) {
      one.kind = Kind::kString;
    } else if (element == "Device" && !is_list) {
      one.kind = Kind::kDevice;
    } else if ((element == "ScalarType" || element == "Layout" || element == "MemoryFormat") &&
               !is_list) {
      one.kind = Kind::kInt;
      one.number = true;
    }
    all.push_back(std::move(one));
  }
  return all;
}

lamella_tensor* copied(lamella_tensor* tensor) {
  static const lamella_operator* clone = [] {
    const lamella_operator* found = nullptr;
    check(lamella_find_operator("aten::clone", "", &found));
    return found;
  }();
  lamella_value arguments[2] = {};
  arguments[0].tag = LAMELLA_TENSOR;
  arguments[0].as.tensor = tensor;
  arguments[1].tag = LAMELLA_INT;  // MemoryFormat: contiguous
  lamella_value result = {};
  check(lamella_call_boxed(clone, arguments, 2, &result, 1));
  return result.as.tensor;
}

}  // namespace lamella::bridge

using namespace lamella::bridge;

// The operators of a library, a line each; NULL: lamella_error_text() says why. The text is kept
// for this thread until its next call. The library stays loaded.
LAMELLA_BRIDGE_API const char* lamella_bridge_load(const char* path) {
  static thread_local std::string text;
  text.clear();
  void* handle = nullptr;
  lamella_status status = lamella_load_library(path, &handle);
  if (status == LAMELLA_OK) status = lamella_visit_operators(handle, &describe, &text);
  return status == LAMELLA_OK ? text.c_str() : nullptr;
}

LAMELLA_BRIDGE_API const char* lamella_bridge_error() { return lamella_error_text(); }
