// A backend with the defects that the environment variable CRIPPLED lists, separated by commas.
// Without any it is correct: synchronous, in host memory.
#include <lamella/backend.h>
#include <lamella/lamella.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace lamella;

bool is(const char* word) {
  const char* all = std::getenv("CRIPPLED");
  return ("," + std::string(all != nullptr ? all : "") + ",").find("," + std::string(word) + ",") !=
         std::string::npos;
}

constexpr int kDevices = 2;
thread_local int8_t current = 0;

lamella_status allocate(void*, size_t bytes, int8_t, void** data, void**) {
  *data = bytes > (size_t{1} << 40) ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (*data != nullptr) return LAMELLA_OK;
  return lamella_fail(LAMELLA_OUT_OF_MEMORY, "no memory", 9);
}
void deallocate(void*, void* data, size_t, int8_t, void*) { std::free(data); }
lamella_status copy(void*, lamella_place to, lamella_place from, size_t bytes, int32_t) {
  if (is("lossy-copy") && to.device_type != 0) bytes -= 1;
  if (is("no-copy-between") && to.device_type == from.device_type &&
      to.device_index != from.device_index) {
    return LAMELLA_OK;
  }
  std::memmove(to.data, from.data, bytes);
  return LAMELLA_OK;
}

// One stream that is always done, and as many numbers for it as anyone asks for.
thread_local int64_t stream = 0;
int64_t streams = 0;

lamella_backend table() {
  lamella_backend t{};
  t.bytes = sizeof(t);
  t.device_type = static_cast<uint8_t>(DeviceType::PrivateUse2);
  t.name = "crippled";
  if (!is("no-allocator")) {
    t.allocate = &allocate;
    t.deallocate = &deallocate;
  }
  if (!is("no-copy")) t.copy = &copy;
  t.device_count = [](void*) -> int32_t { return kDevices; };
  t.current_device = [](void*) -> int8_t { return current; };
  t.set_device = [](void*, int8_t device) -> lamella_status {
    if (!is("deaf-guard")) current = device;
    return LAMELLA_OK;
  };
  if (!is("no-streams")) {
    t.current_stream = [](void*, int8_t) { return stream; };
    t.set_stream = [](void*, int8_t, int64_t number) -> lamella_status {
      stream = number;
      return LAMELLA_OK;
    };
    t.make_stream = [](void*, int8_t, int32_t, int64_t* made) -> lamella_status {
      *made = ++streams;
      return LAMELLA_OK;
    };
  }
  if (!is("no-events")) {
    t.make_event = [](void*, int8_t, int32_t, void** event) -> lamella_status {
      *event = std::malloc(1);
      return LAMELLA_OK;
    };
    t.free_event = [](void*, void* event) { std::free(event); };
    t.record_event = [](void*, void*, int8_t, int64_t) -> lamella_status { return LAMELLA_OK; };
    t.wait_event = t.record_event;
    t.query_event = [](void*, void*, int32_t* done) -> lamella_status {
      *done = 1;
      return LAMELLA_OK;
    };
    t.synchronize_event = [](void*, void*) -> lamella_status { return LAMELLA_OK; };
    t.elapsed_time = [](void*, void*, void*, double* milliseconds) -> lamella_status {
      *milliseconds = 0;
      return LAMELLA_OK;
    };
  }
  return t;
}

Tensor wrong_add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return call_cpu_fallback<ops::add_Tensor>(self, other, alpha.to<double>() + 1);
}
Tensor crash(const Tensor&) {
  std::raise(SIGSEGV);
  return Tensor();
}
Tensor& forgetful_exp(Tensor& self) { return self; }
Tensor copying_view(const Tensor& self, IntArrayRef size) {
  return _unsafe_view(self.clone(MemoryFormat::Contiguous), size);
}

struct Registered {
  Registered() : devices(table()) {
    constexpr auto key = DispatchKey::PrivateUse2;
    if (!is("no-fallback")) {
      libraries.emplace_back(Library::IMPL, "_", key, __FILE__, __LINE__)
          .fallback(CppFunction::makeFromBoxedFunction<&cpu_fallback>());
    }
    Library& aten = libraries.emplace_back(Library::IMPL, "aten", key, __FILE__, __LINE__);
    if (is("wrong-add")) aten.impl("add.Tensor", LAMELLA_FN(&wrong_add));
    if (is("crash-in-sin")) aten.impl("sin", LAMELLA_FN(&crash));
    if (is("forgetful-exp_")) aten.impl("exp_", LAMELLA_FN(&forgetful_exp));
    if (is("copying-view")) aten.impl("view", LAMELLA_FN(&copying_view));
  }
  BackendRegistration devices;
  std::vector<Library> libraries;
};

std::unique_ptr<Registered> registered = [] {
  try {
    return std::make_unique<Registered>();
  } catch (const std::exception& error) {
    lamella_defer_failure(error.what(), __FILE__, __LINE__);
    return std::unique_ptr<Registered>();
  }
}();

}  // namespace
