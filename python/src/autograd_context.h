// The context of one call of a Python function: what forward keeps for backward.
#pragma once
#include "lamella/layers/autograd/node_levels.h"
#include "lamella/layers/autograd/saved.h"
#include "python/src/autograd.h"

namespace lamella::python {

// A class derived from lamella.autograd.Function.
struct PyFunctionClass {
  PyHeapTypeObject heap;
  PyObject* node_type;  // the type of its contexts: "<name>Backward"
};
extern PyTypeObject FunctionMetaType;
// The attributes of the class Function, by which classes that do not override them are recognised.
struct FunctionDefaults {
  PyObject* cls;
  PyObject* setup_context;
  PyObject* backward;
  PyObject* vjp;
  PyObject* jvp;
};
extern FunctionDefaults function_defaults;

struct PyContext {
  PyNode base;
  PyFunctionClass* function;  // owned
  // Set during forward, as tuples.
  PyObject* to_save;
  PyObject* saved_for_forward;
  PyObject* dirty;
  PyObject* non_differentiable;
  PyObject* needs;  // what needs_input_grad was set to, or NULL
  PyObject* zeros;  // shapes of outputs without gradients: a dict of index -> (size, dtype, device)
  autograd::SavedTensor* saved;  // undefined for None
  BatchLevels* saved_levels;     // vmap levels of each, if some are batched; `saved` is unbatched
  uint8_t* inputs;               // of each argument of forward: bits below
  uint32_t saved_count;
  uint32_t input_count;
  uint32_t readers;           // of `saved`, which is freed after the last one
  uint8_t inline_inputs[16];  // storage of `inputs` for up to 16 arguments
  bool materialize;
  bool released;  // a backward without retain_graph has run
};
enum { kInputTensor = 1, kInputNeeded = 2 };

inline PyContext* as_context(PyObject* object) { return reinterpret_cast<PyContext*>(object); }
inline const char* context_name(const PyContext* context) { return Py_TYPE(context)->tp_name; }

// The node of a call, whose context owns what is saved.
class PythonNode final : public autograd::Node {
 public:
  // Takes a reference to the context. Its edges are empty.
  static autograd::NodePtr make(PyContext* context, uint32_t edge_count);
  lamella_status apply(lamella_tensor* const* grads, lamella_tensor** results,
                       autograd::WantedEdges wanted) override;
  std::string name() const override { return name_; }
  void release_saved() noexcept override;
  bool keeps_something() const noexcept override { return true; }
  void* python_object() const override { return context_; }
  // Those of save_for_backward() are "tensors".
  std::vector<autograd::SavedTensor*> saved_tensors(const char* name, bool* is_list) override;
  // NULL unless forward was called on batched tensors.
  autograd::NodeLevels* levels() const { return levels_.get(); }
  void set_levels(autograd::NodeLevels levels) {
    levels_ = std::make_unique<autograd::NodeLevels>(std::move(levels));
  }
  void follow_side_effects() { place_.take(*this); }

 protected:
  void deallocate() noexcept override;

 private:
  PythonNode(PyContext* context, autograd::Edge* edges, uint32_t edge_count);
  void end() noexcept;
  lamella_status call_backward(lamella_tensor* const* grads, lamella_tensor** results);
  std::unique_ptr<autograd::NodeLevels> levels_;
  PyContext* context_;
  const char* name_;
  autograd::SideEffectPlace place_;
};

}  // namespace lamella::python
