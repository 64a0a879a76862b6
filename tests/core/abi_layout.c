/* The layouts of abi.h as a C compiler sees them. */
#include "lamella/abi/abi.h"

#define FIELD(type, name) offsetof(type, name)

const size_t lamella_test_layout[] = {
    sizeof(lamella_tensor),
    FIELD(lamella_tensor, references),
    FIELD(lamella_tensor, weak_references),
    FIELD(lamella_tensor, key_set),
    FIELD(lamella_tensor, data),
    FIELD(lamella_tensor, numel),
    FIELD(lamella_tensor, sizes),
    FIELD(lamella_tensor, strides),
    FIELD(lamella_tensor, storage_offset),
    FIELD(lamella_tensor, storage),
    FIELD(lamella_tensor, ndim),
    FIELD(lamella_tensor, scalar_type),
    FIELD(lamella_tensor, device_type),
    FIELD(lamella_tensor, device_index),
    FIELD(lamella_tensor, layout),
    FIELD(lamella_tensor, flags),
    FIELD(lamella_tensor, python_object),
    FIELD(lamella_tensor, autograd),
    sizeof(lamella_value),
    FIELD(lamella_value, size),
    FIELD(lamella_value, tag),
    FIELD(lamella_value, flags),
    sizeof(lamella_block),
    FIELD(lamella_block, tag),
    FIELD(lamella_block, size),
    sizeof(lamella_object),
    FIELD(lamella_object, destroy),
    sizeof(lamella_scalar),
    FIELD(lamella_scalar, tag),
};
const size_t lamella_test_layout_size =
    sizeof(lamella_test_layout) / sizeof(lamella_test_layout[0]);
