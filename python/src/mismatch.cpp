// The TypeError of a call that fits no signature. This code is not optimised for speed.
//
//   add: got (Tensor, str), which fits none of
//     add(Tensor input, Tensor other, *, Scalar alpha=1, Tensor out=None)
//       'other' (position 2): expected Tensor, got str
#include <algorithm>

#include "python/src/errors.h"
#include "python/src/numbers.h"

namespace lamella::python {
namespace {

// Nested lists are described to a small depth, as a list may contain itself.
std::string describe(PyObject* object, int depth = 3) {
  if (object == Py_None) return "None";
  if (is_exact_tensor(object)) return "Tensor";
  if (PyList_Check(object) || PyTuple_Check(object)) {
    Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
    std::string text = PyList_Check(object) ? "[" : "(";
    if (depth == 0 && size != 0) return text + (PyList_Check(object) ? "...]" : "...)");
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (i != 0) text += ", ";
      if (i == 4) {
        text += "...";
        break;
      }
      text += describe(PySequence_Fast_GET_ITEM(object, i), depth - 1);
    }
    return text + (PyList_Check(object) ? "]" : size == 1 ? ",)" : ")");
  }
  const char* name = Py_TYPE(object)->tp_name;
  const char* dot = strrchr(name, '.');
  return std::string(dot != nullptr && strncmp(name, "lamella.", 8) == 0 ? dot + 1 : name);
}

std::string printed_type(const Param& param) {
  std::string text = param.type.str();
  for (size_t at; (at = text.find("SymInt")) != std::string::npos;) text.replace(at, 6, "int");
  return text;
}

std::string pending_text() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  std::string text = "conversion failed";
  if (Ref printed{value != nullptr ? PyObject_Str(value) : nullptr}) {
    text = text_of(printed.get());
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_Clear();
  return text;
}

struct GivenCall {
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
  bool is_method;
  Py_ssize_t keywords() const { return kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0; }
  bool gives_out() const {
    for (Py_ssize_t k = 0; k < keywords(); ++k) {
      if (is_out_name(PyTuple_GET_ITEM(kwnames, k)) && args[nargs + k] != Py_None) return true;
    }
    return false;
  }
};

// The name as the caller knows it.
std::string shown(const Param& param) {
  std::string name = text_of(param.name);
  return name == "self" ? "input" : name;
}

// Why a call does not fit a program; empty if it fits.
std::string reason(const Program& program, const GivenCall& call) {
  Frame frame;
  lamella_value value;
  size_t first = call.is_method ? 1 : 0;
  std::vector<bool> seen(program.params.size());
  auto wrong = [&](const Param& param, PyObject* object, Py_ssize_t position) {
    Match m = convert(param, object, false, frame, &value);
    if (m == Match::kYes) return std::string();
    std::string text = "'" + shown(param) + "'";
    if (position >= 0)
      text += " (position " + std::to_string(position + 1 - static_cast<Py_ssize_t>(first)) + ")";
    if (m == Match::kError) return text + ": " + pending_text();
    text += ": expected " + printed_type(param) + ", got " + describe(object);
    return holds_gradient(object) ? text + " that requires grad; its item() is a number" : text;
  };
  Py_ssize_t given = call.nargs;
  if (program.varargs >= 0 && given > program.positional) {
    for (Py_ssize_t i = program.varargs; i < given; ++i) {
      int64_t number;
      Match m = read_int(call.args[i], &number);
      if (m == Match::kYes) continue;
      if (m == Match::kError) return pending_text();
      return "'" + shown(program.params[program.varargs]) + "' (position " +
             std::to_string(i + 1 - static_cast<Py_ssize_t>(first)) + "): expected int, got " +
             describe(call.args[i]);
    }
    given = program.varargs + 1;
    seen[program.varargs] = true;
  } else if (given > program.positional) {
    return "expected at most " + std::to_string(program.positional - first) +
           " positional arguments, got " + std::to_string(given - static_cast<Py_ssize_t>(first));
  }
  for (Py_ssize_t i = 0; i < given; ++i) {
    if (seen[i]) continue;
    seen[i] = true;
    int64_t number;
    if (i == program.varargs && read_int(call.args[i], &number) == Match::kYes) continue;
    PyErr_Clear();
    std::string text = wrong(program.params[i], call.args[i], i);
    if (!text.empty()) return text;
  }
  for (Py_ssize_t k = 0; k < call.keywords(); ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(call.kwnames, k);
    PyObject* object = call.args[call.nargs + k];
    std::string name = text_of(keyword);
    if (is_out_name(keyword)) {
      if (object == Py_None && program.outs.empty()) continue;
      if (program.outs.empty()) return "unknown keyword 'out'";
      if (program.outs.size() == 1) {
        const Param& out = program.params[program.outs[0]];
        if (convert(out, object, false, frame, &value) != Match::kYes) {
          PyErr_Clear();
          return "'out': expected Tensor, got " + describe(object);
        }
      } else if (!PyTuple_Check(object) && !PyList_Check(object)) {
        return "'out': expected " + std::to_string(program.outs.size()) + " tensors, got " +
               describe(object);
      } else if (PySequence_Fast_GET_SIZE(object) != static_cast<Py_ssize_t>(program.outs.size())) {
        return "'out': expected " + std::to_string(program.outs.size()) + " tensors, got " +
               std::to_string(PySequence_Fast_GET_SIZE(object));
      }
      for (uint16_t out : program.outs) seen[out] = true;
      continue;
    }
    int i = find_keyword(program, keyword);
    if (i < 0 && program.factory && is_requires_grad_name(keyword)) {
      if (object == Py_True || object == Py_False) continue;
      return "'requires_grad': expected bool, got " + describe(object);
    }
    if (i < 0) return "unknown keyword '" + name + "'";
    if (seen[i]) return "'" + name + "': given by position and by keyword";
    seen[i] = true;
    std::string text = wrong(program.params[i], object, -1);
    if (!text.empty()) return text;
  }
  for (size_t i = 0; i < program.params.size(); ++i) {
    const Param& param = program.params[i];
    if (seen[i] || param.has_default) continue;
    if (param.is_out && program.outs.size() > 0) return "missing keyword argument 'out'";
    if (param.keyword_only) return "missing keyword argument '" + shown(param) + "'";
    return "missing argument '" + shown(param) + "' (position " + std::to_string(i + 1 - first) +
           ")";
  }
  return "";
}

// Whether two programs have the same arguments, except for the out ones.
bool siblings(const Program& plain, const Program& out) {
  if (!plain.outs.empty() || out.outs.empty()) return false;
  if (plain.params.size() + out.outs.size() != out.params.size()) return false;
  size_t i = 0;
  for (const Param& param : out.params) {
    if (param.is_out) continue;
    const Param& mine = plain.params[i++];
    if (mine.name != param.name || mine.kind != param.kind) return false;
  }
  return true;
}

std::string signature(const Program& program, const Program* sibling, const char* name,
                      bool is_method) {
  std::string text = program.text.substr(program.text.find('('));
  if (is_method) {
    size_t comma = text.find(", ");
    size_t close = text.find(')');
    text = comma != std::string::npos && comma < close ? "(" + text.substr(comma + 2) : "()";
  }
  if (sibling != nullptr) {
    text.pop_back();
    if (text.back() != '(') text += ", ";
    if (text.find("*, ") == std::string::npos) text += "*, ";
    text += sibling->outs.size() == 1 ? "Tensor out=None)" : "Tensor[] out=None)";
  }
  return name + text;
}

}  // namespace

PyObject* raise_mismatch(const ProgramTable& table, const char* name, bool is_method,
                         PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  GivenCall call{args, nargs, kwnames, is_method};
  std::string text = std::string(name) + ": got (";
  for (Py_ssize_t i = is_method ? 1 : 0; i < nargs; ++i) {
    if (i != (is_method ? 1 : 0)) text += ", ";
    text += describe(args[i]);
  }
  for (Py_ssize_t k = 0; k < call.keywords(); ++k) {
    if (text.back() != '(') text += ", ";
    text += text_of(PyTuple_GET_ITEM(kwnames, k)) + "=" + describe(args[nargs + k]);
  }
  std::string body;
  size_t count = 0;
  for (const Program* program : table.programs) {
    const Program* sibling = nullptr;
    bool is_sibling = false;
    for (const Program* other : table.programs) {
      if (siblings(*program, *other)) sibling = other;
      if (siblings(*other, *program)) is_sibling = true;
    }
    if (is_sibling) continue;
    const Program* judged = sibling != nullptr && call.gives_out() ? sibling : program;
    std::string why = reason(*judged, call);
    body += "\n  " + signature(*program, sibling, name, is_method);
    if (!why.empty()) body += "\n    " + why;
    ++count;
  }
  text += count == 1 ? "), which does not fit" : "), which fits none of";
  text += body;
  return raise_text(PyExc_TypeError, named_by_caller(text));
}

}  // namespace lamella::python
