/* The C ABI of backends: the functions that a library registers to add a type of device, and
 * queries about the registered devices. Pure C, beside abi.h and under its rules.
 *
 * Note [A backend in parts]
 *   lamella_register_backend() may be called more than once for a device type, by parts that differ
 *   in what they give: one the memory, another the devices and streams. A part leaves at NULL what
 *   it does not give. Of two parts that give the same, the second is refused. A backend needs
 *   `allocate` and `deallocate` for anything at all; `copy` makes transfers, printing and the
 *   fallback on the CPU work; without `device_count` there is one device; without streams all work
 *   is taken to be done when a function returns.
 *
 * Note [The end of a backend]
 *   lamella_unregister_backend() returns when no thread is inside one of the part's functions, and
 *   none is called afterwards, so that its library can be unloaded. Memory of tensors that are
 *   still alive is not freed then. The name of the device type stays.
 *
 * Devices are numbered from 0. Streams are numbers of the backend's choice; 0 is a device's default
 * stream. A stream runs its work in order; streams run beside each other. All functions may be
 * called from any thread. What is current is current for the calling thread.
 */
#ifndef LAMELLA_ABI_BACKEND_H_
#define LAMELLA_ABI_BACKEND_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A place in memory: on the CPU (type 0) or on a device. */
typedef struct lamella_place {
  void* data;
  uint8_t device_type; /* numbering of lamella/abi/dispatch_keys.def */
  int8_t device_index;
} lamella_place;

/* What a backend, or a part of one, gives. Functions report failures by lamella_fail(). */
typedef struct lamella_backend {
  uint32_t bytes;      /* sizeof(lamella_backend), as compiled */
  uint8_t device_type; /* which type of device the backend serves; not the CPU or Meta */
  const char* name;    /* what its devices are called, "sim"; NULL: what they are called now */
  void* context;       /* handed to every function */

  /* ---- Memory: at least `bytes` (> 0) bytes on a device, and their end. *block comes back. */
  lamella_status (*allocate)(void* context, size_t bytes, int8_t device, void** data, void** block);
  void (*deallocate)(void* context, void* data, size_t bytes, int8_t device, void* block);
  /* Copies bytes between two places, of which one is on this backend and the other as well or on
   * the CPU; after the work that is on the current stream of the devices concerned. Unless
   * `non_blocking`, a copy from or to the CPU is done when this returns. */
  lamella_status (*copy)(void* context, lamella_place to, lamella_place from, size_t bytes,
                         int32_t non_blocking);

  /* ---- Devices */
  int32_t (*device_count)(void* context);
  int8_t (*current_device)(void* context);
  lamella_status (*set_device)(void* context, int8_t device);

  /* ---- Streams */
  int64_t (*current_stream)(void* context, int8_t device);
  lamella_status (*set_stream)(void* context, int8_t device, int64_t stream);
  lamella_status (*make_stream)(void* context, int8_t device, int32_t priority, int64_t* stream);
  lamella_status (*query_stream)(void* context, int8_t device, int64_t stream, int32_t* idle);
  lamella_status (*synchronize_stream)(void* context, int8_t device, int64_t stream);
  lamella_status (*synchronize_device)(void* context, int8_t device);

  /* ---- Events: marks in streams. An event that was never recorded is done. */
  lamella_status (*make_event)(void* context, int8_t device, int32_t timing, void** event);
  void (*free_event)(void* context, void* event);
  lamella_status (*record_event)(void* context, void* event, int8_t device, int64_t stream);
  /* The stream goes on when the event is done. */
  lamella_status (*wait_event)(void* context, void* event, int8_t device, int64_t stream);
  lamella_status (*query_event)(void* context, void* event, int32_t* done);
  lamella_status (*synchronize_event)(void* context, void* event);
  /* Milliseconds from one done event to another; both with timing. */
  lamella_status (*elapsed_time)(void* context, void* start, void* end, double* milliseconds);
} lamella_backend;

typedef struct lamella_backend_part lamella_backend_part;

/* Copies *backend (the name as well). Fails for a type that cannot have a backend, for a name that
 * is taken or is none, and where another part gives the same. */
LAMELLA_ABI_API lamella_status lamella_register_backend(
    const lamella_backend* backend, lamella_backend_part** part) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_unregister_backend(lamella_backend_part* part) LAMELLA_ABI_NOEXCEPT;

/* ---- Names of device types --------------------------------------------------------------------
 */

/* "cpu", "sim"; with lower_case = 0 "CPU", "SIM". "unknown" for a number that is none. Lives on. */
LAMELLA_ABI_API const char* lamella_device_type_name(uint8_t type,
                                                     int32_t lower_case) LAMELLA_ABI_NOEXCEPT;
/* The device type of a name in lower case, -1 if there is none. */
LAMELLA_ABI_API int32_t lamella_device_type_from_name(const char* name,
                                                      size_t size) LAMELLA_ABI_NOEXCEPT;
/* Names one of the types PrivateUse1 to 16; once, though again with the same name is harmless. */
LAMELLA_ABI_API lamella_status lamella_rename_device_type(uint8_t type,
                                                          const char* name) LAMELLA_ABI_NOEXCEPT;

/* ---- Devices: of any type. The CPU, Meta and types without a backend have one, always current. */

/* Whether a part is registered for the type. */
LAMELLA_ABI_API int32_t lamella_has_backend(uint8_t type) LAMELLA_ABI_NOEXCEPT;
/* 0 for a type without a backend. */
LAMELLA_ABI_API int32_t lamella_device_count(uint8_t type) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API int8_t lamella_device_current(uint8_t type) LAMELLA_ABI_NOEXCEPT;
/* Makes a device current; *former (may be NULL) is the one before. */
LAMELLA_ABI_API lamella_status lamella_device_exchange(uint8_t type, int8_t device,
                                                       int8_t* former) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_device_synchronize(uint8_t type,
                                                          int8_t device) LAMELLA_ABI_NOEXCEPT;
/* Copies bytes between any two places; between two backends through the CPU. */
LAMELLA_ABI_API lamella_status lamella_device_copy(lamella_place to, lamella_place from,
                                                   size_t bytes,
                                                   int32_t non_blocking) LAMELLA_ABI_NOEXCEPT;

/* ---- Streams and events -----------------------------------------------------------------------
 */

LAMELLA_ABI_API int64_t lamella_stream_current(uint8_t type, int8_t device) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_stream_exchange(uint8_t type, int8_t device, int64_t stream,
                                                       int64_t* former) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_stream_make(uint8_t type, int8_t device, int32_t priority,
                                                   int64_t* stream) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_stream_query(uint8_t type, int8_t device, int64_t stream,
                                                    int32_t* idle) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_stream_synchronize(uint8_t type, int8_t device,
                                                          int64_t stream) LAMELLA_ABI_NOEXCEPT;

LAMELLA_ABI_API lamella_status lamella_event_make(uint8_t type, int8_t device, int32_t timing,
                                                  void** event) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_event_free(uint8_t type, void* event) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_event_record(uint8_t type, void* event, int8_t device,
                                                    int64_t stream) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_event_wait(uint8_t type, void* event, int8_t device,
                                                  int64_t stream) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_event_query(uint8_t type, void* event,
                                                   int32_t* done) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_event_synchronize(uint8_t type,
                                                         void* event) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_event_elapsed(uint8_t type, void* start, void* end,
                                                     double* milliseconds) LAMELLA_ABI_NOEXCEPT;

/* ---- Generators -------------------------------------------------------------------------------
 */

/* A new generator of a device. Its state is kept on the host: a seed and an offset of Philox for
 * CUDA, a Mersenne twister's for other devices. */
LAMELLA_ABI_API lamella_status lamella_generator_make(
    uint8_t type, int8_t device, uint64_t seed, lamella_object** generator) LAMELLA_ABI_NOEXCEPT;
/* The one that operators on the device use when they are given none; the same each time. Owned. */
LAMELLA_ABI_API lamella_status lamella_generator_default(
    uint8_t type, int8_t device, lamella_object** generator) LAMELLA_ABI_NOEXCEPT;
/* What a generator has. Operators hold the lock while they draw, and callers of the functions below
 * do, except for lamella_generator_draw(), which takes it. These functions fail for generators of a
 * class of another library. */
typedef struct lamella_generator_parts {
  void* mutex;                /* std::mutex* */
  lamella_object** companion; /* kept with the generator for its callers; NULL at first. Atomic */
  uint64_t seed;              /* as given last */
  uint8_t device_type;
  int8_t device_index;
} lamella_generator_parts;
LAMELLA_ABI_API lamella_status lamella_generator_inspect(
    lamella_object* generator, lamella_generator_parts* parts) LAMELLA_ABI_NOEXCEPT;
/* *size is the size of `bytes` (which may be NULL), and becomes that of the whole state. */
LAMELLA_ABI_API lamella_status lamella_generator_state(lamella_object* generator, uint8_t* bytes,
                                                       size_t* size) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_generator_set_state(lamella_object* generator,
                                                           const uint8_t* bytes,
                                                           size_t size) LAMELLA_ABI_NOEXCEPT;
/* Draws `count` words of 32 random bits from a generator of the CPU. */
LAMELLA_ABI_API lamella_status lamella_generator_words(lamella_object* generator, uint32_t* words,
                                                       size_t count) LAMELLA_ABI_NOEXCEPT;
/* Begins the stream of a seed. */
LAMELLA_ABI_API lamella_status lamella_generator_seed(lamella_object* generator,
                                                      uint64_t seed) LAMELLA_ABI_NOEXCEPT;
/* Draws `count` words of 64 random bits, for a kernel's own seeds. */
LAMELLA_ABI_API lamella_status lamella_generator_draw(lamella_object* generator, uint64_t* words,
                                                      size_t count) LAMELLA_ABI_NOEXCEPT;

/* ---- Fallback ---------------------------------------------------------------------------------
 */

/* A boxed kernel for a backend's key: runs the operator on the CPU, with copies of the memory that
 * its arguments stand over, and brings results and writes back. Note [Falling back to the CPU] of
 * lamella/layers/backend/cpu_fallback.cpp says what is kept. */
LAMELLA_ABI_API lamella_status lamella_cpu_fallback(const lamella_kernel* kernel,
                                                    const lamella_operator* op, uint64_t key_set,
                                                    const lamella_value* arguments,
                                                    lamella_value* returns) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_ABI_BACKEND_H_ */
