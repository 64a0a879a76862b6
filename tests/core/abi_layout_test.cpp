// The frozen layouts: as stated, and the same in C and in C++.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "lamella/core/dlpack.h"
#include "lamella/core/scalar.h"
#include "lamella/core/tensor_impl.h"

extern "C" const size_t lamella_test_layout[];
extern "C" const size_t lamella_test_layout_size;

TEST(AbiLayout, IsFrozen) {
  const std::vector<size_t> frozen = {
      96, 0,  4,  8,  16, 24, 32, 40, 48, 56, 64, 68, 69, 70, 71, 72, 80, 88,  // lamella_tensor
      16, 8,  12, 13,                                                          // lamella_value
      16, 4,  8,                                                               // lamella_block
      16, 8,                                                                   // lamella_object
      24, 16,                                                                  // lamella_scalar
  };
  std::vector<size_t> in_c(lamella_test_layout, lamella_test_layout + lamella_test_layout_size);
  EXPECT_EQ(in_c, frozen);
}

TEST(AbiLayout, CxxAgreesWithC) {
  const std::vector<size_t> in_cxx = {
      sizeof(lamella_tensor),
      offsetof(lamella_tensor, references),
      offsetof(lamella_tensor, weak_references),
      offsetof(lamella_tensor, key_set),
      offsetof(lamella_tensor, data),
      offsetof(lamella_tensor, numel),
      offsetof(lamella_tensor, sizes),
      offsetof(lamella_tensor, strides),
      offsetof(lamella_tensor, storage_offset),
      offsetof(lamella_tensor, storage),
      offsetof(lamella_tensor, ndim),
      offsetof(lamella_tensor, scalar_type),
      offsetof(lamella_tensor, device_type),
      offsetof(lamella_tensor, device_index),
      offsetof(lamella_tensor, layout),
      offsetof(lamella_tensor, flags),
      offsetof(lamella_tensor, python_object),
      offsetof(lamella_tensor, autograd),
      sizeof(lamella_value),
      offsetof(lamella_value, size),
      offsetof(lamella_value, tag),
      offsetof(lamella_value, flags),
      sizeof(lamella_block),
      offsetof(lamella_block, tag),
      offsetof(lamella_block, size),
      sizeof(lamella_object),
      offsetof(lamella_object, destroy),
      sizeof(lamella_scalar),
      offsetof(lamella_scalar, tag),
  };
  std::vector<size_t> in_c(lamella_test_layout, lamella_test_layout + lamella_test_layout_size);
  EXPECT_EQ(in_c, in_cxx);
}

TEST(AbiLayout, HandlesAreOnePointer) {
  EXPECT_EQ(sizeof(lamella::TensorBase), sizeof(void*));
  EXPECT_EQ(sizeof(lamella::WeakTensorRef), sizeof(void*));
  EXPECT_EQ(sizeof(lamella::Scalar), sizeof(lamella_scalar));
  EXPECT_EQ(sizeof(lamella::Device), 2u);
  EXPECT_EQ(sizeof(lamella::IntArrayRef), 16u);
}

TEST(AbiLayout, DlpackIsAsPublished) {
  using namespace lamella::dlpack;
  EXPECT_EQ(offsetof(DLTensor, data), 0u);
  EXPECT_EQ(offsetof(DLTensor, device), 8u);
  EXPECT_EQ(offsetof(DLTensor, ndim), 16u);
  EXPECT_EQ(offsetof(DLTensor, dtype), 20u);
  EXPECT_EQ(offsetof(DLTensor, shape), 24u);
  EXPECT_EQ(offsetof(DLTensor, strides), 32u);
  EXPECT_EQ(offsetof(DLTensor, byte_offset), 40u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, manager_ctx), 8u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, deleter), 16u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, flags), 24u);
}
