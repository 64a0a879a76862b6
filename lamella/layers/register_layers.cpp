// The layers that are there from the start, each by the one function it registers itself with.
#include "lamella/api/operator_tables.h"

namespace lamella {

namespace autograd {
void register_layer();
}
namespace autocast {
void register_layer();
}
namespace lazy {
void register_layer();
}
namespace vmap {
void register_layer();
}

void register_layers() {
  autograd::register_layer();
  autocast::register_layer();
  lazy::register_layer();
  vmap::register_layer();
}

}  // namespace lamella
