// A fake CUDA driver for machines without a GPU: device memory is host memory under addresses that
// cannot be read, and a stream runs nothing until it is waited for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

// Work in the stream's order.
void fake_enqueue(void* stream, std::function<void()> work);
// Where device memory really is.
void* fake_memory(const void* device);
// From now on: devices found, and the result of the next cuStreamSynchronize (0: success).
void fake_set_devices(int count);
void fake_fail_synchronize(int result);
int64_t fake_blocks_in_use();
