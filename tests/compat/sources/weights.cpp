// Weights in safetensors files and archives, as C++ writes and reads them; for Lamella alone.
#include <lamella/library.h>
#include <lamella/nn.h>

namespace {

using lamella::Tensor;
namespace nn = lamella::nn;

nn::Sequential net() {
  return nn::Sequential(nn::Linear(2, 3), nn::BatchNorm1d(3), nn::Linear(3, 1));
}
Tensor flat(const nn::Sequential& of) {
  std::vector<Tensor> all;
  for (const Tensor& each : of->parameters()) all.push_back(each.detach().flatten());
  for (const Tensor& each : of->buffers()) all.push_back(each.to(lamella::kFloat).flatten());
  return lamella::cat(all);
}

// Writes one net as an archive and as a safetensors file.
Tensor write_both(std::string archive, std::string file) {
  nn::Sequential made = net();
  lamella::save(made, archive);
  lamella::save_file(*made, file);
  return flat(made);
}
Tensor read_net(std::string file) {
  nn::Sequential made = net();
  lamella::load(made, file);
  return flat(made);
}
Tensor read_tensor(std::string file) {
  Tensor read;
  lamella::load(read, file);
  return read;
}
std::vector<Tensor> read_list(std::string file) {
  std::vector<Tensor> read;
  lamella::load(read, file);
  return read;
}
void copy(std::string from, std::string to) {
  lamella::save_file(lamella::load_file(from), to, {{"by", "C++ \"\n\x01"}});
}

LAMELLA_LIBRARY(compat_weights, m) {
  m.def("write_both(str archive, str file) -> Tensor", &write_both);
  m.def("read_net(str file) -> Tensor", &read_net);
  m.def("read_tensor(str file) -> Tensor", &read_tensor);
  m.def("read_list(str file) -> Tensor[]", &read_list);
  m.def("copy(str source, str to) -> ()", &copy);
}

}  // namespace
