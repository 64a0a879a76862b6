// DeviceGraph: a device program that repeats, as a captured graph of CUDA.
//
// Note [Programs as graphs]
//   The first run of a program loads what it needs, and the second is captured: its launches are
//   recorded and then replayed by one launch, then and at every later run. The graph has addresses.
//   An argument that was at the same address in both runs, as a model's parameters are, is used
//   where it is; another one is copied to memory of the graph before each replay, since a copy of
//   an input is one launch, while the places of its address in the parameters of kernels and
//   libraries are not known. Should the address of an argument change later, the program is
//   captured once more, with copies of that one. Results are copied out of the graph's memory, so
//   that each run has its own. A run on another stream, or while the stream is captured by the
//   caller, is no replay; a program with a step that waits is never captured.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lamella/core/device.h"
#include "lamella/core/tensor_base.h"

namespace lamella::hlo {

class DeviceGraph {
 public:
  using Run = std::function<std::vector<TensorBase>(std::span<const TensorBase>)>;
  explicit DeviceGraph(Device device);
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;
  ~DeviceGraph();
  // The results of `run`, by a replay where there may be one. The device must be current.
  std::vector<TensorBase> run(std::span<const TensorBase> arguments, const Run& run);
  // "runs as a graph", or why not.
  std::string explain() const;

 private:
  struct Argument {
    const void* data;  // where it was at the last run
    std::vector<int64_t> strides;
    TensorBase copy;  // what the graph reads instead; undefined: the argument itself
  };
  void note(std::span<const TensorBase> arguments);
  bool is_plain(const TensorBase& one) const;
  bool is_placed(std::span<const TensorBase> arguments) const;
  void capture(std::span<const TensorBase> arguments, const Run& run);
  std::vector<TensorBase> replay(std::span<const TensorBase> arguments);

  const Device device_;
  mutable std::mutex mutex_;
  std::string problem_;  // why there is no graph
  bool is_warm_ = false;
  int64_t stream_ = 0;  // of the first run
  std::vector<Argument> arguments_;
  std::vector<TensorBase> results_;  // in the graph's memory
  void* graph_ = nullptr;
};

}  // namespace lamella::hlo
