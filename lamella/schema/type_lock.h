// The lock of the table of types, which is held during a fork. Internal to Lamella.
#pragma once
#include <mutex>

namespace lamella {
std::mutex& type_table_lock();
}  // namespace lamella
