// c10::ThreadLocal: a variable of each thread, which has its value when it is first read.
#pragma once
#include <c10/lamella_names.h>

namespace c10 {
template <class T>
class ThreadLocal {
 public:
  explicit ThreadLocal(T* (*variable)()) : variable_(variable) {}
  T& get() const { return *variable_(); }
  T& operator*() const { return get(); }
  T* operator->() const { return &get(); }

 private:
  T* (*variable_)();
};
}  // namespace c10

#define LAMELLA_THREAD_LOCAL(Type, name) \
  ::c10::ThreadLocal<Type> name([]() {   \
    static thread_local Type value;      \
    return &value;                       \
  })
#define C10_DEFINE_TLS_static(Type, name) static LAMELLA_THREAD_LOCAL(Type, name)
#define C10_DECLARE_TLS_class_static(Class, Type, name) static ::c10::ThreadLocal<Type> name
#define C10_DEFINE_TLS_class_static(Class, Type, name) LAMELLA_THREAD_LOCAL(Type, Class::name)
