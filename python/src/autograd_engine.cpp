// The Python functions backward and grad.
#include <algorithm>
#include <unordered_set>

#include "lamella/core/wrapper.h"
#include "lamella/layers/autograd/engine.h"
#include "lamella/layers/autograd/saved.h"
#include "python/src/autograd.h"
#include "python/src/errors.h"

namespace lamella::python {
bool read_arguments(const char* what, const char* const* names, int count, int required,
                    PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** values) {
  if (nargs > count) {
    PyErr_Format(PyExc_TypeError, "%s: expected at most %d arguments, got %zd", what, count, nargs);
    return false;
  }
  for (int i = 0; i < count; ++i) values[i] = i < nargs ? args[i] : nullptr;
  Py_ssize_t named = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int at = 0;
    while (at < count && PyUnicode_CompareWithASCIIString(name, names[at]) != 0) ++at;
    if (at == count || values[at] != nullptr) {
      PyErr_Format(PyExc_TypeError,
                   at == count ? "%s: unexpected argument '%U'" : "%s: argument '%U' given twice",
                   what, name);
      return false;
    }
    values[at] = args[nargs + k];
  }
  for (int i = 0; i < required; ++i) {
    if (values[i] != nullptr) continue;
    PyErr_Format(PyExc_TypeError, "%s: expected the argument '%s'", what, names[i]);
    return false;
  }
  return true;
}

namespace {

// An entry of GradientEdge: (node, number of its output, ...).
bool is_edge(PyObject* object) {
  return PyTuple_Check(object) && PyTuple_GET_SIZE(object) >= 2 &&
         PyObject_TypeCheck(PyTuple_GET_ITEM(object, 0), &NodeType);
}
autograd::Edge edge_of(PyObject* object) {
  autograd::NodePtr node = hold_node(PyTuple_GET_ITEM(object, 0));
  auto input = static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(object, 1)));
  if (node && PyErr_Occurred() == nullptr && input >= std::max(1u, node->output_count())) {
    PyErr_Format(PyExc_ValueError, "GradientEdge: expected 'output_nr' below %u, got %u",
                 node->output_count(), input);
  }
  if (PyErr_Occurred() != nullptr) return {};
  return {std::move(node), input};
}

// The borrowed tensors of an argument, or edges in place of tensors; the caller keeps the objects
// alive.
class Tensors {
 public:
  enum Also { kNothing, kNone, kEdges };
  Tensors() = default;
  explicit Tensors(lamella_tensor* one) : one_(one), list_(&one_), count_(1) {}
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  // A tensor, or a sequence of them, with None as NULL where allowed. NULL: nothing given.
  bool read(PyObject* object, const char* what, const char* argument, Also also) {
    given_ = object != nullptr && object != Py_None;
    if (!given_) return true;
    if (is_tensor(object)) {
      one_ = tensor_of(object);
      list_ = &one_;
      count_ = 1;
      return true;
    }
    if (also == kEdges && is_edge(object)) {
      many_.resize(1);
      list_ = many_.data();
      count_ = 1;
      return read_edge(0, object);
    }
    held_ = Ref(PySequence_Tuple(object));
    if (!held_) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
      PyErr_Format(PyExc_TypeError,
                   "%s: expected '%s' to be a Tensor or a sequence of Tensors, got %s", what,
                   argument, Py_TYPE(object)->tp_name);
      return false;
    }
    count_ = PyTuple_GET_SIZE(held_.get());
    many_.resize(static_cast<size_t>(count_));
    for (Py_ssize_t i = 0; i < count_; ++i) {
      PyObject* item = PyTuple_GET_ITEM(held_.get(), i);
      if (is_tensor(item)) {
        many_[static_cast<size_t>(i)] = tensor_of(item);
      } else if (also == kEdges && is_edge(item)) {
        if (!read_edge(static_cast<size_t>(i), item)) return false;
      } else if (item != Py_None || also != kNone) {
        PyErr_Format(PyExc_TypeError, "%s: expected '%s'[%zd] to be a Tensor%s, got %s", what,
                     argument, i,
                     also == kNone    ? " or None"
                     : also == kEdges ? " or a GradientEdge"
                                      : "",
                     Py_TYPE(item)->tp_name);
        return false;
      }
    }
    list_ = many_.data();
    return true;
  }
  // Makes the list `count` NULLs.
  void fill(size_t count) {
    many_.assign(count, nullptr);
    list_ = many_.data();
    count_ = static_cast<Py_ssize_t>(count);
  }
  bool given() const { return given_; }
  autograd::BackwardEnds ends() const { return {list_, size(), edges_}; }
  lamella_tensor* const* data() const { return list_; }
  uint32_t size() const { return static_cast<uint32_t>(count_); }
  lamella_tensor* operator[](size_t i) const { return list_[i]; }
  autograd::Edge edge(size_t i) const {
    if (list_[i] != nullptr) return autograd::gradient_edge(list_[i]);
    return i < edges_.size() ? edges_[i] : autograd::Edge();
  }

 private:
  bool read_edge(size_t i, PyObject* object) {
    if (edges_.size() <= i) edges_.resize(i + 1);
    edges_[i] = edge_of(object);
    return static_cast<bool>(edges_[i]);
  }

  bool given_ = false;
  lamella_tensor* one_ = nullptr;
  lamella_tensor** list_ = nullptr;
  Py_ssize_t count_ = 0;
  Ref held_;
  std::vector<lamella_tensor*> many_;
  std::vector<autograd::Edge> edges_;
};

// The number of the backward that runs on this thread, for hooks that act once in each backward.
std::atomic<uint64_t> run_count{0};
thread_local uint64_t current_run = 0;
struct Ends {
  const Tensors* roots = nullptr;
  const Tensors* inputs = nullptr;
  bool retain = false;
};
thread_local Ends current_ends;
// Python's count of calls that may still be made inside of each other, and its start.
#if PY_VERSION_HEX >= 0x030C0000
constexpr auto calls_left = &PyThreadState::py_recursion_remaining;
constexpr auto calls_allowed = &PyThreadState::py_recursion_limit;
#elif PY_VERSION_HEX >= 0x030B0000
constexpr auto calls_left = &PyThreadState::recursion_remaining;
constexpr auto calls_allowed = &PyThreadState::recursion_limit;
#endif
class Run {
 public:
  explicit Run(Ends ends) : run_(current_run), ends_(std::exchange(current_ends, ends)) {
    current_run = run_count.fetch_add(1, std::memory_order_relaxed) + 1;
#if PY_VERSION_HEX >= 0x030B0000
    // A backward inside of another one counts its calls anew, since the engine bounds such runs.
    if (ends_.roots == nullptr) return;
    state_ = PyThreadState_Get();
    left_ = state_->*calls_left;
    if (left_ < state_->*calls_allowed / 2) state_->*calls_left = state_->*calls_allowed;
#endif
  }
  ~Run() {
    current_run = run_;
    current_ends = ends_;
#if PY_VERSION_HEX >= 0x030B0000
    if (state_ != nullptr) state_->*calls_left = left_;
#endif
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

 private:
  uint64_t run_;
  Ends ends_;
  autograd::SavedHooksGuard hooks_;
  PyThreadState* state_ = nullptr;
  int left_ = 0;
};

bool read_flag(PyObject* object, bool otherwise, bool* flag) {
  *flag = otherwise;
  if (object == nullptr || object == Py_None) return true;
  int value = PyObject_IsTrue(object);
  *flag = value > 0;
  return value >= 0;
}

bool read_graph_flags(PyObject* retain, PyObject* create, uint32_t* flags) {
  bool create_graph, retain_graph;
  if (!read_flag(create, false, &create_graph) || !read_flag(retain, create_graph, &retain_graph)) {
    return false;
  }
  if (create_graph) *flags |= LAMELLA_CREATE_GRAPH;
  if (retain_graph) *flags |= LAMELLA_RETAIN_GRAPH;
  return true;
}

lamella_status run(const Tensors& roots, const Tensors& grads, const Tensors& inputs,
                   uint32_t flags, lamella_tensor** results) {
  Run run({&roots, &inputs, (flags & LAMELLA_RETAIN_GRAPH) != 0});
  WithoutGil others;
  return autograd::run_backward(roots.ends(), grads.data(), inputs.ends(), flags, results);
}

// Checks that there is one gradient for each root; fills in NULLs if none were given.
bool match_gradients(const char* what, const Tensors& roots, Tensors* grads) {
  if (!grads->given()) {
    grads->fill(roots.size());
  } else if (grads->size() != roots.size()) {
    PyErr_Format(PyExc_RuntimeError, "%s: expected %u gradients, one for each tensor, got %u", what,
                 roots.size(), grads->size());
    return false;
  }
  return true;
}

// Runs backward into the tensors' grad.
PyObject* accumulate(const char* what, PyObject* tensors, PyObject* grad_tensors, PyObject* retain,
                     PyObject* create, PyObject* inputs) {
  return guarded([&]() -> PyObject* {
    Tensors roots, grads, leaves;
    uint32_t flags = 0;
    if (!roots.read(tensors, what, "tensors", Tensors::kEdges) ||
        !grads.read(grad_tensors, what, "gradient", Tensors::kNone) ||
        !leaves.read(inputs, what, "inputs", Tensors::kEdges) ||
        !read_graph_flags(retain, create, &flags) || !match_gradients(what, roots, &grads)) {
      return nullptr;
    }
    if (leaves.given() && leaves.size() == 0) {
      return PyErr_Format(PyExc_RuntimeError, "%s: expected 'inputs' not to be empty", what);
    }
    lamella_status status = run(roots, grads, leaves, flags, nullptr);
    if (status != LAMELLA_OK) return raise_status(status);
    Py_RETURN_NONE;
  });
}

// _backward(tensors, grad_tensors, retain_graph, create_graph, inputs)
PyObject* backward_function(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static const char* const names[] = {"tensors",      "grad_tensors",   "retain_graph",
                                      "create_graph", "grad_variables", "inputs"};
  PyObject* v[6];
  if (!read_arguments("backward", names, 6, 1, args, nargs, kwnames, v)) return nullptr;
  if (v[4] != nullptr && v[4] != Py_None) {
    if (v[1] != nullptr && v[1] != Py_None) {
      PyErr_SetString(PyExc_RuntimeError,
                      "backward: expected either 'grad_tensors' or 'grad_variables', got both");
      return nullptr;
    }
    v[1] = v[4];
  }
  return accumulate("backward", v[0], v[1], v[2], v[3], v[5]);
}

// _grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused) -> tuple
PyObject* grad_function(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static const char* const names[] = {"outputs",      "inputs",       "grad_outputs",
                                      "retain_graph", "create_graph", "allow_unused"};
  PyObject* v[6];
  if (!read_arguments("grad", names, 6, 2, args, nargs, kwnames, v)) return nullptr;
  return guarded([&]() -> PyObject* {
    Tensors roots, grads, inputs;
    uint32_t flags = 0;
    bool unused;
    if (!roots.read(v[0], "grad", "outputs", Tensors::kEdges) ||
        !inputs.read(v[1], "grad", "inputs", Tensors::kEdges) ||
        !grads.read(v[2], "grad", "grad_outputs", Tensors::kNone) ||
        !read_graph_flags(v[3], v[4], &flags) || !read_flag(v[5], false, &unused) ||
        !match_gradients("grad", roots, &grads)) {
      return nullptr;
    }
    if (unused) flags |= LAMELLA_ALLOW_UNUSED;
    if (inputs.size() == 0) {
      PyErr_SetString(PyExc_ValueError, "grad: expected 'inputs' not to be empty");
      return nullptr;
    }
    std::vector<lamella_tensor*> results(inputs.size());
    lamella_status status = run(roots, grads, inputs, flags, results.data());
    if (status != LAMELLA_OK) {
      for (lamella_tensor* result : results) TensorBase::adopt(result);
      return raise_status(status);
    }
    PyObject* tuple = PyTuple_New(inputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      PyObject* item = wrap(results[i]);
      if (tuple == nullptr || item == nullptr) {
        Py_XDECREF(item);
        Py_CLEAR(tuple);
      } else {
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
      }
    }
    return tuple;
  });
}

PyObject* backward_number(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(current_run); }
PyObject* has_inputs(PyObject*, PyObject*) {
  return PyBool_FromLong(current_ends.inputs != nullptr && current_ends.inputs->size() > 0);
}
PyObject* retains_graph(PyObject*, PyObject*) { return PyBool_FromLong(current_ends.retain); }
// Whether the edges of the nodes lead to one of the others, or are among them.
bool lead_to(std::vector<autograd::Node*> from, const std::unordered_set<autograd::Node*>& to) {
  uint32_t lowest = ~uint32_t{0};
  for (autograd::Node* node : to) lowest = std::min(lowest, node->rank());
  std::unordered_set<autograd::Node*> seen(from.begin(), from.end());
  while (!from.empty()) {
    autograd::Node* node = from.back();
    from.pop_back();
    if (to.contains(node)) return true;
    for (uint32_t i = 0; i < node->edge_count(); ++i) {
      autograd::Node* next = node->edge(i).node.get();
      // A node of lower rank cannot lead to them.
      if (next != nullptr && next->rank() >= lowest && seen.insert(next).second) {
        from.push_back(next);
      }
    }
  }
  return false;
}
std::unordered_set<autograd::Node*> nodes_of(const Tensors& tensors) {
  std::unordered_set<autograd::Node*> nodes;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (autograd::Edge edge = tensors.edge(i)) nodes.insert(edge.node.get());
  }
  return nodes;
}
// _will_run(node): whether the backward of this thread reaches the node, and runs or captures it.
PyObject* will_run(PyObject*, PyObject* object) {
  if (!PyObject_TypeCheck(object, &NodeType)) {
    return PyErr_Format(PyExc_TypeError, "_will_run: expected a Node, got %s",
                        Py_TYPE(object)->tp_name);
  }
  autograd::NodePtr wanted = hold_node(object);
  if (!wanted) return nullptr;
  return guarded([&] {
    if (current_ends.roots == nullptr) return PyBool_FromLong(0);
    std::unordered_set<autograd::Node*> roots = nodes_of(*current_ends.roots);
    bool runs = lead_to({roots.begin(), roots.end()}, {wanted.get()});
    if (runs && current_ends.inputs->size() > 0) {
      runs = lead_to({wanted.get()}, nodes_of(*current_ends.inputs));
    }
    return PyBool_FromLong(runs);
  });
}
// _running_node(): the node that the backward of this thread runs, or None.
PyObject* running_node(PyObject*, PyObject*) {
  return guarded([] { return wrap_node(autograd::NodePtr::borrow(autograd::current_node())); });
}

PyMethodDef functions[] = {
    {"_running_node", running_node, METH_NOARGS, nullptr},
    {"_backward_number", backward_number, METH_NOARGS, nullptr},
    {"_backward_has_inputs", has_inputs, METH_NOARGS, nullptr},
    {"_backward_retains", retains_graph, METH_NOARGS, nullptr},
    {"_will_run", will_run, METH_O, nullptr},
    {"_backward", method(backward_function), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_grad", method(grad_function), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                          PyObject* kwnames) {
  if (nargs == 0 && kwnames == nullptr) [[likely]] {
    const Tensors none;
    lamella_status status = run(Tensors(tensor_of(self)), none, none, 0, nullptr);
    if (status != LAMELLA_OK) [[unlikely]]
      return raise_status(status);
    Py_RETURN_NONE;
  }
  static const char* const names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
  PyObject* v[4];
  if (!read_arguments("backward", names, 4, 0, args, nargs, kwnames, v)) return nullptr;
  return accumulate("backward", self, v[0], v[1], v[2], v[3]);
}

int add_engine(PyObject* module) {
#if PY_VERSION_HEX >= 0x030E0000
  autograd::keep_to_one_stack();  // the interpreter compares addresses of its thread's stack
#endif
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
