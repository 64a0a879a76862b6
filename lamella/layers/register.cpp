// Puts every layer in its place, before the first operator is called.
#include "lamella/api/operator_tables.h"
#include "lamella/layers/autograd/record.h"

void lamella::register_layers() { autograd::register_layer(); }
