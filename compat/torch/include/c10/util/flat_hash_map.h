// ska::flat_hash_map, a std::unordered_map here.
#pragma once
#include <c10/lamella_names.h>

#include <unordered_map>
#include <unordered_set>

namespace ska {
template <class K, class V, class H = std::hash<K>, class E = std::equal_to<K>,
          class A = std::allocator<std::pair<const K, V>>>
using flat_hash_map = std::unordered_map<K, V, H, E, A>;
template <class K, class H = std::hash<K>, class E = std::equal_to<K>>
using flat_hash_set = std::unordered_set<K, H, E>;
}  // namespace ska
