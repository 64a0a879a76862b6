// See Note [Programs as graphs] in device_graph.h.
#include "lamella/graph/execute/device_graph.h"

#include <algorithm>
#include <utility>

#include "lamella/api/functions.h"
#include "lamella/core/cuda_stream_handle.h"
#include "lamella/core/error.h"

namespace lamella::hlo {
namespace {

// NULL where another library brings the device.
const CudaTable::Graphs* functions() {
  static const CudaTable* table = cuda_table();
  return table == nullptr ? nullptr : &table->graphs;
}
constexpr int kOfThisThread = 1;  // of CUstreamCaptureMode

bool is_captured(const Stream& stream) {
  int captured = 0;
  detail::check(functions()->is_capturing(stream.device_index(), stream.id(), &captured));
  return captured != 0;
}

}  // namespace

DeviceGraph::DeviceGraph(Device device) : device_(device) {}
DeviceGraph::~DeviceGraph() {
  results_.clear();
  arguments_.clear();
  if (graph_ != nullptr) functions()->free(graph_);
}

std::vector<TensorBase> DeviceGraph::run(std::span<const TensorBase> given, const Run& run) {
  const Stream stream = current_stream(device_);
  // Runs at the same time are no replays: the graph has one place for each value.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !problem_.empty()) return run(given);
  if (functions() == nullptr) {
    problem_ = "the device is not CUDA's";
    return run(given);
  }
  if (is_captured(stream) || (is_warm_ && stream.id() != stream_)) return run(given);
  std::vector<TensorBase> resolved;
  std::span<const TensorBase> arguments = given;
  if (!std::ranges::all_of(given, [&](const TensorBase& one) { return is_plain(one); })) {
    for (const TensorBase& one : given) {
      resolved.push_back(Tensor(one).to(device_).resolve_conj().resolve_neg());
    }
    arguments = resolved;
  }
  if (!is_warm_) {
    std::vector<TensorBase> made = run(arguments);
    arguments_.resize(arguments.size());
    note(arguments);
    stream_ = stream.id();
    is_warm_ = true;
    return made;
  }
  if (graph_ == nullptr || !is_placed(arguments)) capture(arguments, run);
  return graph_ == nullptr ? run(arguments) : replay(arguments);
}

// Whether an argument is what the program's steps take.
bool DeviceGraph::is_plain(const TensorBase& one) const {
  return one.device() == device_ &&
         (one.impl()->flags & (LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG)) == 0;
}
bool DeviceGraph::is_placed(std::span<const TensorBase> arguments) const {
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Argument& known = arguments_[k];
    if (known.copy.defined()) continue;
    if (arguments[k].const_data_ptr() != known.data ||
        arguments[k].strides() != IntArrayRef(known.strides)) {
      return false;
    }
  }
  return true;
}
void DeviceGraph::note(std::span<const TensorBase> arguments) {
  for (size_t k = 0; k < arguments.size(); ++k) {
    arguments_[k].data = arguments[k].const_data_ptr();
    arguments_[k].strides = arguments[k].strides().vec();
  }
}

void DeviceGraph::capture(std::span<const TensorBase> arguments, const Run& run) {
  const CudaTable::Graphs& cuda = *functions();
  if (graph_ != nullptr) {
    results_.clear();
    detail::check(cuda.free(std::exchange(graph_, nullptr)));
  }
  std::vector<TensorBase> places;
  for (size_t k = 0; k < arguments.size(); ++k) {
    Argument& known = arguments_[k];
    if (!known.copy.defined() && (arguments[k].const_data_ptr() != known.data ||
                                  arguments[k].strides() != IntArrayRef(known.strides))) {
      const Tensor tensor(arguments[k]);
      known.copy = lamella::empty(tensor.sizes(), tensor.options());
    }
    places.push_back(known.copy.defined() ? known.copy : arguments[k]);
  }
  note(arguments);
  const Stream own = Stream::make(device_);
  detail::check(cuda.make(&graph_));
  try {
    StreamGuard guard(own);
    detail::check(cuda.begin(graph_, 0, kOfThisThread));
    results_ = run(places);
    int64_t nodes = 0;
    detail::check(cuda.end(graph_, &nodes));
  } catch (const std::exception& error) {
    problem_ = error.what();
    results_.clear();
    arguments_.clear();
    cuda.abandon(graph_);
    cuda.free(std::exchange(graph_, nullptr));
  }
}

std::vector<TensorBase> DeviceGraph::replay(std::span<const TensorBase> arguments) {
  for (size_t k = 0; k < arguments.size(); ++k) {
    Tensor copy(arguments_[k].copy);
    if (copy.defined()) copy.copy_(Tensor(arguments[k]));
  }
  detail::check(functions()->replay(graph_));
  std::vector<TensorBase> made;
  for (const TensorBase& one : results_) made.push_back(Tensor(one).clone());
  return made;
}

std::string DeviceGraph::explain() const {
  // A run may wait for the interpreter's lock, which the caller may hold.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return "  runs as a graph at this moment\n";
  if (!problem_.empty()) return "  runs step by step: " + problem_ + "\n";
  if (graph_ == nullptr) return "  will run as a graph\n";
  const auto copied =
      std::ranges::count_if(arguments_, [](const Argument& one) { return one.copy.defined(); });
  return str("  runs as a graph, ", copied, " of ", arguments_.size(), " arguments copied\n");
}

}  // namespace lamella::hlo
