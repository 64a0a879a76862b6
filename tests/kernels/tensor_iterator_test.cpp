// TensorIterator: shapes, dtypes, order of dimensions, overlaps, iteration, and dispatch stubs.
#include "lamella/kernels/tensor_iterator_config.h"

#include <gtest/gtest.h>

#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/dispatch_stub.h"
#include "lamella/kernels/parallel.h"

namespace lamella {
namespace native {
using plus_fn = int (*)(int);
LAMELLA_KERNEL(plus_fn, plus_one_on);
LAMELLA_KERNEL(plus_fn, nowhere_on);
namespace {
int plus_one(int x) { return x + 1; }
int plus_hundred(int x) { return x + 100; }
LAMELLA_REGISTER_KERNEL(plus_one_on, &plus_one);
LAMELLA_REGISTER_DEVICE_KERNEL(plus_one_on, DeviceType::PrivateUse1, &plus_hundred);
}  // namespace
}  // namespace native

namespace {

TensorBase tensor(std::vector<int64_t> sizes, ScalarType dtype = kFloat) {
  TensorBase t = make_empty(sizes, dtype, kCPU);
  if (dtype == kFloat) {
    for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<float>()[i] = static_cast<float>(i);
  }
  return t;
}
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TensorIterator, BroadcastsAndWalks) {
  TensorBase a = tensor({3, 4}), b = tensor({4}), out;
  TensorIterator iter = TensorIterator::binary_op(out, a, b);
  EXPECT_EQ(out.sizes(), IntArrayRef({3, 4}));
  EXPECT_EQ(iter.numel(), 12);
  iter.for_each([](char** data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<float*>(data[0] + i * strides[0]) =
          *reinterpret_cast<float*>(data[1] + i * strides[1]) +
          10 * *reinterpret_cast<float*>(data[2] + i * strides[2]);
    }
  });
  EXPECT_EQ(out.data_ptr<float>()[5], 5 + 10 * 1);
  EXPECT_EQ(out.data_ptr<float>()[11], 11 + 10 * 3);
}

TEST(TensorIterator, MergesDenseOperandsOfOneOrder) {
  TensorBase base = tensor({2, 3, 4});
  TensorBase a = make_view(base, IntArrayRef({4, 3, 2}), IntArrayRef({1, 4, 12}), 0), out;
  TensorIterator iter = TensorIterator::unary_op(out, a);
  EXPECT_EQ(iter.ndim(), 1);
  EXPECT_TRUE(iter.is_contiguous());
  EXPECT_EQ(out.strides(), a.strides());
}

TEST(TensorIterator, OrdersByMemoryUnlessToldOtherwise) {
  TensorBase base = tensor({5, 3});
  TensorBase a = make_view(base, IntArrayRef({2, 4}), IntArrayRef({1, 3}), 0), out;
  EXPECT_EQ(TensorIterator::unary_op(out, a).shape(), IntArrayRef({2, 4}));
  TensorBase linear;
  TensorIterator iter =
      TensorIteratorConfig().add_output(linear).add_input(a).enforce_linear_iteration().build();
  EXPECT_EQ(iter.shape(), IntArrayRef({4, 2}));
}

TEST(TensorIterator, PromotesInputsAndCastsOutputs) {
  TensorBase a = tensor({3}), b = tensor({3}, kLong), out = tensor({3}, kDouble);
  for (int64_t i = 0; i < 3; ++i) b.data_ptr<int64_t>()[i] = 10 * i;
  TensorIterator iter = TensorIterator::binary_op(out, a, b);
  EXPECT_EQ(iter.common_dtype(), kFloat);
  EXPECT_EQ(iter.dtype(0), kFloat);
  EXPECT_EQ(iter.dtype(2), kFloat);
  iter.for_each([](char** data, const int64_t*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      reinterpret_cast<float*>(data[0])[i] =
          reinterpret_cast<float*>(data[1])[i] + reinterpret_cast<float*>(data[2])[i];
    }
  });
  iter.cast_outputs();
  EXPECT_EQ(out.data_ptr<double>()[2], 22.0);
}

TEST(TensorIterator, KindsOfOperators) {
  TensorBase whole = tensor({3}, kLong), real = tensor({3});
  auto made = [](auto make) {
    TensorBase out;
    TensorIterator iter = make(out);
    return std::make_pair(iter.common_dtype(), out.scalar_type());
  };
  using Pair = std::pair<ScalarType, ScalarType>;
  EXPECT_EQ(
      made([&](TensorBase& out) { return TensorIterator::binary_float_op(out, whole, whole); }),
      Pair(kFloat, kFloat));
  EXPECT_EQ(made([&](TensorBase& out) { return TensorIterator::comparison_op(out, whole, real); }),
            Pair(kFloat, kBool));
  EXPECT_EQ(made([&](TensorBase& out) { return TensorIterator::unary_float_op(out, whole); }),
            Pair(kFloat, kFloat));
  TensorIterator nullary = TensorIterator::nullary_op(real);
  EXPECT_EQ(nullary.noutputs(), 1);
  EXPECT_EQ(nullary.ninputs(), 0);
  TensorBase matrix = tensor({2, 3}), sums = tensor({2, 1});
  TensorIterator reduction = TensorIterator::reduce_op(sums, matrix);
  EXPECT_TRUE(reduction.is_dim_reduced(0));
  EXPECT_FALSE(reduction.is_dim_reduced(1));
}

TEST(TensorIterator, WhatAConfigurationSays) {
  TensorBase a = tensor({3}), b = tensor({3}), out = tensor({3}), scalar = tensor({});
  TensorIterator iter = TensorIteratorConfig()
                            .add_borrowed_output(out)
                            .add_const_input(a)
                            .add_borrowed_input(b)
                            .add_borrowed_const_input(scalar)
                            .check_all_same_device(false)
                            .build();
  EXPECT_EQ(iter.ntensors(), 4);
  EXPECT_EQ(iter.scalar_value<float>(3), 0.0f);
  TensorIterator owning = TensorIteratorConfig()
                              .add_owned_output(tensor({2, 2}))
                              .add_owned_input(tensor({2, 2}))
                              .add_owned_const_input(tensor({2}))
                              .build();
  EXPECT_EQ(owning.numel(), 4);
  TensorBase stated;
  TensorIterator sized = TensorIteratorConfig()
                             .add_output(stated)
                             .declare_static_dtype_and_device(kDouble, kCPU)
                             .declare_static_shape(IntArrayRef({2, 5}))
                             .build();
  EXPECT_EQ(sized.numel(), 10);
  EXPECT_EQ(sized.dtype(), kDouble);
}

TEST(TensorIterator, EveryElementOnce) {
  TensorBase base = tensor({40, 50, 60});
  TensorBase a = make_view(base, IntArrayRef({40, 25, 20}), IntArrayRef({3000, 120, 3}), 0);
  TensorBase out = tensor({40, 25, 20}), sum;
  TensorIterator iter = TensorIterator::unary_op(out, a);
  int64_t seen = 0;
  for (int64_t begin = 0; begin < iter.numel(); begin += 777) {
    int64_t end = std::min(begin + 777, iter.numel());
    iter.serial_for_each([&](char**, const int64_t*, int64_t n) { seen += n; }, begin, end);
  }
  EXPECT_EQ(seen, 40 * 25 * 20);
}

TEST(TensorIterator, Errors) {
  TensorBase a = tensor({3, 4}), b = tensor({5}), none;
  EXPECT_EQ(error_of([&] { TensorIterator::binary_op(none, a, b); }),
            "TensorIterator: expected 'other' to be broadcastable to [3, 4], got [5]");
  TensorBase integers = tensor({3, 4}, kLong);
  EXPECT_EQ(
      error_of([&] { TensorIterator::binary_op(integers, a, a); }),
      "TensorIterator: expected 'out' to have a dtype that the result's, float32, can be cast "
      "to, got int64");
  EXPECT_EQ(error_of([&] {
              TensorIteratorConfig()
                  .set_name("f")
                  .add_output(none)
                  .add_input(a)
                  .add_input(integers)
                  .build();
            }),
            "f: expected 'other' to have dtype float32, got int64");
  TensorBase line = tensor({6});
  TensorBase left = make_view(line, IntArrayRef({5}), IntArrayRef({1}), 0);
  TensorBase right = make_view(line, IntArrayRef({5}), IntArrayRef({1}), 1);
  EXPECT_EQ(error_of([&] { TensorIterator::unary_op(right, left); }),
            "TensorIterator: expected 'out' not to share part of its memory with 'self'; clone one "
            "of them first");
  TensorBase wide = make_view(line, IntArrayRef({4}), IntArrayRef({0}), 0);
  EXPECT_EQ(error_of([&] { TensorIterator::unary_op(wide, wide); }),
            "TensorIterator: expected 'out' to have memory of its own for each element it writes, "
            "got one expanded to [4]; clone it first");
}

TEST(KernelTable, ChoosesByDevice) {
  EXPECT_EQ(native::plus_one_on(kCPU, 1), 2);
  EXPECT_EQ(native::plus_one_on(DeviceType::PrivateUse1, 1), 101);
  EXPECT_TRUE(native::plus_one_on.supports(kCPU));
  EXPECT_FALSE(native::plus_one_on.supports(kCUDA));
  EXPECT_EQ(error_of([] { native::nowhere_on(kCUDA, 1); }),
            "nowhere_on: expected a kernel for device cuda, got none; register one with "
            "LAMELLA_REGISTER_KERNEL");
}

TEST(Parallel, CoversTheRangeAndThrowsOn) {
  std::vector<int> seen(100000);
  native::parallel_for(0, 100000, 1000, [&](int64_t begin, int64_t end) {
    EXPECT_TRUE(get_num_threads() == 1 || in_parallel_region());
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (int count : seen) ASSERT_EQ(count, 1);
  EXPECT_EQ(error_of([] {
              native::parallel_for(0, 100000, 1000,
                                   [](int64_t, int64_t) { throw Error("from a thread"); });
            }),
            "from a thread");
  EXPECT_EQ(error_of([] { set_num_threads(0); }),
            "set_num_threads: expected a number of threads from 1 to 4096, got 0");
}

}  // namespace
}  // namespace lamella
