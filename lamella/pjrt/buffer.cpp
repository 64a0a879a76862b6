// Buffers: PJRT's functions on them, but for those that make them or copy them to the host.
#include "lamella/pjrt/buffer.h"

#include <cstring>

#include "lamella/pjrt/functions.h"

namespace lamella::pjrt {

CellPointer Buffer::live_cell() const {
  CellPointer found = cell();
  require(found != nullptr, "Buffer has been deleted or donated.");
  return found;
}
CellPointer Buffer::complete_cell() const {
  CellPointer found = live_cell();
  check(found->completion.wait());
  return found;
}
CellPointer Buffer::remove() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::move(cell_);
}
void Buffer::add_reference() {
  std::lock_guard<std::mutex> lock(mutex_);
  require(cell_ != nullptr || referenced_ != nullptr, "Buffer has been deleted or donated.");
  if (references_.fetch_add(1) == 0) referenced_ = cell_;
}
void Buffer::drop_reference() {
  std::lock_guard<std::mutex> lock(mutex_);
  require(references_.load() > 0, "lamella: expected a reference to the buffer");
  if (references_.fetch_sub(1) == 1) referenced_.reset();
}

void when_complete(const CellPointer& cell, CompletionPointer to, std::function<void()> f) {
  cell->completion.then([to = std::move(to), f = std::move(f)](const Status& status) {
    Status result = status;
    if (status.ok()) {
      try {
        f();
      } catch (...) {
        result = current_status(Code::Internal);
      }
    }
    if (to != nullptr) to->set(std::move(result));
  });
}

CellPointer copied(const CellPointer& from) {
  auto to = std::make_shared<Cell>(from->type);
  from->completion.then([from, to](const Status& status) {
    Status result = status;
    if (status.ok() && from->value.shape().is_array()) {
      try {
        hlo::Value made =
            hlo::Value::uninitialized(&to->type->row_major_shape(), from->value.bytes());
        if (made.bytes() != 0) std::memcpy(made.data(), from->value.data(), made.bytes());
        to->value = std::move(made);
      } catch (...) {
        result = current_status();
      }
    } else if (status.ok()) {
      to->value = hlo::Value::token(&to->type->row_major_shape());
    }
    to->completion.set(std::move(result));
  });
  return to;
}

namespace {

CompletionPointer completion_of(const CellPointer& cell) { return {cell, &cell->completion}; }

// A pointer into memory that stays as long as the buffer does.
void* address_of(const Buffer& buffer) { return buffer.complete_cell()->data(); }

}  // namespace

void buffer_destroy(BufferDestroyArgs& args) { delete args.buffer; }
void buffer_element_type(BufferElementTypeArgs& args) { args.type = args.buffer->type->number(); }
void buffer_dimensions(BufferDimensionsArgs& args) { args.dims = args.buffer->type->dims(); }
void buffer_unpadded_dimensions(BufferUnpaddedDimensionsArgs& args) { buffer_dimensions(args); }
void buffer_dynamic_dimension_indices(BufferDynamicDimensionIndicesArgs& args) {
  args.dims = {nullptr, 0};
}
void buffer_get_memory_layout(BufferGetMemoryLayoutArgs& args) {
  const std::vector<int64_t>& order = args.buffer->type->minor_to_major();
  args.layout = {
      {sizeof(LayoutText), nullptr},
      {.tiled =
           {{sizeof(TiledLayout), nullptr}, {order.data(), order.size()}, nullptr, nullptr, 0}},
      LayoutKind::Tiled};
}
void buffer_on_device_size_in_bytes(BufferOnDeviceSizeInBytesArgs& args) {
  args.bytes = args.buffer->type->bytes();
}
void buffer_device(BufferDeviceArgs& args) { args.device = args.buffer->memory->device; }
void buffer_memory(BufferMemoryArgs& args) { args.memory = args.buffer->memory; }
void buffer_delete(BufferDeleteArgs& args) { args.buffer->remove(); }
void buffer_is_deleted(BufferIsDeletedArgs& args) {
  args.is_deleted = args.buffer->cell() == nullptr;
}
void buffer_is_on_cpu(BufferIsOnCpuArgs& args) { args.is_on_cpu = true; }
void buffer_ready_event(BufferReadyEventArgs& args) {
  CellPointer cell = args.buffer->cell();
  if (cell == nullptr) {
    auto failed = std::make_shared<Completion>();
    failed->set({Code::InvalidArgument, "Buffer has been deleted or donated."});
    args.event = make_event(std::move(failed));
    return;
  }
  args.event = make_event(completion_of(cell));
}
void buffer_unsafe_pointer(BufferUnsafePointerArgs& args) {
  args.address = reinterpret_cast<uintptr_t>(address_of(*args.buffer));
}
void buffer_opaque_device_memory_data_pointer(BufferOpaqueDeviceMemoryDataPointerArgs& args) {
  args.data = address_of(*args.buffer);
}
void buffer_increase_external_reference_count(BufferReferenceArgs& args) {
  args.buffer->add_reference();
}
void buffer_decrease_external_reference_count(BufferReferenceArgs& args) {
  args.buffer->drop_reference();
}
void buffer_copy_to_device(BufferCopyToDeviceArgs& args) {
  Memory* memory = args.device->default_memory();
  args.copy = new Buffer(memory, args.buffer->type, copied(args.buffer->live_cell()));
}
void buffer_copy_to_memory(BufferCopyToMemoryArgs& args) {
  args.copy = new Buffer(args.memory, args.buffer->type, copied(args.buffer->live_cell()));
}

void buffer_bitcast(BufferBitcastArgs& args) {
  CellPointer from = args.buffer->complete_cell();
  ArrayTypePointer type = array_type(args.type, args.dims, args.layout);
  require(type->bytes() == args.buffer->type->bytes(), "PJRT_Buffer_Bitcast: expected ",
          args.buffer->type->bytes(), " bytes, got ", type->bytes());
  auto* held = new CellPointer(from);
  auto cell = std::make_shared<Cell>(
      type, hlo::Value::view(
                &type->row_major_shape(), from->data(), type->bytes(),
                [](void* context) { delete static_cast<CellPointer*>(context); }, held, false));
  cell->is_foreign = from->is_foreign;
  args.made = new Buffer(args.buffer->memory, type, std::move(cell));
}

// The buffer moves into a new one, which is complete when the dependency is.
void buffer_donate_with_control_dependency(BufferDonateWithControlDependencyArgs& args) {
  CellPointer from = args.buffer->live_cell();
  args.buffer->remove();
  auto to = std::make_shared<Cell>(from->type);
  struct Dependency {
    CellPointer from, to;
  };
  args.user = new Dependency{from, to};
  args.ready = [](DependencyReady* result) {
    std::unique_ptr<Dependency> of(static_cast<Dependency*>(result->user));
    CellPointer source = std::move(of->from), target = std::move(of->to);
    if (result->code != Code::Ok) {
      target->completion.set({result->code, text_of(result->message)});
      return;
    }
    source->completion.then([source, target](const Status& status) {
      target->value = source->value;
      target->keeps = source;
      target->is_foreign = source->is_foreign;
      target->completion.set(status);
    });
  };
  args.made = new Buffer(args.buffer->memory, args.buffer->type, std::move(to));
}

}  // namespace lamella::pjrt
