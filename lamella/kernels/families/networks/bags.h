// Sums of rows of a table over bags of indices, compiled for each capability of the processor.
#pragma once
#include <cstdint>

namespace lamella::networks {

template <class T>
struct Bags {
  const T* table;         // rows of `width` elements
  const int64_t* index;   // rows of the table
  const int64_t* bounds;  // bag b has the indices [bounds[b], bounds[b + 1])
  const T* weight;        // of each index, or null
  T* out;                 // a row for each bag
  int64_t width;
  int64_t skipped;  // an index that counts nowhere, or -1
};

}  // namespace lamella::networks
