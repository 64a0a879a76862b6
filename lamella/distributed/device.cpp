// Loads the library for a device type and runs collectives with it: Note [Collectives on a GPU].
#include "lamella/distributed/device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

namespace lamella::distributed {
namespace {

struct Loaded {
  DeviceTransport* transport = nullptr;
  std::string obstacle;
};

// Loads the file that LAMELLA_NCCL names, else liblamella_nccl.so from this library's folder.
Loaded load() {
  std::string path;
  if (const char* named = std::getenv("LAMELLA_NCCL"); named != nullptr && *named != '\0') {
    path = named;
  } else {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&device_obstacle), &info) != 0) path = info.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + "liblamella_nccl.so";
    if (access(path.c_str(), F_OK) != 0) {
      return {nullptr, "liblamella_nccl.so was not found; it is built where NCCL's headers are"};
    }
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = handle == nullptr ? nullptr : dlsym(handle, "lamella_device_transport");
  if (entry == nullptr) {
    const char* why = dlerror();
    return {nullptr, why != nullptr ? why : path};
  }
  return {reinterpret_cast<DeviceTransport* (*)()>(entry)(), ""};
}

std::mutex mutex;
bool looked = false;
Loaded nccl;

Loaded& loaded() {
  std::lock_guard lock(mutex);
  if (!looked) nccl = load();
  looked = true;
  return nccl;
}

Tensor combined(Reduction reduction, const Tensor& a, const Tensor& b) {
  bool is_bool = a.scalar_type() == ScalarType::Bool;
  switch (reduction) {
    case Reduction::Product:
      return is_bool ? a.logical_and(b) : a.mul(b);
    case Reduction::Min:
      return is_bool ? a.logical_and(b) : minimum(a, b);
    case Reduction::Max:
      return is_bool ? a.logical_or(b) : maximum(a, b);
    default:
      return is_bool ? a.logical_or(b) : a.add(b);
  }
}

}  // namespace

std::string device_obstacle(DeviceType type) {
  if (type == DeviceType::CPU) return "";
  if (type != DeviceType::CUDA) return "no library has collectives for such devices";
  Loaded& found = loaded();
  return found.transport == nullptr ? found.obstacle : found.transport->obstacle();
}

DeviceTransport& transport_of(Device device, const char* op_name) {
  std::string obstacle = device_obstacle(device.type());
  LAMELLA_CHECK(obstacle.empty(), op_name, ": expected a way to move tensors on ", device,
                ", got none: ", obstacle);
  return *loaded().transport;
}

void close_transports() {
  std::lock_guard lock(mutex);
  if (nccl.transport != nullptr) nccl.transport->close();
}

void Running::post_on_device(bool begun) {
  Kind kind = kind_;
  const char* name = name_of(kind_);
  auto n = static_cast<size_t>(group_.size);
  auto fill = [&](int each) {
    counts_.assign(n, each);
    for (int r = 0; r < group_.size; ++r) starts_.push_back(r * each);
  };
  bool scatters = kind == Kind::ReduceScatter || kind == Kind::Scatter;
  if (equal_) {
    fill(scatters ? elements(output_)
                  : elements(input_) / (kind == Kind::AllToAll ? group_.size : 1));
  }
  if (send_equal_) send_counts_ = counts_, send_starts_ = starts_;
  if (kind == Kind::AllToAll && in() == out()) input_ = input_.clone();
  DeviceCall call{.kind = kind,
                  .op_name = name,
                  .reduction = reduction_,
                  .dtype = input_.scalar_type(),
                  .device = input_.device(),
                  .in = in(),
                  .out = out(),
                  .in_count = elements(input_),
                  .out_count = elements(output_),
                  .equal = equal_,
                  .counts = counts_.data(),
                  .starts = starts_.data(),
                  .send_counts = send_counts_.data(),
                  .send_starts = send_starts_.data(),
                  .root = peer_,
                  .begun = begun};
  std::vector<int> counts, starts;
  if (deterministic_ && group_.size > 1 &&
      (kind == Kind::AllReduce || kind == Kind::ReduceScatter)) {
    // Gathers the values of all ranks; fold_on_device() reduces them in the order of the ranks.
    scratch_ = empty({group_.size, call.out_count}, output_.options());
    folds_later_ = true;
    call.out = scratch_.data_ptr();
    if (kind == Kind::AllReduce) {
      call.kind = Kind::AllGather;
    } else {
      call.kind = Kind::AllToAll;
      counts.assign(n, call.out_count);
      for (int r = 0; r < group_.size; ++r) starts.push_back(r * call.out_count);
      call.send_counts = call.counts;
      call.send_starts = call.starts;
      call.counts = counts.data();
      call.starts = starts.data();
    }
  }
  transport_->check(call);
  device_work_ = transport_->post(call, group_);
}

void Running::fold_on_device() {
  Tensor total = scratch_.select(0, 0);
  for (int r = 1; r < group_.size; ++r) {
    total = combined(reduction_, total, scratch_.select(0, r));
  }
  output_.copy_(total.view(output_.sizes()));
}

}  // namespace lamella::distributed
