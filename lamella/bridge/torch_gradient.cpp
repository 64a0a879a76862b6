// Gradients in eager programs of PyTorch: the forward and the backward of an autograd.Function, in
// C. The class itself is made in Python (bridge/_torch_function.py).
#include "lamella/bridge/call.h"

namespace lamella::bridge {
namespace {

// An operator with one return, whose arguments are no lists of tensors.
struct GradientOperator {
  Door door;
  const lamella_derivative* derivative = nullptr;
  uint32_t slot_count = 0;
  bool saves_result = false;
  PyObject* slow = nullptr;  // backward in Python, for one that is recorded itself
  FunctionDefinition forward{}, backward{};
  const Overload& overload() const { return door.overloads[0]; }
  bool is_tensor(size_t i) const { return overload().arguments[i].kind == Kind::kTensor; }
};

PyObject* interned(const char* name) { return python.PyUnicode_InternFromString(name); }
struct Names {
  PyObject* to_save = interned("to_save");
  PyObject* saved_tensors = interned("saved_tensors");
  PyObject* needs = interned("needs_input_grad");
  PyObject* rest = interned("rest");
};
const Names& names() {
  static const Names all;
  return all;
}

void set(PyObject* object, PyObject* name, const Ref& value) {
  if (python.PyObject_SetAttr(object, name, value.get()) != 0) throw PythonError();
}

// (context, arguments...) -> result
PyObject* forward(PyObject* self, PyObject* const* args, PySize count, PyObject*) {
  const HasGil gil;
  return python_guarded([&] {
    const auto& one = *static_cast<GradientOperator*>(python.PyCapsule_GetPointer(self, nullptr));
    const size_t size = one.overload().arguments.size();
    if (static_cast<size_t>(count) != size + 1) throw Failure("expected a context and arguments");
    Ref result;
    {
      Call call(one.door, one.overload(), true);
      call.read(args + 1);
      result = call.run(args + 1);
    }
    size_t tensors = one.saves_result ? 1 : 0;
    for (size_t i = 0; i < size; ++i) tensors += one.is_tensor(i) ? 1 : 0;
    const Ref kept = Ref::need(python.PyTuple_New(static_cast<PySize>(tensors)));
    Ref rest;
    if (tensors != size + one.saves_result) {
      rest = Ref::need(python.PyTuple_New(static_cast<PySize>(size)));
    }
    PySize at = 0;
    for (size_t i = 0; i < size; ++i) {
      Ref value = Ref::borrow(args[i + 1]);
      if (one.is_tensor(i)) {
        python.PyTuple_SetItem(kept.get(), at++, value.take());
        value = none();
      }
      if (rest) python.PyTuple_SetItem(rest.get(), static_cast<PySize>(i), value.take());
    }
    if (one.saves_result) python.PyTuple_SetItem(kept.get(), at, Ref::borrow(result.get()).take());
    set(args[0], names().to_save, kept);
    if (rest) set(args[0], names().rest, rest);
    return result;
  });
}

Ref zeros_like(Call& call, const lamella_tensor* x) {
  lamella_tensor* t = nullptr;
  check(
      lamella_tensor_empty(x->ndim, x->sizes, x->scalar_type, x->device_type, x->device_index, &t));
  OwnedTensor owned(t);
  if (t->numel != 0) std::memset(t->data, 0, lamella_tensor_storage_bytes(t));
  return call.array(std::move(owned));
}

// (context, gradient) -> the gradients of the arguments
PyObject* backward(PyObject* self, PyObject* const* args, PySize count, PyObject*) {
  const HasGil gil;
  return python_guarded([&] {
    const auto& one = *static_cast<GradientOperator*>(python.PyCapsule_GetPointer(self, nullptr));
    const bool is_plain = count == 2 && !torch.aoti_torch_grad_mode_is_enabled() &&
                          array_kind(args[1]) != nullptr &&
                          plain_torch_handle(args[1], false) != nullptr;
    if (!is_plain) return call_python(one.slow, args[0], args[1]);
    const Overload& o = one.overload();
    const size_t size = o.arguments.size();
    const Ref saved = Ref::need(python.PyObject_GetAttr(args[0], names().saved_tensors));
    const Ref needed = Ref::need(python.PyObject_GetAttr(args[0], names().needs));
    Ref rest;
    Scratch<PyObject*> objects(size);
    PySize at = 0;
    for (size_t i = 0; i < size; ++i) {
      const auto n = static_cast<PySize>(i);
      if (one.is_tensor(i)) {
        objects[i] = python.PyTuple_GetItem(saved.get(), at++);
      } else {
        if (!rest) rest = Ref::need(python.PyObject_GetAttr(args[0], names().rest));
        objects[i] = python.PyTuple_GetItem(rest.get(), n);
      }
    }
    Call call(one.door, o, true);
    call.read(objects.data());
    lamella_tensor* grad = call.add(args[1]);
    lamella_value result{};  // borrowed from the call
    if (one.saves_result) {
      result.tag = LAMELLA_TENSOR;
      result.as.tensor = call.add(python.PyTuple_GetItem(saved.get(), at));
    }
    uint64_t needs = 0;
    for (uint32_t s = 0; s < one.slot_count; ++s) {
      const uint16_t i = one.derivative->slots[s];
      const bool wants = python.PyTuple_GetItem(needed.get(), i) == python._Py_TrueStruct;
      if (wants && call.values()[i].tag == LAMELLA_TENSOR) needs |= uint64_t{1} << s;
    }
    Scratch<lamella_tensor*> found(one.slot_count);
    struct Owned {
      Scratch<lamella_tensor*>& all;
      ~Owned() {
        for (lamella_tensor* t : all) release(t);
      }
    } owned{found};
    if (needs != 0) {
      const TorchThreads threads;
      check(lamella_call_backward(o.op, call.values(), &result, &grad, 1, needs, found.data(),
                                  one.slot_count));
    }
    Scratch<PyObject*> made(size);
    for (uint32_t s = 0; s < one.slot_count; ++s) {
      if ((needs >> s & 1) == 0) continue;
      const uint16_t i = one.derivative->slots[s];
      lamella_tensor* t = std::exchange(found[s], nullptr);
      if (t != nullptr && (t->flags & LAMELLA_TENSOR_CONTIGUOUS) == 0) {
        const OwnedTensor strided(t);
        t = copied(t);
      }
      made[i] =
          (t != nullptr ? call.array(OwnedTensor(t)) : zeros_like(call, call.values()[i].as.tensor))
              .take();
    }
    if (size == 1 && made[0] != nullptr) return Ref(made[0]);
    Ref all = Ref::need(python.PyTuple_New(static_cast<PySize>(size)));
    for (size_t i = 0; i < size; ++i) {
      python.PyTuple_SetItem(all.get(), static_cast<PySize>(i),
                             made[i] != nullptr ? made[i] : none().take());
    }
    return all;
  });
}

}  // namespace

bool can_apply(const std::vector<Argument>& arguments) {
  return can_wrap_torch() &&
         std::all_of(arguments.begin(), arguments.end(), [](const Argument& one) {
           return !one.optional && !one.number &&
                  (one.kind == Kind::kTensor || one.kind == Kind::kInt ||
                   one.kind == Kind::kDouble || one.kind == Kind::kBool);
         });
}

StableValue applied(void* function, const std::vector<Argument>& arguments,
                    const StableValue* stack) {
  struct Gil {
    int state = python.PyGILState_Ensure();
    ~Gil() { python.PyGILState_Release(state); }
  } gil;
  const HasGil has_it;
  Ref all(python.PyTuple_New(static_cast<PySize>(arguments.size())));
  for (size_t i = 0; i < arguments.size(); ++i) {
    double number = 0;
    PyObject* made = nullptr;
    switch (arguments[i].kind) {
      case Kind::kTensor:
        made = wrap_torch(reinterpret_cast<Handle>(stack[i])).take();
        break;
      case Kind::kDouble:
        std::memcpy(&number, &stack[i], sizeof number);
        made = python.PyFloat_FromDouble(number);
        break;
      case Kind::kBool:
        made = python.PyBool_FromLong((stack[i] & 1) != 0);
        break;
      default:
        made = python.PyLong_FromLongLong(static_cast<int64_t>(stack[i]));
    }
    python.PyTuple_SetItem(all.get(), static_cast<PySize>(i), made);
  }
  const Ref result(python.PyObject_Call(static_cast<PyObject*>(function), all.get(), nullptr));
  if (!result) raise_set();
  Handle handle = nullptr;
  done(torch.aoti_torch_new_tensor_handle(handle_of(result.get()), &handle), "taking a tensor");
  return reinterpret_cast<StableValue>(handle);
}
}  // namespace lamella::bridge

using namespace lamella::bridge;

// The forward and backward of an operator, and whether it has them here: None otherwise. slow: see
// GradientOperator.
LAMELLA_BRIDGE_API PyObject* lamella_bridge_torch_gradient(PyObject* name, PyObject* overload,
                                                           PyObject* slow) {
  return python_guarded([&] {
    if (!can_wrap_torch()) return none();
    auto one = std::make_unique<GradientOperator>();
    Overload& o = one->door.overloads.emplace_back();
    check(lamella_find_operator(text_of(name).data(), text_of(overload).data(), &o.op));
    o.arguments = arguments_of(o.op, 0);
    o.returns = arguments_of(o.op, 1);
    o.written = {-1};
    one->door.name = text_of(name).substr(text_of(name).find("::") + 2);
    const lamella_derivative* d = lamella_operator_derivative(o.op);
    one->derivative = d;
    one->slot_count = d->slot_count;
    for (uint32_t k = 0; k < d->saved_count; ++k) one->saves_result |= d->saved[k].is_return != 0;
    one->slow = Ref::borrow(slow).take();
    one->forward = {"forward", &forward, kFastKeywords, nullptr};
    one->backward = {"backward", &backward, kFastKeywords, nullptr};
    const Ref state = Ref::need(python.PyCapsule_New(one.get(), nullptr, nullptr));
    const Ref pair = Ref::need(python.PyTuple_New(2));
    PySize at = 0;
    for (FunctionDefinition* definition : {&one->forward, &one->backward}) {
      Ref made = Ref::need(python.PyCFunction_NewEx(definition, state.get(), nullptr));
      python.PyTuple_SetItem(pair.get(), at++, made.take());
    }
    one.release();  // it lives as long as the process
    return Ref::borrow(pair.get());
  });
}
