// One call of an operator from Python: its values by the schema, and its results as arrays.
#pragma once
#include <cstring>
#include <memory>

#include "lamella/bridge/arrays.h"
#include "lamella/bridge/torch_functions.h"

namespace lamella::bridge {

struct Overload {
  const lamella_operator* op = nullptr;
  std::vector<Argument> arguments, returns;
  std::vector<PyObject*> names, defaults;  // a default of NULL: the argument is required
  size_t positional = 0;
  std::vector<int> written;  // of each return: the argument that it is, -1: a new value
  bool is_view = false;
};
struct Door {
  std::string name;
  std::vector<Overload> overloads;
  FunctionDefinition definition{};
};

inline constexpr int64_t kFewElements = 1 << 15;  // for which the GIL is kept

inline std::string got(PyObject* object) {
  static PyObject* const name = python.PyUnicode_InternFromString("__name__");
  const Ref type_name = Ref::need(python.PyObject_GetAttr(type_of(object), name));
  return std::string(text_of(type_name.get()));
}

struct Given {
  lamella_tensor* tensor;  // owned
  bool is_read_only;
};

// One call, from Python's values to Python's results.
class Call {
 public:
  // with_gradients: tensors of PyTorch may require gradients, which are recorded elsewhere.
  Call(const Door& door, const Overload& overload, bool with_gradients = false)
      : door_(door),
        overload_(overload),
        with_gradients_(with_gradients),
        values_(overload.arguments.size()) {}
  ~Call() {
    for (size_t k = 0; k < count_; ++k) release(given_[k].tensor);
    if (rare_ == nullptr) return;
    for (Given& one : rare_->given) release(one.tensor);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void read(PyObject* const* objects) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Argument& argument = overload_.arguments[i];
      lamella_value& to = values_[i];
      if (objects[i] == python._Py_NoneStruct && argument.kind != Kind::kScalar) {
        if (!argument.optional) refuse(argument, objects[i]);
        continue;
      }
      read_one(argument, objects[i], to);
    }
    if (first_ == nullptr) {
      throw Failure(door_.name + ": expected an array among its arguments", LAMELLA_TYPE_ERROR);
    }
  }

  lamella_value* values() { return values_.data(); }
  // One more tensor, which lives as long as the call.
  lamella_tensor* add(PyObject* object) { return tensor(overload_.arguments[0], object); }

  Ref run(PyObject* const* objects) {
    const lamella_operator* op = overload_.op;
    Results results(op);
    lamella_status status;
    {
      struct NoGil {
        void* state;
        explicit NoGil(bool leaves) : state(leaves ? python.PyEval_SaveThread() : nullptr) {
          if (state != nullptr) has_gil = false;
        }
        ~NoGil() {
          if (state == nullptr) return;
          python.PyEval_RestoreThread(state);
          has_gil = true;
        }
      } no_gil(elements_ > kFewElements);
      const bool sets_modes = first_->how == ArrayKind::How::kLamella;
      const uint32_t before =
          sets_modes ? lamella_set_modes(LAMELLA_MODE_NO_GRAD, LAMELLA_MODE_NO_GRAD) : 0;
      std::optional<TorchThreads> threads;
      if (first_->is_torch) threads.emplace();
      status = results.call(values_.data());
      if (sets_modes) lamella_set_modes(LAMELLA_MODE_NO_GRAD, before);
    }
    check(status);
    if (op->return_count == 1) return result(0, results[0], objects);
    if (op->return_count == 0) return none();
    Ref made = Ref::need(python.PyTuple_New(op->return_count));
    for (uint32_t r = 0; r < op->return_count; ++r) {
      python.PyTuple_SetItem(made.get(), r, result(r, results[r], objects).take());
    }
    return made;
  }

  // A result as an array with memory of its own, unless the schema says that it is a view.
  Ref array(OwnedTensor t) {
    if (t.get() == nullptr) return none();
    if (first_->how != ArrayKind::How::kLamella) {
      constexpr uint32_t kLazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
      if ((t.get()->flags & kLazy) != 0) t = OwnedTensor(copied(t.get()));
    }
    bool shared = false, is_read_only = false;
    auto look = [&](const Given& one) {
      if (one.tensor->storage != t.get()->storage) return;
      shared = true;
      is_read_only |= one.is_read_only;
    };
    for (size_t k = 0; k < count_; ++k) look(given_[k]);
    if (rare_ != nullptr) {
      std::for_each(rare_->given.begin(), rare_->given.end(), look);
      for (const void* storage : rare_->results) shared |= storage == t.get()->storage;
    }
    if (!overload_.is_view) {
      if (shared && t.get()->storage != nullptr) {
        t = OwnedTensor(copied(t.get()));
        is_read_only = false;
      }
      if (overload_.op->return_count != 1 || overload_.returns[0].kind != Kind::kTensor) {
        rare().results.push_back(t.get()->storage);
      }
    }
    return array_of(*first_, std::move(t), is_read_only);
  }

 private:
  [[noreturn]] void refuse(const Argument& argument, PyObject* object) const {
    throw Failure(door_.name + ": expected '" + argument.name + "' to be " + argument.type +
                      ", got " + got(object),
                  LAMELLA_TYPE_ERROR);
  }
  // The error of Python that a conversion has set becomes one that names the argument.
  void refuse_error(const Argument& argument, PyObject* object) const {
    if (python.PyErr_Occurred() == nullptr) return;
    python.PyErr_Clear();
    refuse(argument, object);
  }
  // What few calls need.
  struct Rare {
    std::vector<Given> given;
    Constants constants;
    std::vector<Ref> kept;
    std::vector<std::vector<uint64_t>> words;
    std::vector<std::vector<lamella_value>> lists;
    std::vector<const void*> results;  // memory of results so far
  };
  Rare& rare() {
    if (rare_ == nullptr) rare_ = std::make_unique<Rare>();
    return *rare_;
  }

  lamella_tensor* tensor(const Argument& argument, PyObject* object) {
    const ArrayKind* kind = array_kind(object);
    Given one{};
    if (kind == nullptr) {
      one.tensor = number(argument, object);
    } else {
      one.tensor = tensor_of(*kind, object, &one.is_read_only, with_gradients_).take();
      if (first_ == nullptr) first_ = kind;
      elements_ += one.tensor->numel;
    }
    (count_ < std::size(given_) ? given_[count_++] : rare().given.emplace_back()) = one;
    if (one.is_read_only && argument.write) {
      throw Failure(door_.name + ": expected '" + argument.name +
                        "' to be writable, got a "
                        "read-only array",
                    LAMELLA_VALUE_ERROR);
    }
    return one.tensor;
  }
  // A number in the place of a tensor, which is weak in promotion.
  lamella_tensor* number(const Argument& argument, PyObject* object) {
    PyObject* type = type_of(object);
    const bool is_bool = type == python.PyBool_Type, is_int = type == python.PyLong_Type;
    if ((!is_bool && !is_int && type != python.PyFloat_Type) || argument.write) {
      refuse(argument, object);
    }
    lamella_tensor* made = nullptr;
    check(lamella_tensor_empty(0, nullptr, is_bool ? 11 : is_int ? 4 : 7, 0, -1, &made));
    if (type == python.PyFloat_Type) {
      *static_cast<double*>(made->data) = python.PyFloat_AsDouble(object);
    } else if (is_int) {
      *static_cast<int64_t*>(made->data) = python.PyLong_AsLongLong(object);
    } else {
      *static_cast<uint8_t*>(made->data) = object == python._Py_TrueStruct;
    }
    lamella_tensor_set_wrapped_number(made, 1);
    return made;
  }

  int64_t integer(const Argument& argument, PyObject* object) {
    const Ref index(python.PyNumber_Index(object));
    const int64_t made = index ? python.PyLong_AsLongLong(index.get()) : 0;
    refuse_error(argument, object);
    return made;
  }
  void scalar(const Argument& argument, PyObject* object, lamella_value& to) {
    PyObject* type = type_of(object);
    if (object == python._Py_NoneStruct && argument.optional) return;
    to.tag = LAMELLA_DOUBLE;
    if (type == python.PyFloat_Type) {
      to.as.d = python.PyFloat_AsDouble(object);
    } else if (type == python.PyBool_Type) {
      to.tag = LAMELLA_BOOL;
      to.as.i = object == python._Py_TrueStruct;
    } else if (type == python.PyComplex_Type || got(object).starts_with("complex")) {
      const Ref z = call_python(python.PyComplex_Type, object);
      to = rare().constants.complex(python.PyComplex_RealAsDouble(z.get()),
                                    python.PyComplex_ImagAsDouble(z.get()));
    } else {
      const Ref index(python.PyNumber_Index(object));
      if (index) {
        to.tag = LAMELLA_INT;
        to.as.i = python.PyLong_AsLongLong(index.get());
      } else {
        python.PyErr_Clear();
        to.as.d = python.PyFloat_AsDouble(object);
      }
      refuse_error(argument, object);
    }
  }

  void read_one(const Argument& argument, PyObject* object, lamella_value& to) {
    switch (argument.kind) {
      case Kind::kTensor:
        to.as.tensor = tensor(argument, object);
        to.tag = LAMELLA_TENSOR;
        return;
      case Kind::kDouble:
        to.as.d = python.PyFloat_AsDouble(object);
        if (to.as.d == -1) refuse_error(argument, object);
        to.tag = LAMELLA_DOUBLE;
        return;
      case Kind::kInt:
        if (argument.number && type_of(object) != python.PyLong_Type) {
          const Ref text = Ref::need(python.PyObject_Str(object));
          to = named_value(argument, text_of(text.get()));
          return;
        }
        to.as.i = integer(argument, object);
        to.tag = LAMELLA_INT;
        return;
      case Kind::kBool:
        if (type_of(object) != python.PyBool_Type) {
          to.as.i = integer(argument, object) != 0;
        } else {
          to.as.i = object == python._Py_TrueStruct;
        }
        to.tag = LAMELLA_BOOL;
        return;
      case Kind::kScalar:
        return scalar(argument, object, to);
      case Kind::kString: {
        PySize size = 0;
        to.as.pointer = const_cast<char*>(python.PyUnicode_AsUTF8AndSize(object, &size));
        refuse_error(argument, object);
        to.size = static_cast<uint32_t>(size);
        to.tag = LAMELLA_STRING;
        return;
      }
      case Kind::kDevice: {
        const Ref text = Ref::need(python.PyObject_Str(object));
        to = named_value(argument, text_of(text.get()));
        return;
      }
      default:
        read_list(argument, object, to);
    }
  }

  void read_list(const Argument& argument, PyObject* object, lamella_value& to) {
    const bool is_list = type_of(object) == python.PyList_Type;
    Argument element = argument;
    element.optional = argument.kind == Kind::kOptionalTensors;
    if (argument.type.find('[') == std::string::npos) refuse(argument, object);
    if (!is_list && python.PyObject_IsInstance(object, python.PyTuple_Type) == 0 &&
        python.PyObject_IsInstance(object, python.PyList_Type) == 0) {
      // One element stands for a list of one, where the schema gives a size.
      if (argument.type.find("[]") != std::string::npos || array_kind(object) != nullptr) {
        refuse(argument, object);
      }
      Ref one = Ref::need(python.PyTuple_New(1));
      python.PyTuple_SetItem(one.get(), 0, Ref::borrow(object).take());
      rare().kept.push_back(std::move(one));
      return read_list(argument, rare().kept.back().get(), to);
    }
    const bool is_tuple = python.PyObject_IsInstance(object, python.PyTuple_Type) != 0;
    const auto size =
        static_cast<size_t>(is_tuple ? python.PyTuple_Size(object) : python.PyList_Size(object));
    auto item = [&](size_t i) {
      const auto at = static_cast<PySize>(i);
      return is_tuple ? python.PyTuple_GetItem(object, at) : python.PyList_GetItem(object, at);
    };
    to.size = static_cast<uint32_t>(size);
    auto fill = [&](uint8_t tag, auto kind, auto read) {
      auto& words = rare().words.emplace_back(size + 1);
      auto* elements = reinterpret_cast<decltype(kind)*>(words.data());
      for (size_t i = 0; i < size; ++i) elements[i] = read(item(i));
      to.as.pointer = words.data();
      to.tag = tag;
    };
    lamella_value one{};
    auto through = [&](Kind kind) {
      element.kind = kind;
      return [&](PyObject* x) { return read_one(element, x, one), one; };
    };
    switch (argument.kind) {
      case Kind::kTensorList:
      case Kind::kOptionalTensors:
        return fill(LAMELLA_TENSOR_LIST, static_cast<lamella_tensor*>(nullptr), [&](PyObject* x) {
          const bool absent = element.optional && x == python._Py_NoneStruct;
          return absent ? nullptr : tensor(argument, x);
        });
      case Kind::kIntList:
        return fill(LAMELLA_INT_LIST, int64_t{},
                    [&](PyObject* x) { return through(Kind::kInt)(x).as.i; });
      case Kind::kDoubleList:
        return fill(LAMELLA_DOUBLE_LIST, double{},
                    [&](PyObject* x) { return through(Kind::kDouble)(x).as.d; });
      case Kind::kBoolList:
        return fill(LAMELLA_BOOL_LIST, uint8_t{}, [&](PyObject* x) {
          return static_cast<uint8_t>(through(Kind::kBool)(x).as.i);
        });
      default: {
        const bool scalars = argument.type.starts_with("Scalar");
        if (!scalars && !argument.type.starts_with("str")) refuse(argument, object);
        auto& list = rare().lists.emplace_back();
        for (size_t i = 0; i < size; ++i) {
          one = {};
          through(scalars ? Kind::kScalar : Kind::kString)(item(i));
          list.push_back(one);
        }
        to.as.pointer = list.data();
        to.tag = LAMELLA_LIST;
      }
    }
  }

  Ref result(uint32_t r, lamella_value& value, PyObject* const* objects) {
    const int written = overload_.written[r];
    if (written >= 0) return Ref::borrow(objects[written]);
    switch (value.tag) {
      case LAMELLA_TENSOR:
        value.tag = LAMELLA_NONE;
        return array(OwnedTensor(value.as.tensor));
      case LAMELLA_INT:
        return Ref::need(python.PyLong_FromLongLong(value.as.i));
      case LAMELLA_BOOL:
        return Ref::need(python.PyBool_FromLong(value.as.i != 0));
      case LAMELLA_DOUBLE:
        return Ref::need(python.PyFloat_FromDouble(value.as.d));
      case LAMELLA_COMPLEX: {
        auto* z = static_cast<const double*>(value.as.pointer);
        return Ref::need(python.PyComplex_FromDoubles(z[0], z[1]));
      }
      case LAMELLA_STRING:
        return Ref::need(python.PyUnicode_FromStringAndSize(
            static_cast<const char*>(value.as.pointer), value.size));
      case LAMELLA_NONE:
        return none();
      default:
        return list(value);
    }
  }

  Ref list(const lamella_value& value) {
    Ref made = Ref::need(python.PyList_New(value.size));
    for (uint32_t i = 0; i < value.size; ++i) {
      const auto* words = static_cast<const uint64_t*>(value.as.pointer);
      double number = 0;
      std::memcpy(&number, words + (value.tag == LAMELLA_DOUBLE_LIST ? i : 0), sizeof number);
      Ref item;
      if (value.tag == LAMELLA_TENSOR_LIST) {
        auto* t = static_cast<lamella_tensor* const*>(value.as.pointer)[i];
        item = t != nullptr ? array(OwnedTensor::borrow(t)) : none();
      } else if (value.tag == LAMELLA_INT_LIST) {
        item = Ref::need(python.PyLong_FromLongLong(static_cast<int64_t>(words[i])));
      } else if (value.tag == LAMELLA_DOUBLE_LIST) {
        item = Ref::need(python.PyFloat_FromDouble(number));
      } else if (value.tag == LAMELLA_BOOL_LIST) {
        item = Ref::need(python.PyBool_FromLong(static_cast<const uint8_t*>(value.as.pointer)[i]));
      } else {
        throw Failure(door_.name + ": has results that arrays and numbers cannot say",
                      LAMELLA_NOT_IMPLEMENTED);
      }
      python.PyList_SetItem(made.get(), i, item.take());
    }
    return made;
  }

  const Door& door_;
  const Overload& overload_;
  const bool with_gradients_;
  Scratch<lamella_value> values_;
  Given given_[8];
  size_t count_ = 0;
  const ArrayKind* first_ = nullptr;
  int64_t elements_ = 0;
  std::unique_ptr<Rare> rare_;
};

}  // namespace lamella::bridge
