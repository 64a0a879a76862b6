// The functions of liblamella_cuda.so that lamella.cuda calls. They return a status; the text of an
// error is lamella_error_text().
#include <cstring>
#include <unordered_map>

#include "lamella/core/cuda_extension.h"
#include "lamella/core/cuda_stream_handle.h"
#include "lamella/cuda/allocator.h"
#include "lamella/cuda/backend.h"
#include "lamella/cuda/families.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/launch.h"
#include "lamella/cuda/libraries.h"
#include "lamella/cuda/streams.h"

namespace {
using namespace lamella;
using namespace lamella::cuda;

void check_index(const char* what, int device) {
  LAMELLA_CHECK(device >= 0 && device < Driver::device_count(), what,
                ": expected a device of cuda from 0 to ", Driver::device_count() - 1, ", got ",
                device);
}
void write_text(const std::string& lines, char* text, size_t bytes, size_t* needed) {
  *needed = lines.size() + 1;
  if (bytes >= *needed) std::memcpy(text, lines.c_str(), *needed);
}

// The blocks of memory that extensions hold, by address.
struct RawMemory {
  std::mutex mutex;
  std::unordered_map<void*, void*> blocks;
};
RawMemory& raw_memory = *new RawMemory();
}  // namespace

// `values`: current, peak, increased and decreased, each of all, large and small blocks, for every
// StatisticName; then retries, failures, and the driver's allocations and frees.
LAMELLA_CUDA_API lamella_cuda_statistics(int device, int64_t* values) {
  return detail::guarded([&] {
    check_index("memory_stats", device);
    MemoryStatistics all = memory_statistics(device);
    for (const Statistic& one : all.of) {
      for (const auto* row : {one.current, one.peak, one.increased, one.decreased}) {
        values = std::copy(row, row + 3, values);
      }
    }
    for (int64_t n : {all.retries, all.failures, all.driver_allocations, all.driver_frees}) {
      *values++ = n;
    }
  });
}
LAMELLA_CUDA_API lamella_cuda_reset(int device, int accumulated) {
  return detail::guarded([&] {
    check_index(accumulated != 0 ? "reset_accumulated_memory_stats" : "reset_peak_memory_stats",
                device);
    accumulated != 0 ? reset_accumulated(device) : reset_peaks(device);
  });
}
LAMELLA_CUDA_API lamella_cuda_empty_cache() {
  return detail::guarded([&] {
    Driver::check_process();
    for (int i = 0; i < Driver::device_count(); ++i) empty_cache(i);
    if (pinned_statistics().blocks != 0) empty_pinned_cache();
  });
}
LAMELLA_CUDA_API lamella_cuda_set_fraction(int device, double fraction) {
  return detail::guarded([&] {
    check_index("set_per_process_memory_fraction", device);
    set_memory_fraction(device, fraction);
  });
}
LAMELLA_CUDA_API lamella_cuda_memory_info(int device, int64_t* free_and_total) {
  return detail::guarded([&] {
    check_index("mem_get_info", device);
    size_t free = 0, total = 0;
    memory_info(device, &free, &total);
    free_and_total[0] = static_cast<int64_t>(free);
    free_and_total[1] = static_cast<int64_t>(total);
  });
}
LAMELLA_CUDA_API lamella_cuda_pinned_statistics(int64_t* used_kept_blocks) {
  return detail::guarded([&] {
    PinnedStatistics all = pinned_statistics();
    used_kept_blocks[0] = all.used_bytes;
    used_kept_blocks[1] = all.kept_bytes;
    used_kept_blocks[2] = all.blocks;
  });
}
LAMELLA_CUDA_API lamella_cuda_allocate(int device, int64_t stream, size_t bytes, void** data) {
  return detail::guarded([&] {
    check_index("raw_alloc", device);
    *data = nullptr;
    if (bytes == 0) return;
    void* block = nullptr;
    void* made = allocate(bytes, device, stream, &block);
    std::lock_guard lock(raw_memory.mutex);
    raw_memory.blocks[made] = block;
    *data = made;
  });
}
LAMELLA_CUDA_API lamella_cuda_free(void* data) {
  return detail::guarded([&] {
    if (data == nullptr) return;
    std::lock_guard lock(raw_memory.mutex);
    auto found = raw_memory.blocks.find(data);
    LAMELLA_CHECK(
        found != raw_memory.blocks.end(),
        "raw_delete: expected memory of raw_alloc that is not freed yet, got other memory");
    deallocate(found->second);
    raw_memory.blocks.erase(found);
  });
}
LAMELLA_CUDA_API lamella_cuda_record_stream(void* data, int device, int64_t stream) {
  return detail::guarded([&] {
    check_index("record_stream", device);
    if (data != nullptr) record_stream(data, device, stream);
  });
}
// `name` has 256 bytes.
LAMELLA_CUDA_API lamella_cuda_properties(int device, char* name, int64_t* values) {
  return detail::guarded([&] {
    check_index("get_device_properties", device);
    const DeviceFacts& f = Driver::facts(device);
    name[f.name.copy(name, 255)] = '\0';
    const int64_t all[] = {static_cast<int64_t>(f.total_memory),
                           f.major,
                           f.minor,
                           f.multiprocessors,
                           f.warp_size,
                           f.threads_of_block,
                           f.threads_of_multiprocessor,
                           f.registers_of_multiprocessor,
                           f.shared_of_block,
                           f.shared_of_multiprocessor,
                           f.l2_bytes,
                           f.integrated,
                           f.multi_gpu_board};
    std::copy(std::begin(all), std::end(all), values);
  });
}
LAMELLA_CUDA_API lamella_cuda_can_access_peer(int device, int peer, int* can) {
  return detail::guarded([&] {
    check_index("can_device_access_peer", device);
    check_index("can_device_access_peer", peer);
    Driver::check_process();
    *can = 0;
    if (device != peer) CUDA_CALL(cuDeviceCanAccessPeer, can, device, peer);
  });
}
LAMELLA_CUDA_API lamella_cuda_enter(int device) {
  return detail::guarded([&] {
    check_index("set_device", device);
    Driver::enter(device);
  });
}
LAMELLA_CUDA_API lamella_cuda_launched(const char* name) {
  return detail::guarded([&] {
    const int device = current().device;
    Driver::note_launch(device, name);
    if (Driver::is_blocking()) {
      ContextGuard guard(device);
      after_launch(device, handle_of(device, current().streams[device]));
    }
  });
}
LAMELLA_CUDA_API lamella_cuda_stream_handle(int device, int64_t stream, int64_t* handle) {
  return detail::guarded([&] {
    check_index("Stream", device);
    *handle = reinterpret_cast<int64_t>(handle_of(device, stream));
  });
}
LAMELLA_CUDA_API lamella_cuda_external_stream(int device, int64_t handle, int64_t* stream) {
  return detail::guarded([&] {
    check_index("ExternalStream", device);
    *stream = know_stream(device, reinterpret_cast<StreamHandle>(handle));
  });
}
LAMELLA_CUDA_API lamella_cuda_priority_range(int device, int* least, int* greatest) {
  return detail::guarded([&] {
    check_index("Stream", device);
    priority_range(device, least, greatest);
  });
}
// A tensor on the CPU in pinned memory.
LAMELLA_CUDA_API lamella_cuda_is_pinned(const void* data, int* pinned) {
  return detail::guarded([&] { *pinned = is_pinned(data) ? 1 : 0; });
}
LAMELLA_CUDA_API lamella_cuda_driver_version(int* version) {
  return detail::guarded([&] { *version = Driver::version(); });
}
// Whether the process was forked after its parent's first use; whether a context was made.
LAMELLA_CUDA_API lamella_cuda_state(int* forked, int* used) {
  *forked = Driver::is_forked() ? 1 : 0;
  *used = 0;
  for (int i = 0; i < Driver::device_count(); ++i) *used |= Driver::has_context(i) ? 1 : 0;
  return LAMELLA_OK;
}
// Each writes at most `bytes` of its lines, "operator count" or library_lines(), with their end;
// *needed has their size.
LAMELLA_CUDA_API lamella_cuda_fallbacks(char* text, size_t bytes, size_t* needed) {
  return detail::guarded([&] { write_text(fallback_lines(), text, bytes, needed); });
}
LAMELLA_CUDA_API lamella_cuda_libraries(char* text, size_t bytes, size_t* needed) {
  return detail::guarded([&] { write_text(library_lines(), text, bytes, needed); });
}
// Whether float32 may be rounded to TF32: `of` is 0 for products, 1 for convolutions.
LAMELLA_CUDA_API lamella_cuda_allow_tf32(int of, int allowed) {
  return detail::guarded([&] { allow_tf32(static_cast<Tf32>(of), allowed != 0); });
}
LAMELLA_CUDA_API lamella_cuda_reset_fallbacks() {
  return detail::guarded([] { reset_fallbacks(); });
}
// Whether results must not vary from run to run: Note [Sums in order].
LAMELLA_CUDA_API lamella_cuda_set_deterministic(int deterministic) {
  return detail::guarded([&] { set_deterministic(deterministic != 0); });
}

namespace {
lamella_status load_kernel_of(int device, const char* image, const char* name, void** kernel) {
  return detail::guarded([&] {
    check_index("program", device);
    ContextGuard guard(device);
    *kernel = load_kernel(device, image, name);
  });
}
lamella_status launch_of_program(int device, void* kernel, const char* name, const void* parameters,
                                 unsigned blocks, unsigned threads) {
  return detail::guarded([&] {
    ContextGuard guard(device);
    launch(device, kernel, name, parameters, {{blocks, 1, 1}, {threads, 1, 1}});
  });
}
void count_step(const char* name) { count_fallback(name); }
}  // namespace

// ---- Captured graphs ----

LAMELLA_CUDA_API lamella_cuda_is_capturing(int device, int64_t stream, int* captured) {
  return detail::guarded([&] {
    check_index("is_current_stream_capturing", device);
    *captured = is_capturing(device, stream) ? 1 : 0;
  });
}
LAMELLA_CUDA_API lamella_cuda_graph_pool(int64_t* pool) {
  return detail::guarded([&] { *pool = make_pool(); });
}
LAMELLA_CUDA_API lamella_cuda_graph_make(void** graph) {
  return detail::guarded([&] { *graph = new Graph(); });
}
LAMELLA_CUDA_API lamella_cuda_graph_free(void* graph) {
  return detail::guarded([&] { delete static_cast<Graph*>(graph); });
}
LAMELLA_CUDA_API lamella_cuda_graph_begin(void* graph, int64_t pool, int mode) {
  return detail::guarded([&] { static_cast<Graph*>(graph)->begin(pool, mode); });
}
LAMELLA_CUDA_API lamella_cuda_graph_end(void* graph, int64_t* nodes) {
  return detail::guarded([&] { *nodes = static_cast<int64_t>(static_cast<Graph*>(graph)->end()); });
}
LAMELLA_CUDA_API lamella_cuda_graph_abandon(void* graph) {
  return detail::guarded([&] { static_cast<Graph*>(graph)->abandon(); });
}
LAMELLA_CUDA_API lamella_cuda_graph_replay(void* graph) {
  return detail::guarded([&] { static_cast<Graph*>(graph)->replay(); });
}
LAMELLA_CUDA_API lamella_cuda_graph_reset(void* graph) {
  return detail::guarded([&] { static_cast<Graph*>(graph)->reset(); });
}
LAMELLA_CUDA_API lamella_cuda_graph_pool_of(void* graph, int64_t* pool) {
  return detail::guarded([&] { *pool = static_cast<Graph*>(graph)->pool(); });
}

extern "C" __attribute__((visibility("default"))) const CudaTable lamella_cuda_table = {
    lamella_cuda_enter,
    lamella_cuda_stream_handle,
    count_step,
    load_kernel_of,
    launch_of_program,
    {lamella_cuda_graph_make, lamella_cuda_graph_free, lamella_cuda_graph_begin,
     lamella_cuda_graph_end, lamella_cuda_graph_abandon, lamella_cuda_graph_replay,
     lamella_cuda_is_capturing}};
