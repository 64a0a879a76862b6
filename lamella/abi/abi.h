/* The frozen C ABI of Lamella: layouts, calling conventions and functions that separately built
 * operator libraries rely on. Pure C; includes nothing of Lamella. The public C++ headers are
 * inline over it, so that an extension has no undefined C++ symbol of Lamella's.
 *
 * Note [The ABI borrows and owns]
 *   Arguments are borrowed: a callee may read them until it returns and never releases them. It
 *   retains what it keeps. Returns are owned: the caller releases them. Errors are a status; the
 *   text is kept per thread until the next failing call. No exception crosses this boundary.
 *
 * Note [ABI versions]
 *   LAMELLA_ABI_MAJOR changes when something below changes its meaning or place; a library built
 *   for another major is refused at load time by lamella_handshake(), in one sentence.
 *   LAMELLA_ABI_MINOR grows when functions, tags or reserved bits are added. A library built for a
 *   higher minor than the one running is refused as well; a lower one is served. Fields are never
 *   moved; new ones go behind the existing ones, where only Lamella itself looks.
 */
#ifndef LAMELLA_ABI_ABI_H_
#define LAMELLA_ABI_ABI_H_

#include <stddef.h>
#include <stdint.h>

#define LAMELLA_ABI_MAJOR 1
#define LAMELLA_ABI_MINOR 1

#ifdef __cplusplus
extern "C" {
#define LAMELLA_ABI_NOEXCEPT noexcept
#else
#define LAMELLA_ABI_NOEXCEPT
#endif
#define LAMELLA_ABI_API __attribute__((visibility("default")))

/* ---- Errors -------------------------------------------------------------------------------- */

/* 0 is success; anything else is the kind of the failure. */
typedef int32_t lamella_status;
enum {
  LAMELLA_OK = 0,
  LAMELLA_ERROR = 1,       /* a mistake of the caller: C++ lamella::Error, Python RuntimeError */
  LAMELLA_INDEX_ERROR = 2, /* Python IndexError */
  LAMELLA_VALUE_ERROR = 3, /* Python ValueError */
  LAMELLA_TYPE_ERROR = 4,  /* Python TypeError */
  LAMELLA_NOT_IMPLEMENTED = 5, /* no kernel: Python NotImplementedError */
  LAMELLA_OUT_OF_MEMORY = 6,   /* Python MemoryError */
  LAMELLA_INTERNAL_ERROR = 7,  /* a bug of Lamella's own */
  LAMELLA_FOREIGN_ERROR = 8,   /* an exception of another language, kept there (a Python error) */
  LAMELLA_LINALG_ERROR = 9     /* a numerical failure: Python lamella.linalg.LinAlgError */
};

/* Sets this thread's error text (copied) and returns `kind`, so a failing function can write
 * `return lamella_fail(LAMELLA_ERROR, text, size);`. */
LAMELLA_ABI_API lamella_status lamella_fail(lamella_status kind, const char* text,
                                            size_t size) LAMELLA_ABI_NOEXCEPT;
/* This thread's last error text; valid until the next failure on this thread. Never NULL. */
LAMELLA_ABI_API const char* lamella_error_text(void) LAMELLA_ABI_NOEXCEPT;

/* ---- Tensors -------------------------------------------------------------------------------- */

typedef struct lamella_storage lamella_storage;

/* The visible part of a tensor. Readable by any holder of a reference; written by Lamella only.
 * `references` and `weak_references` are atomic. An undefined tensor is a null pointer. */
typedef struct lamella_tensor {
  uint32_t references;
  uint32_t weak_references;
  uint64_t key_set;         /* dispatch keys, see lamella_operator */
  void* data;               /* address of the first element, NULL where there is none */
  int64_t numel;            /* number of elements */
  const int64_t* sizes;     /* ndim entries */
  const int64_t* strides;   /* ndim entries, counted in elements */
  int64_t storage_offset;   /* counted in elements */
  lamella_storage* storage; /* owned by the tensor; NULL where there is none */
  int32_t ndim;
  uint8_t scalar_type; /* numbering of lamella/core/scalar_type.def */
  uint8_t device_type; /* numbering of lamella/core/device.h */
  int8_t device_index; /* -1: the current one */
  uint8_t layout;      /* 0: strided */
  uint32_t flags;      /* LAMELLA_TENSOR_* */
  uint32_t reserved;   /* 0: an address in its memory that is given out is to be told */
  void* python_object; /* owned by the Python layer */
  void* autograd;      /* owned by the autograd layer */
} lamella_tensor;

enum {
  LAMELLA_TENSOR_CONTIGUOUS = 1u << 0,
  LAMELLA_TENSOR_CHANNELS_LAST = 1u << 1,    /* contiguous in channels_last */
  LAMELLA_TENSOR_CHANNELS_LAST_3D = 1u << 2, /* contiguous in channels_last_3d */
  LAMELLA_TENSOR_DENSE = 1u << 3,            /* non-overlapping and dense */
  LAMELLA_TENSOR_WRAPPED_NUMBER = 1u << 4,   /* a Python number: weak in type promotion */
  LAMELLA_TENSOR_CONJ = 1u << 5,
  LAMELLA_TENSOR_NEG = 1u << 6,
  LAMELLA_TENSOR_REQUIRES_GRAD = 1u << 7,
  LAMELLA_TENSOR_INFERENCE = 1u << 8,
  LAMELLA_TENSOR_LIKES_CHANNELS_LAST = 1u << 9, /* strides are ordered as channels_last */
  LAMELLA_TENSOR_TANGENT = 1u << 10,            /* carries a forward-mode tangent */
  LAMELLA_TENSOR_NO_GRAD_VIEW = 1u << 11, /* of a tensor with gradients, made without recording */
  LAMELLA_TENSOR_WRAPPER = 1u << 12 /* has no memory; its keys say which layer it belongs to */
};

/* Ends a tensor whose last strong reference was given up. Called by inline release code only. */
LAMELLA_ABI_API void lamella_tensor_destroy(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;

/* A tensor over memory of the caller's. `deleter(context)` runs once when the last alias of the
 * storage is gone (also if this call fails after it took ownership: it then returns an error and
 * has run the deleter). strides may be NULL (contiguous). */
LAMELLA_ABI_API lamella_status lamella_tensor_from_blob(
    void* data, int32_t ndim, const int64_t* sizes, const int64_t* strides, uint8_t scalar_type,
    uint8_t device_type, int8_t device_index, void (*deleter)(void*), void* context,
    lamella_tensor** result) LAMELLA_ABI_NOEXCEPT;
/* A fresh, uninitialised, contiguous tensor from the device's allocator. */
LAMELLA_ABI_API lamella_status lamella_tensor_empty(int32_t ndim, const int64_t* sizes,
                                                    uint8_t scalar_type, uint8_t device_type,
                                                    int8_t device_index,
                                                    lamella_tensor** result) LAMELLA_ABI_NOEXCEPT;
/* Another tensor over the same storage. */
LAMELLA_ABI_API lamella_status lamella_tensor_as_strided(
    lamella_tensor* tensor, int32_t ndim, const int64_t* sizes, const int64_t* strides,
    int64_t storage_offset, lamella_tensor** result) LAMELLA_ABI_NOEXCEPT;
/* Writes so far to the storage, counted over all aliases. */
LAMELLA_ABI_API uint32_t lamella_tensor_version(const lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_tensor_bump_version(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;
/* Tells that the memory of the tensor may be written at any time from now on through an address,
 * without a call of lamella_tensor_bump_version(). Lamella keeps what it worked out of the elements
 * of a tensor for as long as no write is counted, and keeps nothing of such memory. Kernels do not
 * need this for arguments that the schema of their operator says are written, nor for reading. Only
 * the first call for a tensor does anything; `reserved` is then not 0. */
LAMELLA_ABI_API void lamella_tensor_expose(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API size_t lamella_tensor_storage_bytes(const lamella_tensor* tensor)
    LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void* lamella_tensor_storage_data(const lamella_tensor* tensor)
    LAMELLA_ABI_NOEXCEPT;
/* Marks a 0-dimensional tensor as a number of the host language. */
LAMELLA_ABI_API void lamella_tensor_set_wrapped_number(lamella_tensor* tensor,
                                                       int32_t wrapped) LAMELLA_ABI_NOEXCEPT;
/* Turns a weak reference into a strong one; returns 0 if the tensor is gone. */
LAMELLA_ABI_API int32_t lamella_tensor_lock(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_tensor_release_weak(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;

/* ---- Values --------------------------------------------------------------------------------- */

/* One argument or return of a boxed call: 16 bytes. Whether a value is borrowed or owned is known
 * from where it stands (see Note [The ABI borrows and owns]). */
typedef struct lamella_value {
  union {
    int64_t i; /* INT, BOOL (0 or 1), DEVICE (type in the low byte, index in the next) */
    double d;
    lamella_tensor* tensor; /* NULL: undefined */
    void* pointer;          /* lists, strings: first element; GENERATOR, OBJECT: the object */
  } as;
  uint32_t size; /* number of elements of a list or bytes of a string */
  uint8_t tag;
  uint8_t flags; /* LAMELLA_VALUE_BLOCK */
  uint16_t reserved;
} lamella_value;

enum {
  LAMELLA_NONE = 0,
  LAMELLA_TENSOR = 1,
  LAMELLA_INT = 2, /* also ScalarType, Layout, MemoryFormat */
  LAMELLA_DOUBLE = 3,
  LAMELLA_BOOL = 4,
  LAMELLA_COMPLEX = 5, /* as.pointer: two doubles */
  LAMELLA_STRING = 6,
  LAMELLA_DEVICE = 7,
  LAMELLA_INT_LIST = 8,     /* int64_t */
  LAMELLA_DOUBLE_LIST = 9,  /* double */
  LAMELLA_BOOL_LIST = 10,   /* one byte each */
  LAMELLA_TENSOR_LIST = 11, /* lamella_tensor*, entries may be NULL in Tensor?[] */
  LAMELLA_LIST = 12,        /* lamella_value */
  LAMELLA_TUPLE = 13,       /* lamella_value */
  LAMELLA_DICT = 14,        /* lamella_value, keys and values in turn */
  LAMELLA_GENERATOR = 15,   /* lamella_object* */
  LAMELLA_OBJECT = 16       /* lamella_object* */
};

/* The pointer of a list, string or complex value has a lamella_block in front of its first
 * element, counts references there and owns its elements. Without the flag it is a span of
 * memory that the value does not own. */
enum { LAMELLA_VALUE_BLOCK = 1 };

typedef struct lamella_block {
  uint32_t references; /* atomic */
  uint32_t tag;        /* of the values that point here */
  uint64_t size;       /* elements */
} lamella_block;

/* A reference-counted object of any library: generators, custom classes. */
typedef struct lamella_object {
  uint32_t references; /* atomic */
  uint32_t reserved;   /* 0, LAMELLA_OBJECT_OF_CLASS or LAMELLA_OBJECT_OF_GENERATOR */
  void (*destroy)(struct lamella_object*);
} lamella_object;

/* `reserved` of an object that begins a lamella_class_object: its class is registered, and
 * `class_name`, "__torch__.torch.classes.ns.Name" in schemas, is the same text for all of its
 * objects and lives as long as the library that registered it. */
enum { LAMELLA_OBJECT_OF_CLASS = 1, LAMELLA_OBJECT_OF_GENERATOR = 2 };
typedef struct lamella_class_object {
  lamella_object object;
  const char* class_name;
} lamella_class_object;
/* `reserved` of an object that begins this, a generator of a class of its own: the keys join those
 * of the arguments of a call, so that it reaches kernels that know the class. */
typedef struct lamella_generator_object {
  lamella_object object;
  uint64_t key_set;
} lamella_generator_object;

/* A block for `size` elements of `tag`, one reference, elements zeroed; *value is set to own it. */
LAMELLA_ABI_API lamella_status lamella_value_allocate(uint8_t tag, size_t size,
                                                      lamella_value* value) LAMELLA_ABI_NOEXCEPT;
/* *copy becomes an owned value equal to *value; spans are copied into blocks. */
LAMELLA_ABI_API lamella_status lamella_value_copy(const lamella_value* value,
                                                  lamella_value* copy) LAMELLA_ABI_NOEXCEPT;
/* Gives up an owned value of any tag and leaves NONE. */
LAMELLA_ABI_API void lamella_value_release(lamella_value* value) LAMELLA_ABI_NOEXCEPT;

/* A number of any kind, as the typed convention passes `Scalar`. */
typedef struct lamella_scalar {
  union {
    int64_t i; /* LAMELLA_INT, LAMELLA_BOOL */
    double d;
    double z[2]; /* real, imaginary */
  } as;
  int64_t tag; /* LAMELLA_INT, LAMELLA_DOUBLE, LAMELLA_BOOL or LAMELLA_COMPLEX */
} lamella_scalar;

/* ---- Dispatch -------------------------------------------------------------------------------- */

/* Note [Key sets and slots]
 *   A key set is 64 bits: LAMELLA_BACKEND_BITS backends in the low bits, functionalities above,
 *   a higher bit being a higher priority. Its slot is found from the highest set bit: a
 *   functionality that is not split by backend has one slot; one that is (Dense, Autograd, ...)
 *   has LAMELLA_BACKEND_BITS of them, and the highest backend bit chooses. The tables are
 *   generated from lamella/abi/dispatch_keys.def. Functionality bits that a header does not
 *   know are served from their single slot, so that an older library keeps working. */
#define LAMELLA_BACKEND_BITS 28
#define LAMELLA_FUNCTIONALITY_BITS 36
#define LAMELLA_SPLIT_FUNCTIONALITIES 8
/* Slot 0 serves the empty set, slots 1 to 36 the functionalities, the rest the split ones. */
#define LAMELLA_SLOTS \
  (1 + LAMELLA_FUNCTIONALITY_BITS + LAMELLA_SPLIT_FUNCTIONALITIES * LAMELLA_BACKEND_BITS)

typedef struct lamella_operator lamella_operator;
typedef struct lamella_kernel lamella_kernel;

/* A boxed kernel: reads op->argument_count values, writes op->return_count owned ones. On failure
 * it leaves nothing owned in them, and the caller does not read them. */
typedef lamella_status (*lamella_boxed_function)(const lamella_kernel* kernel,
                                                 const lamella_operator* op, uint64_t key_set,
                                                 const lamella_value* arguments,
                                                 lamella_value* returns);
/* A typed kernel is called as
 *   lamella_status f(const lamella_kernel*, uint64_t key_set, arguments..., result*)
 * with the C representation of each schema type that lamella/dispatch/abi_types.h lists. */
typedef void (*lamella_typed_function)(void);

struct lamella_kernel {
  lamella_typed_function typed; /* NULL: boxed only */
  lamella_boxed_function boxed; /* never NULL */
  void* context;                /* the kernel's own: a functor, a function pointer, or NULL */
  /* Lamella's own fields follow. */
};

struct lamella_operator {
  uint64_t mask;        /* keys that this operator does not fall through */
  uint64_t always;      /* keys added to every call of it */
  const char* name;     /* "aten::add" */
  const char* overload; /* "Tensor", or "" */
  uint32_t argument_count;
  uint32_t return_count;
  const lamella_kernel* slots[LAMELLA_SLOTS]; /* atomic; acquire loads */
  /* Lamella's own fields follow. */
};

/* The keys that one thread includes in and excludes from every key set. `readers` counts the
 * dispatched calls in flight on this thread (Note [Deregistering while others call]). */
typedef struct lamella_thread_state {
  uint64_t included;
  uint64_t excluded;
  uint32_t readers; /* written by its thread, read by others: atomic, release on the way out */
  uint32_t modes;   /* LAMELLA_MODE_* of autograd.h; written by lamella_set_modes() alone */
} lamella_thread_state;

/* Initial-exec: 24 bytes of the static TLS block, which dlopen has room for. */
extern LAMELLA_ABI_API __thread lamella_thread_state lamella_thread
    __attribute__((tls_model("initial-exec")));

/* Finds an operator by name; *op lives until the process ends, even when it is undefined again.
 * Fails with the near names when there is none. */
LAMELLA_ABI_API lamella_status lamella_find_operator(
    const char* name, const char* overload, const lamella_operator** op) LAMELLA_ABI_NOEXCEPT;
/* The same without an error: NULL if the name is unknown; with `defined`, if it has no schema. */
LAMELLA_ABI_API const lamella_operator* lamella_lookup_operator(
    const char* name, const char* overload, int32_t defined) LAMELLA_ABI_NOEXCEPT;
/* Checks that a C++ signature (see abi_types.h) fits the operator's schema. */
LAMELLA_ABI_API lamella_status lamella_check_signature(const lamella_operator* op,
                                                       const char* signature) LAMELLA_ABI_NOEXCEPT;
/* The operator's schema as text, NULL if it is not defined. Valid until it is undefined. */
LAMELLA_ABI_API const char* lamella_operator_schema(const lamella_operator* op)
    LAMELLA_ABI_NOEXCEPT;
/* One argument (kind 0) or return (kind 1) of the schema: its name and printed type, e.g. "self",
 * "Tensor(a!)". Fails if there is none. */
typedef struct lamella_argument_info {
  const char* name;
  const char* type;
  int32_t kwarg_only;
  int32_t is_write; /* the alias set is written to */
  int32_t is_alias; /* it has an alias set */
  int32_t is_out;
  int32_t has_default;
  int32_t tensor_like; /* Tensor, Tensor?, Tensor[] or Tensor?[] */
} lamella_argument_info;
LAMELLA_ABI_API lamella_status
lamella_operator_argument(const lamella_operator* op, int32_t kind, uint32_t index,
                          lamella_argument_info* info) LAMELLA_ABI_NOEXCEPT;
/* Whether a kernel is registered for the dispatch key itself. */
LAMELLA_ABI_API int32_t lamella_operator_has_kernel(const lamella_operator* op,
                                                    uint16_t key) LAMELLA_ABI_NOEXCEPT;
/* Calls an operator. Checks the counts against the schema; the key set comes from the arguments and
 * the thread. */
LAMELLA_ABI_API lamella_status lamella_call_boxed(const lamella_operator* op,
                                                  const lamella_value* arguments,
                                                  uint32_t argument_count, lamella_value* returns,
                                                  uint32_t return_count) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_redispatch_boxed(
    const lamella_operator* op, uint64_t key_set, const lamella_value* arguments,
    lamella_value* returns) LAMELLA_ABI_NOEXCEPT;
/* The number of a DispatchKey by its name: "CPU", "AutogradCPU", ...; fails for an unknown name. */
LAMELLA_ABI_API lamella_status lamella_dispatch_key_from_name(const char* name,
                                                              uint16_t* key) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API const char* lamella_dispatch_key_name(uint16_t key) LAMELLA_ABI_NOEXCEPT;

/* ---- Registration ---------------------------------------------------------------------------- */

typedef struct lamella_library lamella_library;
typedef struct lamella_registration lamella_registration;

enum { LAMELLA_LIBRARY_DEF = 0, LAMELLA_LIBRARY_IMPL = 1, LAMELLA_LIBRARY_FRAGMENT = 2 };

typedef struct lamella_kernel_description {
  lamella_typed_function typed; /* NULL: boxed only */
  lamella_boxed_function boxed; /* NULL: a fallthrough */
  void* context;
  void (*dispose)(void* context); /* runs once when no call can reach the kernel; may be NULL */
  const char* signature;          /* of `typed`, as abi_types.h spells it; NULL: not known */
  const char* file;               /* where it was registered */
  uint32_t line;
} lamella_kernel_description;

/* Opens a block of registrations for a namespace ("_" for fallbacks). A second DEF for the same
 * namespace fails. key: a DispatchKey, or 0xffff for none. */
LAMELLA_ABI_API lamella_status lamella_library_open(int32_t kind, const char* name_space,
                                                    uint16_t key, const char* file, uint32_t line,
                                                    lamella_library** library) LAMELLA_ABI_NOEXCEPT;
/* The namespace of a block, for as long as it is open. */
LAMELLA_ABI_API const char* lamella_library_namespace(const lamella_library* library)
    LAMELLA_ABI_NOEXCEPT;
/* Undoes all registrations of the block. Returns once no other thread is inside one of its
 * kernels. */
LAMELLA_ABI_API void lamella_library_close(lamella_library* library) LAMELLA_ABI_NOEXCEPT;
/* Defines an operator. `schema`: a full schema, or (with inferred != NULL) a name, for the schema
 * inferred from the signature `inferred`. `tags`: comma-separated names or NULL. */
LAMELLA_ABI_API lamella_status lamella_library_define(lamella_library* library, const char* schema,
                                                      const char* inferred, const char* tags,
                                                      const char* file,
                                                      uint32_t line) LAMELLA_ABI_NOEXCEPT;
/* Registers a kernel. key: as in open; 0xffff takes the block's, or CompositeImplicitAutograd. */
LAMELLA_ABI_API lamella_status
lamella_library_implement(lamella_library* library, const char* name, uint16_t key,
                          const lamella_kernel_description* kernel) LAMELLA_ABI_NOEXCEPT;
/* Registers a boxed kernel for all operators that have none for the key. */
LAMELLA_ABI_API lamella_status lamella_library_fallback(lamella_library* library, uint16_t key,
                                                        const lamella_kernel_description* kernel)
    LAMELLA_ABI_NOEXCEPT;

/* Registers the built-in operators; further calls do nothing. Runs automatically when the shared
 * library is loaded. A program that links Lamella statically must call it, so that the linker keeps
 * the registrations. */
LAMELLA_ABI_API void lamella_register_all(void) LAMELLA_ABI_NOEXCEPT;

/* Called by every separately built library before its first registration, with the versions and
 * sizes it was compiled for. On failure it registers nothing. */
LAMELLA_ABI_API lamella_status lamella_handshake(uint32_t major, uint32_t minor,
                                                 uint32_t tensor_bytes, uint32_t value_bytes,
                                                 uint32_t operator_bytes,
                                                 const char* library) LAMELLA_ABI_NOEXCEPT;
/* A failure inside a library's static initialiser is kept here (it must not throw there) until
 * the code that loaded the library asks for it. */
LAMELLA_ABI_API void lamella_defer_failure(const char* text, const char* file,
                                           uint32_t line) LAMELLA_ABI_NOEXCEPT;
/* Fails with the texts of all failures kept so far, one a line, and forgets them; succeeds if there
 * are none. To be called after dlopen. */
LAMELLA_ABI_API lamella_status lamella_raise_deferred(void) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_ABI_ABI_H_ */
