// C10_DEFINE_bool, C10_DECLARE_bool and related macros: variables FLAGS_name, which keep their
// defaults because no command line is parsed.
#pragma once
#include <cstdint>
#include <string>

#include <c10/macros/Macros.h>

#define LAMELLA_DEFINE_FLAG(type, name, value) type FLAGS_##name = value;
#define LAMELLA_DECLARE_FLAG(type, name) extern type FLAGS_##name;

#define C10_DEFINE_int(name, value, help) LAMELLA_DEFINE_FLAG(int32_t, name, value)
#define C10_DEFINE_int32(name, value, help) LAMELLA_DEFINE_FLAG(int32_t, name, value)
#define C10_DEFINE_int64(name, value, help) LAMELLA_DEFINE_FLAG(int64_t, name, value)
#define C10_DEFINE_double(name, value, help) LAMELLA_DEFINE_FLAG(double, name, value)
#define C10_DEFINE_bool(name, value, help) LAMELLA_DEFINE_FLAG(bool, name, value)
#define C10_DEFINE_string(name, value, help) LAMELLA_DEFINE_FLAG(::std::string, name, value)
#define C10_DECLARE_int(name) LAMELLA_DECLARE_FLAG(int32_t, name)
#define C10_DECLARE_int32(name) LAMELLA_DECLARE_FLAG(int32_t, name)
#define C10_DECLARE_int64(name) LAMELLA_DECLARE_FLAG(int64_t, name)
#define C10_DECLARE_double(name) LAMELLA_DECLARE_FLAG(double, name)
#define C10_DECLARE_bool(name) LAMELLA_DECLARE_FLAG(bool, name)
#define C10_DECLARE_string(name) LAMELLA_DECLARE_FLAG(::std::string, name)
