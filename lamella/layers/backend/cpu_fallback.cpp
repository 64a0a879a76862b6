// The boxed kernel that serves a backend for every operator it has no kernel for.
//
// Note [Falling back to the CPU]
//   For each device storage, the bytes from the first to the last that an argument reaches are
//   copied to the CPU once. All arguments over that storage become tensors over the copy with
//   unchanged strides, so overlapping arguments still overlap, and the operator refuses expanded
//   ones as usual. Then the operator's CPU kernel is called directly, without dispatch, since the
//   layers above have already run. Afterwards
//     * arguments that the schema writes are copied back and their versions are bumped; those that
//       were resized get the new shape, with new memory if necessary;
//     * a result that is an argument becomes that argument;
//     * a result over an argument's memory becomes a view of the argument on the device;
//     * any other result is copied to the device of a Device argument, else of the first tensor on
//       a device, and keeps its strides if it is dense.
//   0-dimensional CPU tensors that are not written may be mixed with tensors of a device, and so
//   may tensors in lists of optional tensors, such as indices.
#include <vector>

#include "lamella/abi/backend.h"
#include "lamella/api/functions.h"
#include "lamella/core/byte_span.h"
#include "lamella/core/device_guard.h"
#include "lamella/core/generator_impl.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

constexpr size_t kAlignment = 64;  // copies begin at a multiple of it in the storage

TensorBase bytes_of(Storage* storage, ByteSpan span) {
  storage_retain(storage);
  auto size = static_cast<int64_t>(span.size());
  int64_t one = 1;
  return make_tensor(storage, IntArrayRef(size), IntArrayRef(one), static_cast<int64_t>(span.begin),
                     ScalarType::Byte, default_key_set(storage->device_type, true));
}
void copy_bytes(const TensorBase& from, const TensorBase& to) {
  if (from.numel() != 0) lamella::_copy_from(Tensor(from), Tensor(to), false);
}

// The part of a device storage that the call reaches, and its copy.
struct Image {
  Storage* storage;
  ByteSpan span;
  TensorBase copy;  // bytes on the CPU; undefined until all arguments are known
};

// An argument on the device, and the CPU tensor that replaces it.
struct Stand {
  lamella_tensor* real;
  size_t image;
  TensorBase cpu;
  bool written = false;
  bool counted = false;  // the schema says that it is written, so its version is bumped
};

class Fallback {
 public:
  Fallback(const lamella_operator* op, const lamella_value* arguments)
      : op_(op),
        schema_(Registry::get().schema(entry_of(op))),
        given_(arguments),
        values_(arguments, arguments + op->argument_count),
        lists_(op->argument_count) {
    find_device();
    for (uint32_t i = 0; i < op->argument_count; ++i) see(i);
  }

  lamella_status run(lamella_value* returns) {
    AutoDispatchBelowADInplaceOrView below;
    OptionalDeviceGuard guard(device_);
    for (Image& image : images_) bring(image);
    for (uint32_t i = 0; i < op_->argument_count; ++i) replace(i);
    uint64_t cpu = DispatchKeySet(DispatchKey::CPU).raw_repr();
    lamella_status status = abi::call_boxed(op_, cpu, values_.data(), returns);
    give_back_generator();
    if (status != LAMELLA_OK) return status;
    try {
      for (Stand& stand : stands_) {
        if (stand.written) write_back(stand);
      }
      for (uint32_t i = 0; i < op_->return_count; ++i) bring_home(returns[i]);
    } catch (...) {
      for (uint32_t i = 0; i < op_->return_count; ++i) lamella_value_release(&returns[i]);
      throw;
    }
    return LAMELLA_OK;
  }

 private:
  const char* op_name() const { return schema_.name.name.c_str(); }

  // ---- Reading the arguments ----

  void find_device() {
    for (uint32_t i = 0; i < op_->argument_count; ++i) {
      if (values_[i].tag != LAMELLA_DEVICE) continue;
      Device asked = IValue::unpack_device(values_[i].as.i);
      if (asked.is_cpu() || asked.is_meta()) continue;
      auto type = static_cast<uint8_t>(asked.type());
      if (!asked.has_index()) asked.set_index(lamella_device_current(type));
      device_ = asked;
      values_[i].as.i = IValue::pack_device(Device(kCPU));
      return;
    }
  }
  // Throws unless the tensor is on the device of the others, or is a 0-dimensional CPU tensor.
  void check_device(const char* name, const lamella_tensor* t, bool written) {
    Device device(static_cast<DeviceType>(t->device_type), t->device_index);
    if (device.is_cpu() && t->ndim == 0 && !written) return;
    if (first_name_ == nullptr) {
      first_name_ = name;
      first_device_ = device;
    }
    LAMELLA_CHECK(device == first_device_, op_name(),
                  ": expected all tensors to be on one device, got '", first_name_, "' on ",
                  first_device_, " and '", name, "' on ", device);
  }
  void see(uint32_t i) {
    const Argument& argument = schema_.arguments[i];
    const lamella_value& value = given_[i];
    // Batch norm writes its running statistics, although its schema (PyTorch's) does not say so.
    bool written =
        argument.is_write() || argument.name == "running_mean" || argument.name == "running_var";
    if (value.tag == LAMELLA_TENSOR) {
      see(argument, value.as.tensor, written, true);
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      bool optional = argument.type.str().find("Tensor?") != std::string::npos;
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) see(argument, list[k], written, !optional);
    } else if (value.tag == LAMELLA_GENERATOR) {
      see_generator(i);
    }
  }
  void see(const Argument& argument, lamella_tensor* t, bool written, bool must_share) {
    if (t == nullptr) return;
    if (must_share) check_device(argument.name.c_str(), t, written);
    Device device(static_cast<DeviceType>(t->device_type), t->device_index);
    if (device.is_cpu()) return;
    if (!device_) device_ = device;
    for (Stand& stand : stands_) {
      if (stand.real != t) continue;
      stand.written |= written;
      stand.counted |= argument.is_write();
      return;
    }
    LAMELLA_CHECK_NOT_IMPLEMENTED(t->storage != nullptr, op_name(), ": expected '", argument.name,
                                  "' to have memory, got a tensor without any on ", device);
    stands_.push_back({t, image_of(t), TensorBase(), written, argument.is_write()});
  }
  size_t image_of(lamella_tensor* t) {
    ByteSpan span = byte_span(t);
    size_t at = 0;
    while (at < images_.size() && images_[at].storage != t->storage) ++at;
    if (at == images_.size()) images_.push_back({t->storage, span, TensorBase()});
    ByteSpan& all = images_[at].span;
    if (all.size() == 0) all = span;
    if (span.size() != 0 && span.begin < all.begin) all.begin = span.begin;
    if (span.size() != 0 && span.end > all.end) all.end = span.end;
    return at;
  }

  // ---- Copying to the CPU ----

  void bring(Image& image) {
    // Rounded down, so that elements of every dtype stay aligned.
    image.span.begin = image.span.begin / kAlignment * kAlignment;
    auto size = static_cast<int64_t>(image.span.size());
    image.copy = make_empty(IntArrayRef(size), ScalarType::Byte, kCPU);
    copy_bytes(bytes_of(image.storage, image.span), image.copy);
  }
  TensorBase stand_in(lamella_tensor* t) {
    for (Stand& stand : stands_) {
      if (stand.real != t) continue;
      if (stand.cpu.defined()) return stand.cpu;
      const Image& image = images_[stand.image];
      auto dtype = static_cast<ScalarType>(t->scalar_type);
      auto n = static_cast<size_t>(t->ndim);
      auto shift = static_cast<int64_t>(image.span.begin / element_size(dtype));
      int64_t offset = t->numel == 0 ? 0 : t->storage_offset - shift;
      Storage* storage = image.copy.impl()->storage;
      storage_retain(storage);
      stand.cpu = make_tensor(storage, {t->sizes, n}, {t->strides, n}, offset, dtype,
                              default_key_set(DeviceType::CPU, true));
      constexpr uint32_t kept = LAMELLA_TENSOR_WRAPPED_NUMBER;
      TensorImpl::of(stand.cpu)->flags |= t->flags & kept;
      return stand.cpu;
    }
    return TensorBase::borrow(t);
  }
  void replace(uint32_t i) {
    lamella_value& value = values_[i];
    if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
      kept_.push_back(stand_in(value.as.tensor));
      value.as.tensor = kept_.back().impl();
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) {
        lamella_tensor* t = list[k];
        if (t != nullptr) {
          kept_.push_back(stand_in(t));
          t = kept_.back().impl();
        }
        lists_[i].push_back(t);
      }
      value.as.pointer = lists_[i].data();
      value.flags = 0;
    }
  }

  // A CPU generator with the state of the device's generator replaces it for the call.
  void see_generator(uint32_t i) {
    lender_ = Generator::borrow(static_cast<lamella_object*>(given_[i].as.pointer));
    GeneratorImpl& lender = GeneratorImpl::of(lender_);
    if (lender.device.is_cpu()) {
      lender_ = Generator();
      return;
    }
    if (!device_) device_ = lender.device;
    borrower_ = make_cpu_generator();
    values_[i].as.pointer = borrower_.get();
    if (lender.device.is_cuda()) {  // of another kind: it gives a seed
      uint64_t seed = 0;
      detail::check(lamella_generator_draw(lender_.get(), &seed, 1));
      GeneratorImpl::of(borrower_).set_current_seed(seed);
      lender_ = Generator();
      return;
    }
    std::lock_guard lock(lender.mutex);
    std::vector<uint8_t> state = lender.get_state();
    GeneratorImpl::of(borrower_).set_state(state.data(), state.size());
  }
  void give_back_generator() {
    if (!lender_.defined()) return;
    std::vector<uint8_t> state = GeneratorImpl::of(borrower_).get_state();
    GeneratorImpl& lender = GeneratorImpl::of(lender_);
    std::lock_guard lock(lender.mutex);
    lender.set_state(state.data(), state.size());
  }

  // ---- Copying back ----

  void write_back(Stand& stand) {
    lamella_tensor* real = stand.real;
    const lamella_tensor* cpu = stand.cpu.impl();
    auto n = static_cast<size_t>(cpu->ndim);
    IntArrayRef sizes(cpu->sizes, n), strides(cpu->strides, n);
    bool same_shape = sizes.equals({real->sizes, static_cast<size_t>(real->ndim)}) &&
                      strides.equals({real->strides, static_cast<size_t>(real->ndim)});
    bool same_memory = cpu->storage == images_[stand.image].copy.impl()->storage;
    if (!same_shape || !same_memory)
      resize_tensor_strided(static_cast<TensorImpl*>(real), sizes, strides);
    copy_bytes(bytes_of(cpu->storage, byte_span(cpu)), bytes_of(real->storage, byte_span(real)));
    if (stand.counted) lamella_tensor_bump_version(real);
  }
  TensorBase home_of(const TensorBase& result) {
    const lamella_tensor* cpu = result.impl();
    if (cpu->device_type != static_cast<uint8_t>(DeviceType::CPU)) return result;
    for (const Stand& stand : stands_) {
      if (stand.cpu.impl() == cpu) return TensorBase::borrow(stand.real);
    }
    for (const TensorBase& kept : kept_) {
      if (kept.impl() == cpu) return result;  // an argument that was on the CPU
    }
    auto n = static_cast<size_t>(cpu->ndim);
    auto dtype = static_cast<ScalarType>(cpu->scalar_type);
    for (const Stand& stand : stands_) {
      const Image& image = images_[stand.image];
      if (cpu->storage == nullptr || cpu->storage != image.copy.impl()->storage) continue;
      auto shift = static_cast<int64_t>(image.span.begin / element_size(dtype));
      return make_view_as(TensorBase::borrow(stand.real), {cpu->sizes, n}, {cpu->strides, n},
                          cpu->storage_offset + shift, dtype);
    }
    if (!device_) return result;
    IntArrayRef sizes(cpu->sizes, n), strides(cpu->strides, n);
    TensorBase home = result.is_non_overlapping_and_dense()
                          ? make_empty_strided(sizes, strides, dtype, *device_)
                          : make_empty(sizes, dtype, *device_);
    lamella::_copy_from(Tensor(result), Tensor(home), false);
    return home;
  }
  void bring_home(lamella_value& value) {
    if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
      TensorBase home = home_of(TensorBase::borrow(value.as.tensor));
      lamella_value_release(&value);
      value = IValue(std::move(home)).unsafe_release();
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      std::vector<TensorBase> home;
      for (uint32_t k = 0; k < value.size; ++k) {
        home.push_back(list[k] == nullptr ? TensorBase() : home_of(TensorBase::borrow(list[k])));
      }
      lamella_value made;
      detail::check(lamella_value_allocate(LAMELLA_TENSOR_LIST, home.size(), &made));
      for (size_t k = 0; k < home.size(); ++k) {
        static_cast<lamella_tensor**>(made.as.pointer)[k] = home[k].unsafe_release();
      }
      lamella_value_release(&value);
      value = made;
    }
  }

  const lamella_operator* op_;
  const FunctionSchema& schema_;
  const lamella_value* given_;
  std::vector<lamella_value> values_;
  std::vector<std::vector<lamella_tensor*>> lists_;
  std::vector<TensorBase> kept_;
  std::vector<Image> images_;
  std::vector<Stand> stands_;
  std::optional<Device> device_;
  const char* first_name_ = nullptr;
  Device first_device_{DeviceType::CPU};
  Generator lender_, borrower_;
};

}  // namespace
}  // namespace lamella

extern "C" lamella_status lamella_cpu_fallback(const lamella_kernel*, const lamella_operator* op,
                                               uint64_t, const lamella_value* arguments,
                                               lamella_value* returns) noexcept {
  for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = lamella_value{{0}, 0, 0, 0, 0};
  try {
    return lamella::Fallback(op, arguments).run(returns);
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}
