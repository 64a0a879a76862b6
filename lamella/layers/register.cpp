// Puts every layer in its place, before the first operator is called.
#include "lamella/api/operator_tables.h"
#include "lamella/layers/autograd/record.h"
#include "lamella/layers/vmap/vmap.h"

void lamella::register_layers() {
  autograd::register_layer();
  vmap::register_layer();
}
