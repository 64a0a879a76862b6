// Names of keyword arguments: an operator's own, and the synonyms that NumPy and PyTorch use.
#include "python/src/parse.h"

namespace lamella::python {

namespace {

// A synonym of NumPy or PyTorch for the name of an argument.
struct Synonym {
  const char* name;
  const char* synonym;
};
constexpr Synonym kSynonyms[] = {{"self", "input"},
                                 {"dim", "axis"},
                                 {"keepdim", "keepdims"},
                                 {"self", "x"},
                                 {"self", "a"},
                                 {"self", "x1"},
                                 {"input", "x"},
                                 {"input", "a"},
                                 {"input", "x1"},
                                 {"other", "x2"},
                                 {"self", "tensor"},
                                 {"input", "tensor"},
                                 {"split_size", "split_size_or_sections"}};

bool same_name(PyObject* a, PyObject* b) {
  return a == b ||
         (PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0);
}

}  // namespace

int find_keyword(const Program& program, PyObject* keyword) {
  size_t count = program.params.size();
  for (size_t i = 0; i < count; ++i) {
    if (program.params[i].name == keyword) return static_cast<int>(i);
  }
  for (size_t i = 0; i < count; ++i) {
    if (same_name(program.params[i].name, keyword)) return static_cast<int>(i);
  }
  for (const Synonym& entry : kSynonyms) {
    if (PyUnicode_CompareWithASCIIString(keyword, entry.synonym) != 0) continue;
    for (size_t i = 0; i < count; ++i) {
      if (PyUnicode_CompareWithASCIIString(program.params[i].name, entry.name) == 0) {
        return static_cast<int>(i);
      }
    }
  }
  return -1;
}

bool is_requires_grad_name(PyObject* keyword) {
  return PyUnicode_CompareWithASCIIString(keyword, "requires_grad") == 0;
}

bool is_out_name(PyObject* keyword) {
  static PyObject* out_name = nullptr;  // interned
  if (out_name == nullptr) out_name = PyUnicode_InternFromString("out");
  return keyword == out_name || PyUnicode_CompareWithASCIIString(keyword, "out") == 0;
}

}  // namespace lamella::python
