// Transfers: buffers of the host's memory, and copies of buffers to the host.
#include <cstring>

#include "lamella/pjrt/buffer.h"
#include "lamella/pjrt/functions.h"

namespace lamella::pjrt {
namespace {

// Machine code reads vectors of this size from arguments.
constexpr uintptr_t kAlignment = 16;

CellPointer empty_cell(const ArrayTypePointer& type) {
  const hlo::Shape* shape = &type->row_major_shape();
  if (!shape->is_array()) return std::make_shared<Cell>(type, hlo::Value::token(shape));
  return std::make_shared<Cell>(type, hlo::Value::uninitialized(shape, type->bytes()));
}

// Memory of a caller's, which is given back when its last reader is done.
hlo::Value borrowed(const ArrayTypePointer& type, const void* data, std::function<void()> give_back,
                    bool may_write) {
  struct Loan {
    ArrayTypePointer type;
    std::function<void()> give_back;
  };
  auto* loan = new Loan{type, std::move(give_back)};
  return hlo::Value::view(
      &type->row_major_shape(), const_cast<void*>(data), type->bytes(),
      [](void* context) {
        std::unique_ptr<Loan> of(static_cast<Loan*>(context));
        if (of->give_back) of->give_back();
      },
      loan, may_write);
}

ArrayTypePointer array_type(const ShapeText& shape) {
  return pjrt::array_type(shape.type, shape.dims, shape.layout);
}
Memory* place(const Client* client, Device* device, Memory* memory) {
  return client->place(device, memory);
}

}  // namespace

void client_buffer_from_host_buffer(ClientBufferFromHostBufferArgs& args) {
  ArrayTypePointer type = array_type(args.type, args.dims, args.layout);
  Memory* memory = place(args.client, args.device, args.memory);
  std::vector<int64_t> to = type->byte_strides();
  std::vector<int64_t> from = to;
  bool dense = type->is_row_major();
  if (args.byte_strides.size != 0) {
    require(args.byte_strides.size == args.dims.size, "PJRT_Client_BufferFromHostBuffer: expected ",
            args.dims.size, " strides, got ", args.byte_strides.size);
    from.assign(args.byte_strides.data, args.byte_strides.data + args.byte_strides.size);
    dense = true;
    for (size_t d = 0; d < from.size(); ++d) dense &= from[d] == to[d] || args.dims.data[d] == 1;
    dense |= type->bytes() == 0;
  } else if (!dense) {
    from = type->strides_of(hlo::row_major(type->shape().rank()));
  }
  bool zero_copy =
      args.semantics == HostSemantics::ZeroCopy || args.semantics == HostSemantics::MutableZeroCopy;
  if (dense && zero_copy && type->bytes() != 0 &&
      reinterpret_cast<uintptr_t>(args.data) % kAlignment == 0) {
    auto done = std::make_shared<Completion>();
    auto cell = std::make_shared<Cell>(type, borrowed(
                                                 type, args.data, [done] { done->set(); },
                                                 args.semantics == HostSemantics::MutableZeroCopy));
    cell->is_foreign = true;
    args.buffer = new Buffer(memory, std::move(type), std::move(cell));
    args.done_with_host_buffer = make_event(std::move(done));
    return;
  }
  CellPointer cell = empty_cell(type);
  if (type->bytes() != 0) {
    if (dense) {
      std::memcpy(cell->data(), args.data, type->bytes());
    } else {
      copy_strided(type->shape().dimensions(), type->element_bytes(), args.data, from, cell->data(),
                   to);
    }
  }
  args.buffer = new Buffer(memory, std::move(type), std::move(cell));
  args.done_with_host_buffer = ready_event();
}

void client_create_view_of_device_buffer(ClientCreateViewOfDeviceBufferArgs& args) {
  ArrayTypePointer type = array_type(args.type, args.dims, args.layout);
  Memory* memory =
      place(args.client, args.device, has(&args, &args.memory) ? args.memory : nullptr);
  auto give_back = [f = args.on_delete, user = args.on_delete_user, data = args.data] {
    if (f != nullptr) f(data, user);
  };
  bool aligned = reinterpret_cast<uintptr_t>(args.data) % kAlignment == 0;
  auto cell = std::make_shared<Cell>(type, borrowed(type, args.data, give_back, aligned));
  if (!aligned) cell->value = hlo::Value::writable(cell->value);
  cell->is_foreign = aligned;
  args.buffer = new Buffer(memory, std::move(type), std::move(cell));
}

void client_create_uninitialized_buffer(ClientCreateUninitializedBufferArgs& args) {
  ArrayTypePointer type = array_type(args.shape);
  args.buffer = new Buffer(place(args.client, args.device, args.memory), type, empty_cell(type));
}
void client_create_error_buffer(ClientCreateErrorBufferArgs& args) {
  ArrayTypePointer type = array_type(args.shape);
  auto cell = std::make_shared<Cell>(type);
  cell->completion.set({args.code, text_of(args.message)});
  args.buffer = new Buffer(args.memory, std::move(type), std::move(cell));
}

// ---- Buffers that are another one's later -------------------------------------------------------

struct AliasPromise {
  CellPointer cell;
};
void client_create_alias_buffer(ClientCreateAliasBufferArgs& args) {
  ArrayTypePointer type = array_type(args.shape);
  auto cell = std::make_shared<Cell>(type);
  args.promise = new AliasPromise{cell};
  args.buffer = new Buffer(args.memory, std::move(type), std::move(cell));
}
void client_fulfill_alias_buffer(ClientFulfillAliasBufferArgs& args) {
  std::unique_ptr<AliasPromise> promise(args.promise);
  CellPointer to = promise->cell;
  if (args.code != Code::Ok) {
    to->completion.set({args.code, text_of(args.message)});
    return;
  }
  CellPointer from = args.buffer->live_cell();
  require(from->type->shape() == to->type->shape(), "PJRT_Client_FulfillAliasBuffer: expected ",
          to->type->shape().to_string(), ", got ", from->type->shape().to_string());
  from->completion.then([from, to](const Status& status) {
    to->value = from->value;
    to->keeps = from;
    to->is_foreign = from->is_foreign;
    to->completion.set(status);
  });
}

// ---- To the host -------------------------------------------------------------------------------

void buffer_to_host_buffer(BufferToHostBufferArgs& args) {
  const ArrayTypePointer& type = args.buffer->type;
  if (args.to == nullptr) {
    args.bytes = type->bytes();
    return;
  }
  require(args.bytes >= type->bytes(), "PJRT_Buffer_ToHostBuffer: expected ", type->bytes(),
          " bytes, got ", args.bytes);
  CellPointer cell = args.buffer->live_cell();
  auto done = std::make_shared<Completion>();
  std::vector<int64_t> to = strides_of(*type, args.layout);
  when_complete(cell, done, [cell, type, to, target = args.to] {
    if (type->bytes() == 0) return;
    std::vector<int64_t> from = type->byte_strides();
    if (from == to) {
      std::memcpy(target, cell->data(), type->bytes());
    } else {
      copy_strided(type->shape().dimensions(), type->element_bytes(), cell->data(), from, target,
                   to);
    }
  });
  args.done = make_event(std::move(done));
}

namespace {

void require_range(const Buffer& buffer, int64_t offset, int64_t bytes) {
  auto whole = static_cast<int64_t>(buffer.type->bytes());
  require(offset >= 0 && bytes >= 0 && offset <= whole && bytes <= whole - offset,
          "lamella: expected a part of ", whole, " bytes, got ", bytes, " from ", offset);
}
void copy_part(const CellPointer& cell, int64_t offset, int64_t bytes, void* to) {
  if (bytes == 0) return;
  std::memcpy(to, static_cast<const char*>(cell->data()) + offset, static_cast<size_t>(bytes));
}

}  // namespace

void buffer_copy_raw_to_host(BufferCopyRawToHostArgs& args) {
  require_range(*args.buffer, args.offset, args.bytes);
  CellPointer cell = args.buffer->live_cell();
  auto done = std::make_shared<Completion>();
  when_complete(cell, done, [cell, offset = args.offset, bytes = args.bytes, to = args.to] {
    copy_part(cell, offset, bytes, to);
  });
  args.done = make_event(std::move(done));
}
void buffer_copy_raw_to_host_future(BufferCopyRawToHostFutureArgs& args) {
  require_range(*args.buffer, args.offset, args.bytes);
  struct Copy {
    CellPointer cell;
    int64_t offset, bytes;
    CompletionPointer done;
  };
  auto done = std::make_shared<Completion>();
  args.user = new Copy{args.buffer->live_cell(), args.offset, args.bytes, done};
  args.ready = [](CopyRawReady* place) {
    std::unique_ptr<Copy> of(static_cast<Copy*>(place->user));
    if (place->code != Code::Ok) {
      of->done->set({place->code, text_of(place->message)});
      return;
    }
    when_complete(of->cell, of->done,
                  [cell = of->cell, offset = of->offset, bytes = of->bytes, to = place->to] {
                    copy_part(cell, offset, bytes, to);
                  });
  };
  args.done = make_event(std::move(done));
}

// ---- Transfers in parts ------------------------------------------------------------------------

struct TransferManager {
  struct Part {
    ArrayTypePointer type;
    CellPointer cell;
  };
  Memory* memory;
  std::vector<Part> parts;

  Part& part(int index) {
    require(index >= 0 && index < static_cast<int>(parts.size()),
            "lamella: expected a buffer from 0 to ", parts.size() - 1, ", got ", index);
    return parts[static_cast<size_t>(index)];
  }
};

void client_create_buffers_for_async_host_to_device(
    ClientCreateBuffersForAsyncHostToDeviceArgs& args) {
  require(args.layouts.size == 0 || args.layouts.size == args.shapes.size,
          "PJRT_Client_CreateBuffersForAsyncHostToDevice: expected ", args.shapes.size,
          " layouts, got ", args.layouts.size);
  auto manager = std::make_unique<TransferManager>();
  manager->memory = place(args.client, nullptr, args.memory);
  for (size_t i = 0; i < args.shapes.size; ++i) {
    const ShapeSpec& shape = args.shapes.data[i];
    const LayoutText* layout = args.layouts.size == 0 ? nullptr : args.layouts.data[i];
    ArrayTypePointer type = array_type(shape.type, shape.dims, layout);
    auto cell = std::make_shared<Cell>(type);
    cell->value = empty_cell(type)->value;
    manager->parts.push_back({std::move(type), std::move(cell)});
  }
  args.manager = manager.release();
}
void transfer_manager_destroy(TransferManagerDestroyArgs& args) { delete args.manager; }
void transfer_manager_transfer_data(TransferManagerTransferDataArgs& args) {
  TransferManager::Part& part = args.manager->part(args.index);
  auto whole = static_cast<int64_t>(part.type->bytes());
  require(args.offset >= 0 && args.bytes >= 0 && args.offset <= whole &&
              args.bytes <= whole - args.offset,
          "PJRT_AsyncHostToDeviceTransferManager_TransferData: expected a part of ", whole,
          " bytes, got ", args.bytes, " from ", args.offset);
  if (args.bytes != 0) {
    std::memcpy(static_cast<char*>(part.cell->data()) + args.offset, args.data,
                static_cast<size_t>(args.bytes));
  }
  if (args.is_last) part.cell->completion.set();
  args.done = ready_event();
}
void transfer_manager_transfer_literal(TransferManagerTransferLiteralArgs& args) {
  TransferManager::Part& part = args.manager->part(args.index);
  ArrayTypePointer from = array_type(args.shape);
  require(from->shape().compatible(part.type->shape()),
          "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral: expected ",
          part.type->shape().to_string(), ", got ", from->shape().to_string());
  if (part.type->bytes() != 0) {
    copy_strided(from->shape().dimensions(), from->element_bytes(), args.data, from->byte_strides(),
                 part.cell->data(), part.type->byte_strides());
  }
  part.cell->completion.set();
  args.done = ready_event();
}
void transfer_manager_retrieve_buffer(TransferManagerRetrieveBufferArgs& args) {
  const TransferManager::Part& part = args.manager->part(args.index);
  args.buffer = new Buffer(args.manager->memory, part.type, part.cell);
}
void transfer_manager_device(TransferManagerDeviceArgs& args) {
  args.device = args.manager->memory->device;
}
void transfer_manager_buffer_count(TransferManagerBufferCountArgs& args) {
  args.count = args.manager->parts.size();
}
void transfer_manager_buffer_size(TransferManagerBufferSizeArgs& args) {
  args.bytes = args.manager->part(args.index).type->bytes();
}
void transfer_manager_set_buffer_error(TransferManagerSetBufferErrorArgs& args) {
  args.manager->part(args.index).cell->completion.set({args.code, text_of(args.message)});
}
void transfer_manager_add_metadata(TransferManagerAddMetadataArgs& /*args*/) {}

// ---- Streams of send and recv ------------------------------------------------------------------

// Programs take what they receive from queues; no stream is made, so none is ever passed in.
namespace {
[[noreturn]] void fail_stream() {
  fail(Code::Unimplemented, "lamella: streams of send and recv callbacks are not supported");
}
}  // namespace
void copy_to_device_stream_destroy(CopyToDeviceStreamDestroyArgs& /*args*/) {}
void copy_to_device_stream_add_chunk(CopyToDeviceStreamAddChunkArgs& /*args*/) { fail_stream(); }
void copy_to_device_stream_total_bytes(CopyToDeviceStreamBytesArgs& /*args*/) { fail_stream(); }
void copy_to_device_stream_granule_size(CopyToDeviceStreamBytesArgs& /*args*/) { fail_stream(); }
void copy_to_device_stream_current_bytes(CopyToDeviceStreamBytesArgs& /*args*/) { fail_stream(); }

}  // namespace lamella::pjrt
