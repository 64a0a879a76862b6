// Fibres: a block's threads on one thread of the host. Compiled without the thread sanitizer, which
// is told of every switch.
#include "tests/cuda/standin/fibres.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef STANDIN_TSAN
#include <sanitizer/tsan_interface.h>
#define TSAN(x) x
#else
#define TSAN(x)
#endif

extern "C" void standin_switch(void** from, void* to);
#ifdef __x86_64__
asm(R"(
.text
.type standin_switch,@function
standin_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp,(%rdi)
  mov %rsi,%rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
constexpr int kSaved = 6;
#else
#error "fibres are written for x86-64"
#endif

namespace standin {

constinit thread_local Running running{};

namespace {

enum State : char { kReady, kAtBlock, kAtWarp, kDone };
constexpr int kLaunchFailed = 719, kAssert = 710;
constexpr size_t kStack = 128 << 10;
constexpr uint64_t kCanary = 0x5bd1e9955bd1e995;

}  // namespace

struct Fibre {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  Index thread{};
  State state = kDone;
  unsigned mask = 0;
  int line = 0;
  const char* file = nullptr;
  uint64_t given = 0, shown = 0;  // the value of a warp operation, before and after all came
  void* fake_stack = nullptr;
  void* tsan = nullptr;
};

namespace {

// What one thread of the host has for blocks. It is never freed: the threads of streams run on.
struct Block {
  std::vector<Fibre> fibres;
  unsigned count = 0;
  Fibre* current = nullptr;
  void* home = nullptr;
  void (*body)(const void*) = nullptr;
  const void* parameters = nullptr;
  const char* name = nullptr;
  std::unique_ptr<char[]> shared;
  int votes[2] = {0, 0};  // of the barriers with counts
  unsigned barriers = 0;
  bool trapped = false;
  const void* home_stack = nullptr;
  size_t home_bytes = 0;
  void* home_fake = nullptr;
  void* home_tsan = nullptr;
  char start_token = 0, end_token = 0, block_token = 0, warp_tokens[32] = {};
};
constinit thread_local Block* mine = nullptr;

void leave(Block& b) {
  Fibre& f = *b.current;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(f.state == kDone ? nullptr : &f.fake_stack, b.home_stack,
                                 b.home_bytes);
#endif
  TSAN(__tsan_switch_to_fiber(b.home_tsan, __tsan_switch_to_fiber_no_sync);)
  standin_switch(&f.stack_pointer, b.home);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(f.fake_stack, &b.home_stack, &b.home_bytes);
#endif
}
[[noreturn]] void start() {
  Block& b = *mine;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &b.home_stack, &b.home_bytes);
#endif
  TSAN(__tsan_acquire(&b.start_token);)
  b.body(b.parameters);
  TSAN(__tsan_release(&b.end_token);)
  b.current->state = kDone;
  leave(b);
  abort();
}
void enter(Block& b, unsigned number) {
  Fibre& f = b.fibres[number];
  b.current = &f;
  running.thread = f.thread;
  running.number = number;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&b.home_fake, f.stack, kStack);
#endif
  TSAN(__tsan_switch_to_fiber(f.tsan, __tsan_switch_to_fiber_no_sync);)
  standin_switch(&b.home, f.stack_pointer);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(b.home_fake, nullptr, nullptr);
#endif
}

void prepare(Block& b, const Shape& shape) {
  b.count = shape.block.x * shape.block.y * shape.block.z;
  b.fibres.reserve(1024);
  while (b.fibres.size() < b.count) {
    Fibre f;
    void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) abort();
    f.stack = static_cast<char*>(stack);
    std::memcpy(f.stack, &kCanary, sizeof(kCanary));
    TSAN(f.tsan = __tsan_create_fiber(0);)
    b.fibres.push_back(f);
  }
}

int fail(const Block& b, const Fibre& f, const char* what, const Fibre& other) {
  const char* does = other.state == kDone      ? "has ended"
                     : other.state == kAtBlock ? "waits for the block"
                                               : "waits for its warp";
  fprintf(stderr,
          "standin: %s, block (%u, %u, %u): thread (%u, %u, %u) waits %s at %s:%d, but thread "
          "(%u, %u, %u) %s at %s:%d\n",
          b.name, running.block.x, running.block.y, running.block.z, f.thread.x, f.thread.y,
          f.thread.z, what, f.file, f.line, other.thread.x, other.thread.y, other.thread.z, does,
          other.file != nullptr ? other.file : "its start", other.line);
  return kLaunchFailed;
}

// Runs the lanes of a warp until each is done or waits for the block.
int run_warp(Block& b, unsigned first, bool backwards) {
  const unsigned lanes = b.count - first < 32 ? b.count - first : 32;
  Fibre* warp = &b.fibres[first];
  const unsigned there = lanes == 32 ? ~0U : (1U << lanes) - 1;
  while (true) {
    for (unsigned k = 0; k < lanes; ++k) {
      const unsigned i = backwards ? lanes - 1 - k : k;
      if (warp[i].state == kReady) enter(b, first + i);
      if (b.trapped) return kAssert;
    }
    unsigned waiting = 0;
    for (unsigned i = 0; i < lanes; ++i) waiting |= warp[i].state == kAtWarp ? 1U << i : 0;
    if (waiting == 0) return 0;
    for (unsigned i = 0; i < lanes; ++i) {
      if (warp[i].state != kAtWarp) continue;
      const unsigned mask = warp[i].mask & there;
      if ((mask >> i & 1) == 0) return fail(b, warp[i], "without being in the mask", warp[i]);
      for (unsigned j = 0; j < lanes; ++j) {
        if ((mask >> j & 1) == 0) continue;
        const bool along = (waiting >> j & 1) != 0 && (warp[j].mask & there) == mask &&
                           warp[j].line == warp[i].line;
        if (!along) return fail(b, warp[i], "for its warp", warp[j]);
      }
    }
    for (unsigned i = 0; i < lanes; ++i) {
      if (warp[i].state != kAtWarp) continue;
      warp[i].shown = warp[i].given;
      warp[i].state = kReady;
    }
  }
}

int run_block(Block& b, const Shape& shape, bool backwards) {
  for (unsigned i = 0; i < b.count; ++i) {
    Fibre& f = b.fibres[i];
    f.state = kReady;
    f.file = nullptr;
    f.line = 0;
    f.thread = {i % shape.block.x, i / shape.block.x % shape.block.y,
                i / shape.block.x / shape.block.y};
    auto** top = reinterpret_cast<void**>(f.stack + kStack - 64);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&start);
    f.stack_pointer = top - kSaved;
  }
  b.votes[0] = b.votes[1] = 0;
  b.barriers = 0;
  b.trapped = false;
  if (shape.shared_bytes != 0) std::memset(b.shared.get(), 0xa5, shape.shared_bytes);
  const unsigned warps = (b.count + 31) / 32;
  while (true) {
    for (unsigned k = 0; k < warps; ++k) {
      const unsigned warp = backwards ? warps - 1 - k : k;
      if (int result = run_warp(b, warp * 32, backwards); result != 0) return result;
    }
    Fibre *done = nullptr, *waiting = nullptr;
    for (unsigned i = 0; i < b.count; ++i) {
      Fibre& f = b.fibres[i];
      (f.state == kDone ? done : waiting) = &f;
    }
    if (waiting == nullptr) return 0;
    if (done != nullptr) return fail(b, *waiting, "for the block", *done);
    for (unsigned i = 0; i < b.count; ++i) {
      const Fibre& f = b.fibres[i];
      if (f.line != waiting->line) return fail(b, f, "for the block", *waiting);
    }
    ++b.barriers;
    b.votes[b.barriers & 1] = 0;  // of the next barrier
    for (unsigned i = 0; i < b.count; ++i) b.fibres[i].state = kReady;
  }
}

}  // namespace

void wait_for_block(int line, const char* file) {
  Block& b = *mine;
  Fibre& f = *b.current;
  f.line = line;
  f.file = file;
  f.state = kAtBlock;
  TSAN(__tsan_release(&b.block_token);)
  leave(b);
  TSAN(__tsan_acquire(&b.block_token);)
}
uint64_t wait_for_warp(unsigned mask, uint64_t value, unsigned lane, int line, const char* file) {
  Block& b = *mine;
  Fibre& f = *b.current;
  f.line = line;
  f.file = file;
  f.mask = mask;
  f.given = value;
  f.state = kAtWarp;
  TSAN(const unsigned warp = running.number / 32;)
  TSAN(__tsan_release(&b.warp_tokens[warp]);)
  leave(b);
  TSAN(__tsan_acquire(&b.warp_tokens[warp]);)
  const unsigned at = (running.number & ~31U) + lane;
  if (at >= b.count || (mask >> lane & 1) == 0) return value;
  return b.fibres[at].shown;
}
uint64_t value_of_lane(unsigned lane) {
  const unsigned at = (running.number & ~31U) + lane;
  return at < mine->count ? mine->fibres[at].shown : 0;
}

int run_fibres(const char* name, void (*body)(const void*), const void* parameters,
               const Shape& shape) {
  if (mine == nullptr) mine = new Block();
  Block& b = *mine;
  prepare(b, shape);
  b.body = body;
  b.parameters = parameters;
  b.name = name;
  b.shared.reset(shape.shared_bytes != 0 ? new char[shape.shared_bytes] : nullptr);
  running.block_dim = {shape.block.x, shape.block.y, shape.block.z};
  running.grid_dim = {shape.grid.x, shape.grid.y, shape.grid.z};
  TSAN(b.home_tsan = __tsan_get_current_fiber();)
  int result = 0;
  bool backwards = false;
  for (unsigned z = 0; z < shape.grid.z && result == 0; ++z) {
    for (unsigned y = 0; y < shape.grid.y && result == 0; ++y) {
      for (unsigned x = 0; x < shape.grid.x && result == 0; ++x) {
        running.block = {x, y, z};
        TSAN(__tsan_release(&b.start_token);)
        result = run_block(b, shape, backwards);
        TSAN(__tsan_acquire(&b.end_token);)
        backwards = !backwards;
      }
    }
  }
  for (unsigned i = 0; i < b.count; ++i) {
    if (std::memcmp(b.fibres[i].stack, &kCanary, sizeof(kCanary)) == 0) continue;
    fprintf(stderr, "standin: %s: the stack of a thread has overflown\n", name);
    abort();
  }
  return result;
}

}  // namespace standin

int __syncthreads_count(int value, int line, const char* file) {
  standin::Block& b = *standin::mine;
  int& votes = b.votes[b.barriers & 1];
  votes += value != 0 ? 1 : 0;
  standin::wait_for_block(line, file);
  return votes;
}

namespace lamella::cuda {
[[noreturn]] void trap();
void* standin_dynamic_shared();
[[noreturn]] void trap() {
  standin::Block& b = *standin::mine;
  b.trapped = true;
  b.current->state = standin::kDone;
  standin::leave(b);
  abort();
}
void* standin_dynamic_shared() { return standin::mine->shared.get(); }
}  // namespace lamella::cuda
