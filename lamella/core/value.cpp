// Boxed values: allocation, copies and release.
#include <cstring>

#include "lamella/core/allocator.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_base.h"

namespace {

using lamella::detail::count_down;
using lamella::detail::count_up;
using lamella::detail::release;
using lamella::detail::retain;

static_assert(sizeof(lamella_value) == 16 && sizeof(lamella_block) == 16);

// Bytes of one element; 0 for tags without a pointer to elements.
constexpr size_t element_bytes(uint8_t tag) {
  switch (tag) {
    case LAMELLA_STRING:
    case LAMELLA_BOOL_LIST:
      return 1;
    case LAMELLA_INT_LIST:
    case LAMELLA_DOUBLE_LIST:
      return 8;
    case LAMELLA_TENSOR_LIST:
      return sizeof(lamella_tensor*);
    case LAMELLA_COMPLEX:
    case LAMELLA_LIST:
    case LAMELLA_TUPLE:
    case LAMELLA_DICT:
      return 16;
    default:
      return 0;
  }
}

// A string has a zero behind it, so that C reads it as it is.
size_t block_bytes(uint8_t tag, size_t size) {
  return sizeof(lamella_block) + size * element_bytes(tag) + (tag == LAMELLA_STRING ? 1 : 0);
}

lamella_block* block_of(const lamella_value& value) {
  return static_cast<lamella_block*>(value.as.pointer) - 1;
}

size_t elements_of(const lamella_value& value) {
  return value.tag == LAMELLA_COMPLEX ? 1 : value.size;
}

void allocate(uint8_t tag, size_t size, lamella_value* value) {
  LAMELLA_CHECK(element_bytes(tag) != 0,
                "value: expected the tag of a list, string or complex, got ",
                static_cast<int>(tag));
  if (tag == LAMELLA_COMPLEX) size = 1;
  LAMELLA_CHECK(size <= UINT32_MAX, "value: expected at most ", UINT32_MAX, " elements, got ",
                size);
  size_t bytes = block_bytes(tag, size);
  auto* block = static_cast<lamella_block*>(lamella::cpu_allocate(bytes));
  block->references = 1;
  block->tag = tag;
  block->size = size;
  std::memset(block + 1, 0, bytes - sizeof(lamella_block));
  *value = {};
  value->as.pointer = block + 1;
  value->size = static_cast<uint32_t>(size);
  value->tag = tag;
  value->flags = LAMELLA_VALUE_BLOCK;
}

void end_block(lamella_block* block) {
  auto tag = static_cast<uint8_t>(block->tag);
  if (tag == LAMELLA_TENSOR_LIST) {
    auto** tensors = reinterpret_cast<lamella_tensor**>(block + 1);
    for (size_t i = 0; i < block->size; ++i) {
      if (tensors[i] != nullptr) release(tensors[i]);
    }
  } else if (tag == LAMELLA_LIST || tag == LAMELLA_TUPLE || tag == LAMELLA_DICT) {
    auto* values = reinterpret_cast<lamella_value*>(block + 1);
    for (size_t i = 0; i < block->size; ++i) lamella_value_release(&values[i]);
  }
  lamella::cpu_free(block, block_bytes(tag, block->size));
}

void copy_elements(const lamella_value& from, lamella_value& to) {
  size_t size = elements_of(from);
  if (from.tag == LAMELLA_TENSOR_LIST) {
    auto* const* source = static_cast<lamella_tensor* const*>(from.as.pointer);
    auto** target = static_cast<lamella_tensor**>(to.as.pointer);
    for (size_t i = 0; i < size; ++i) {
      target[i] = source[i];
      if (target[i] != nullptr) retain(target[i]);
    }
  } else if (from.tag == LAMELLA_LIST || from.tag == LAMELLA_TUPLE || from.tag == LAMELLA_DICT) {
    const auto* source = static_cast<const lamella_value*>(from.as.pointer);
    auto* target = static_cast<lamella_value*>(to.as.pointer);
    for (size_t i = 0; i < size; ++i) {
      lamella_status status = lamella_value_copy(&source[i], &target[i]);
      if (status != LAMELLA_OK) lamella::detail::throw_status(status);
    }
  } else if (size != 0) {
    std::memcpy(to.as.pointer, from.as.pointer, size * element_bytes(from.tag));
  }
}

}  // namespace

extern "C" {

lamella_status lamella_value_allocate(uint8_t tag, size_t size, lamella_value* value) noexcept {
  try {
    allocate(tag, size, value);
    return LAMELLA_OK;
  } catch (...) {
    *value = {};
    return lamella::detail::status_of_current_exception();
  }
}

lamella_status lamella_value_copy(const lamella_value* value, lamella_value* copy) noexcept {
  if (element_bytes(value->tag) == 0) {
    *copy = *value;
    if (value->tag == LAMELLA_TENSOR) {
      if (value->as.tensor != nullptr) retain(value->as.tensor);
    } else if (value->tag == LAMELLA_GENERATOR || value->tag == LAMELLA_OBJECT) {
      auto* object = static_cast<lamella_object*>(value->as.pointer);
      if (object != nullptr) count_up(&object->references);
    }
    return LAMELLA_OK;
  }
  if ((value->flags & LAMELLA_VALUE_BLOCK) != 0) {
    count_up(&block_of(*value)->references);
    *copy = *value;
    return LAMELLA_OK;
  }
  lamella_value fresh{};
  try {
    allocate(value->tag, elements_of(*value), &fresh);
    copy_elements(*value, fresh);
    *copy = fresh;
    return LAMELLA_OK;
  } catch (...) {
    lamella_status status = lamella::detail::status_of_current_exception();
    lamella_value_release(&fresh);
    *copy = {};
    return status;
  }
}

void lamella_value_release(lamella_value* value) noexcept {
  if (value->tag == LAMELLA_TENSOR) {
    if (value->as.tensor != nullptr) release(value->as.tensor);
  } else if (value->tag == LAMELLA_GENERATOR || value->tag == LAMELLA_OBJECT) {
    auto* object = static_cast<lamella_object*>(value->as.pointer);
    if (object != nullptr && count_down(&object->references) == 0) object->destroy(object);
  } else if ((value->flags & LAMELLA_VALUE_BLOCK) != 0) {
    lamella_block* block = block_of(*value);
    if (count_down(&block->references) == 0) end_block(block);
  }
  *value = {};
}

}  // extern "C"
