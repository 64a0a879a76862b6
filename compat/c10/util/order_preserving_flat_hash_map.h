// ska_ordered::order_preserving_flat_hash_map.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/core/ordered_map.h"

namespace ska_ordered {
template <class K, class V, class H = std::hash<K>, class E = std::equal_to<K>>
using order_preserving_flat_hash_map = lamella::OrderedMap<K, V, H, E>;
}  // namespace ska_ordered
