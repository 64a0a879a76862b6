// The memory and references of a call's values that do not fit into the frame itself.
#include "python/src/parse.h"

namespace lamella::python {

void* Frame::allocate_more(size_t bytes) {
  auto* block = static_cast<More*>(::operator new(sizeof(More) + bytes));
  block->next = more_;
  more_ = block;
  return block + 1;
}

Frame::Owned& Frame::add_owned() {
  if (owned_count_ < kOwned) return owned_[owned_count_++];
  if (owned_more_ == nullptr) owned_more_ = new std::vector<Owned>();
  ++owned_count_;
  return owned_more_->emplace_back();
}

void Frame::own(PyObject* object) {
  Owned& entry = add_owned();
  entry.kind = Owned::kObject;
  entry.object = object;
}
void Frame::own(lamella_tensor* tensor) {
  Owned& entry = add_owned();
  entry.kind = Owned::kTensor;
  entry.tensor = tensor;
}
void Frame::own(const lamella_value& value) {
  Owned& entry = add_owned();
  entry.kind = Owned::kValue;
  entry.value = value;
}

PyObject** Frame::hold(PyObject* const* items, Py_ssize_t size) {
  auto** held = static_cast<PyObject**>(allocate(static_cast<size_t>(size) * sizeof(PyObject*)));
  for (Py_ssize_t i = 0; i < size; ++i) {
    held[i] = items[i];
    Py_INCREF(held[i]);
  }
  Owned& entry = add_owned();
  entry.kind = Owned::kObjects;
  entry.objects = {held, size};
  return held;
}

bool Frame::enter_nested() {
  constexpr uint32_t kMaxNesting = 100;
  if (nested_ < kMaxNesting) {
    ++nested_;
    return true;
  }
  PyErr_Format(PyExc_ValueError, "expected lists within lists to a depth of %u, got more",
               kMaxNesting);
  return false;
}

void Frame::clear() {
  auto drop = [](Owned& entry) {
    switch (entry.kind) {
      case Owned::kObject:
        Py_DECREF(entry.object);
        break;
      case Owned::kObjects:
        for (Py_ssize_t i = 0; i < entry.objects.size; ++i) Py_DECREF(entry.objects.items[i]);
        break;
      case Owned::kTensor:
        detail::release(entry.tensor);
        break;
      case Owned::kValue:
        lamella_value_release(&entry.value);
        break;
    }
  };
  for (uint32_t i = 0; i < owned_count_ && i < kOwned; ++i) drop(owned_[i]);
  if (owned_more_ != nullptr) {
    for (Owned& entry : *owned_more_) drop(entry);
    delete owned_more_;
    owned_more_ = nullptr;
  }
  owned_count_ = 0;
  while (more_ != nullptr) {
    More* next = more_->next;
    ::operator delete(more_);
    more_ = next;
  }
}

}  // namespace lamella::python
