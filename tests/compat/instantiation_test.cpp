// torch/torch.h declares networks and archives without instantiating them, since most files that
// include it only define operators: a specialization behind an instantiation does not compile.
#include <torch/torch.h>

template <>
class lamella::nn::ModuleOf<0>;
template <>
class lamella::serialize::InputArchiveOf<0>;
template <>
class lamella::serialize::OutputArchiveOf<0>;
