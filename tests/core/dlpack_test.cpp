// DLPack: round trips, codes, flags, and deleters that run once.
#include "lamella/core/dlpack.h"

#include "testing.h"

namespace {

using namespace lamella;
using namespace lamella::dlpack;

struct CodeRow {
  ScalarType type;
  int code;
  int bits;
};
const std::vector<CodeRow> kCodes = {
    {kBool, 6, 8},        {kByte, 1, 8},          {kUInt16, 1, 16},         {kUInt32, 1, 32},
    {kUInt64, 1, 64},     {kChar, 0, 8},          {kShort, 0, 16},          {kInt, 0, 32},
    {kLong, 0, 64},       {kHalf, 2, 16},         {kFloat, 2, 32},          {kDouble, 2, 64},
    {kBFloat16, 4, 16},   {kComplexFloat, 5, 64}, {kComplexDouble, 5, 128}, {kFloat8_e4m3fn, 10, 8},
    {kFloat8_e5m2, 12, 8}};

TEST(Dlpack, EveryTypeGoesThereAndBack) {
  for (const CodeRow& row : kCodes) {
    TensorBase t = make_empty({2, 3}, row.type, kCPU);
    DLManagedTensor* m = export_tensor(t);
    EXPECT_EQ(m->dl_tensor.dtype.code, row.code) << toString(row.type);
    EXPECT_EQ(m->dl_tensor.dtype.bits, row.bits) << toString(row.type);
    EXPECT_EQ(m->dl_tensor.dtype.lanes, 1);
    EXPECT_EQ(m->dl_tensor.device.device_type, 1);
    TensorBase back = import_tensor(m);
    EXPECT_EQ(back.dtype(), row.type);
    EXPECT_EQ(back.data_ptr(), t.data_ptr());
    EXPECT_EQ(sizes_of(back), sizes_of(t));
    EXPECT_EQ(t.use_count(), 2u);
    back.reset();
    EXPECT_EQ(t.use_count(), 1u);
  }
}

TEST(Dlpack, VersionedKeepsStridesAndOffset) {
  TensorBase t = floats({4, 5});
  TensorBase v = make_view(t, {5, 2}, {1, 5}, 5);
  DLManagedTensorVersioned* m = export_tensor_versioned(v, true);
  EXPECT_EQ(m->version.major, 1u);
  EXPECT_EQ(m->flags, uint64_t{DLPACK_FLAG_BITMASK_IS_COPIED});
  EXPECT_EQ(m->dl_tensor.data, v.data_ptr());
  TensorBase back = import_tensor_versioned(m);
  EXPECT_EQ(strides_of(back), (Ints{1, 5}));
  EXPECT_EQ(back.data_ptr(), v.data_ptr());
  EXPECT_EQ(lamella_tensor_storage_bytes(back.impl()), 40u);
}

TEST(Dlpack, ScalarsAndNothing) {
  TensorBase scalar = import_tensor(export_tensor(floats({})));
  EXPECT_EQ(scalar.dim(), 0);
  EXPECT_EQ(scalar.numel(), 1);
  TensorBase none = import_tensor(export_tensor(floats({0, 3})));
  EXPECT_EQ(sizes_of(none), (Ints{0, 3}));
}

// What another library hands over.
struct Foreign {
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t shape[2] = {2, 3};
  int deleted = 0;
  DLManagedTensorVersioned managed{};
  Foreign() {
    managed.version.major = 1;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* m) {
      ++static_cast<Foreign*>(m->manager_ctx)->deleted;
    };
    managed.dl_tensor = {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 4};
  }
};

TEST(Dlpack, ImportsRowMajorWithByteOffset) {
  Foreign foreign;
  foreign.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  {
    TensorBase t = import_tensor_versioned(&foreign.managed);
    EXPECT_EQ(strides_of(t), (Ints{3, 1}));
    EXPECT_EQ(t.data_ptr<float>()[0], 1.0f);
    EXPECT_EQ(t.device(), Device(kCPU));
    EXPECT_TRUE(is_read_only(t));
    TensorBase view = make_view(t, {1}, {1}, 0);
    EXPECT_TRUE(is_read_only(view));
    EXPECT_EQ(error_of([&] { export_tensor(view); }),
              "to_dlpack: expected a writable tensor, which is all that DLPack before 1.0 knows, "
              "got a read-only one");
    DLManagedTensorVersioned* again = export_tensor_versioned(view);
    EXPECT_EQ(again->flags, uint64_t{DLPACK_FLAG_BITMASK_READ_ONLY});
    t.reset();
    view.reset();
    EXPECT_EQ(foreign.deleted, 0);
    again->deleter(again);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, FailedImportsLeaveTheCallerTheOwner) {
  auto failing = [](auto change) {
    Foreign foreign;
    change(foreign);
    std::string text = error_of([&] { import_tensor_versioned(&foreign.managed); });
    EXPECT_EQ(foreign.deleted, 0) << text;
    return text;
  };
  EXPECT_EQ(failing([](Foreign& f) { f.managed.version.major = 2; }),
            "from_dlpack: expected DLPack version 1, got 2.0");
  EXPECT_EQ(failing([](Foreign& f) { f.managed.dl_tensor.dtype.lanes = 4; }),
            "from_dlpack: expected a dtype that Lamella knows, got code 2, 32 bits, 4 lanes");
  EXPECT_EQ(failing([](Foreign& f) {
              f.managed.dl_tensor.device.device_type = static_cast<DLDeviceType>(16);
            }),
            "from_dlpack: expected a device that Lamella knows, got code 16");
  EXPECT_EQ(failing([](Foreign& f) { f.managed.dl_tensor.byte_offset = 1; }),
            "from_dlpack: expected data aligned to its elements of 4 bytes");
  EXPECT_EQ(failing([](Foreign& f) { f.managed.dl_tensor.data = nullptr; }),
            "from_dlpack: expected data for 6 elements, got a null pointer");
  EXPECT_EQ(failing([](Foreign& f) { f.shape[0] = -1; }),
            "from_dlpack: expected sizes of at least 0, got [-1, 3]");
}

TEST(Dlpack, RefusesWhatItCannotSay) {
  EXPECT_EQ(error_of([] { export_tensor(make_empty({1}, kFloat, kMeta)); }),
            "to_dlpack: expected a device that DLPack knows, got meta");
  TensorBase t = floats({1});
  set_requires_grad(TensorImpl::of(t), true);
  EXPECT_EQ(error_of([&] { export_tensor(t); }),
            "to_dlpack: expected a tensor that does not require gradients; detach it first");
  TensorBase c = make_empty({1}, kComplexFloat, kCPU);
  set_flag(TensorImpl::of(c), LAMELLA_TENSOR_CONJ, true);
  EXPECT_EQ(error_of([&] { export_tensor(c); }),
            "to_dlpack: expected a tensor without a pending conjugation or negation; resolve it "
            "first");
  EXPECT_EQ(error_of([] { export_tensor(TensorBase()); }), "to_dlpack: expected a defined tensor");
}

TEST(Dlpack, WhatLeavesTheAddressSpaceIsRefused) {
  Foreign foreign;
  int64_t strides[2] = {1, 1};
  auto error = [&] { return error_of([&] { import_tensor_versioned(&foreign.managed); }); };
  DLTensor& t = foreign.managed.dl_tensor;
  t.byte_offset = ~uint64_t{0} - 8;
  EXPECT_EQ(
      error(),
      "from_dlpack: expected elements within the address space, got shape [2, 3] with strides "
      "[3, 1] at byte_offset 18446744073709551607");
  t.byte_offset = 0;
  t.strides = strides;
  strides[0] = INT64_MAX / 2;
  EXPECT_EQ(
      error(),
      "from_dlpack: expected elements within the address space, got shape [2, 3] with strides "
      "[4611686018427387903, 1] at byte_offset 0");
  strides[0] = INT64_MAX;
  EXPECT_NE(error(), "");
  strides[0] = -3;
  EXPECT_EQ(error(), "from_dlpack: expected a 'stride' of at least 0, got [-3, 1]");
  t.strides = nullptr;
  foreign.shape[0] = int64_t{1} << 62;
  EXPECT_NE(error(), "");
  foreign.shape[0] = -1;
  EXPECT_NE(error(), "");
  foreign.shape[0] = 2;
  for (int32_t ndim : {-1, 65, INT32_MAX}) {
    t.ndim = ndim;
    EXPECT_EQ(error(), "from_dlpack: expected 0 to 64 dimensions, got " + std::to_string(ndim));
  }
  t.ndim = 2;
  t.data = nullptr;
  EXPECT_EQ(error(), "from_dlpack: expected data for 6 elements, got a null pointer");
  t.data = foreign.data;
  t.dtype.lanes = 2;
  EXPECT_EQ(error(),
            "from_dlpack: expected a dtype that Lamella knows, got code 2, 32 bits, 2 lanes");
  t.dtype.lanes = 1;
  foreign.managed.version.major = 2;
  EXPECT_EQ(error(), "from_dlpack: expected DLPack version 1, got 2.0");
  foreign.managed.version.major = 1;
  EXPECT_EQ(foreign.deleted, 0);
  // Nothing to point at may be anywhere.
  foreign.shape[1] = 0;
  t.data = nullptr;
  t.byte_offset = 12345;
  EXPECT_EQ(sizes_of(import_tensor_versioned(&foreign.managed)), (Ints{2, 0}));
  EXPECT_EQ(foreign.deleted, 1);
}

}  // namespace
