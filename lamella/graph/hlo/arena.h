// Arena: an allocator whose memory is all freed together, when the arena is destroyed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lamella::hlo {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (auto it = cleanups_.rbegin(); it != cleanups_.rend(); ++it) it->end(it->object);
  }

  void* allocate(size_t bytes, size_t alignment) {
    auto at = (reinterpret_cast<uintptr_t>(next_) + alignment - 1) & ~(alignment - 1);
    if (next_ == nullptr || at + bytes > reinterpret_cast<uintptr_t>(end_)) {
      size_t block = bytes + alignment > kBlock ? bytes + alignment : kBlock;
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
      next_ = blocks_.back().get();
      end_ = next_ + block;
      at = (reinterpret_cast<uintptr_t>(next_) + alignment - 1) & ~(alignment - 1);
    }
    next_ = reinterpret_cast<std::byte*>(at + bytes);
    return reinterpret_cast<void*>(at);
  }
  // Makes an object that lives as long as the arena; its destructor runs when the arena ends.
  template <class T, class... A>
  T* make(A&&... arguments) {
    T* object = new (allocate(sizeof(T), alignof(T))) T(std::forward<A>(arguments)...);
    if constexpr (!std::is_trivially_destructible_v<T>) {
      cleanups_.push_back({object, [](void* o) { static_cast<T*>(o)->~T(); }});
    }
    return object;
  }
  template <class T>
  std::span<T> copy(std::span<const T> from) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (from.empty()) return {};
    auto* to = static_cast<T*>(allocate(from.size_bytes(), alignof(T)));
    std::memcpy(static_cast<void*>(to), from.data(), from.size_bytes());
    return {to, from.size()};
  }
  std::string_view copy(std::string_view text) {
    std::span<char> made = copy(std::span<const char>(text.data(), text.size()));
    return {made.data(), made.size()};
  }

 private:
  static constexpr size_t kBlock = size_t{1} << 16;
  struct Cleanup {
    void* object;
    void (*end)(void*);
  };
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::vector<Cleanup> cleanups_;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
};

}  // namespace lamella::hlo
