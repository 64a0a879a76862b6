// The lock of the table of types, for whoever forks. Internal to Lamella.
#pragma once
#include <mutex>

namespace lamella {
std::mutex& type_table_lock();
}  // namespace lamella
