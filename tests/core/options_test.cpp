// Device, ArrayRef, TensorOptions and key sets.
#include "lamella/core/tensor_options.h"

#include "lamella/core/key_set.h"
#include "testing.h"

namespace {

using namespace lamella;

TEST(Device, Parses) {
  EXPECT_EQ(Device("cpu"), Device(kCPU, -1));
  EXPECT_EQ(Device("cuda:1"), Device(kCUDA, 1));
  EXPECT_EQ(Device("meta").str(), "meta");
  EXPECT_EQ(Device("privateuseone:3").str(), "privateuseone:3");
  EXPECT_EQ(Device("cuda:127").index(), 127);
  EXPECT_EQ(static_cast<int>(DeviceType::PrivateUse16), 35);
  EXPECT_EQ(error_of([] { Device("cudaa"); }),
            "Device: expected a device like 'cpu' or 'cuda:1', got 'cudaa'");
  EXPECT_EQ(error_of([] { Device(""); }),
            "Device: expected a device like 'cpu' or 'cuda:1', got ''");
  for (const char* text : {"cuda:", "cuda:01", "cuda:x", "cuda:-1", "cuda:128", "cuda:1:2"}) {
    EXPECT_THROW(Device{text}, Error) << text;
  }
  EXPECT_EQ(error_of([] { Device("cuda:x"); }),
            "Device: expected an index from 0 to 127 after 'cuda:', got 'x'");
}

TEST(Device, EveryNameComesBack) {
  for (int i = 0; i < kDeviceTypes; ++i) {
    auto type = static_cast<DeviceType>(i);
    EXPECT_EQ(Device(device_type_name(type)).type(), type) << i;
  }
  EXPECT_STREQ(device_type_name(kCUDA, false), "CUDA");
}

TEST(ArrayRef, MadeFromEverything) {
  std::vector<int64_t> v = {1, 2, 3};
  std::array<int64_t, 2> a = {4, 5};
  const int64_t c[] = {6};
  auto sum = [](IntArrayRef list) {
    int64_t total = 0;
    for (int64_t x : list) total += x;
    return total;
  };
  EXPECT_EQ(sum(v), 6);
  EXPECT_EQ(sum(a), 9);
  EXPECT_EQ(sum(c), 6);
  EXPECT_EQ(sum({7, 8}), 15);
  EXPECT_EQ(sum(9), 9);
  EXPECT_EQ(sum({}), 0);
  EXPECT_TRUE(IntArrayRef(v) == IntArrayRef({1, 2, 3}));
  EXPECT_EQ(IntArrayRef(v).slice(1).vec(), (Ints{2, 3}));
  EXPECT_EQ(IntArrayRef(v).slice(0, 2).vec(), (Ints{1, 2}));
  EXPECT_EQ(error_of<IndexError>([&] { IntArrayRef(v).at(3); }),
            "ArrayRef: expected an index below 3, got 3");
  EXPECT_THROW(IntArrayRef(v).slice(2, 2), IndexError);
  EXPECT_EQ(str(IntArrayRef(v)), "[1, 2, 3]");
  EXPECT_EQ(str(IntArrayRef()), "[]");
}

TEST(ArrayRef, Optional) {
  auto text = [](OptionalIntArrayRef list) { return str(list); };
  EXPECT_EQ(text({}), "None");
  EXPECT_EQ(text(std::nullopt), "None");
  EXPECT_EQ(text(Ints{1, 2}), "[1, 2]");
  EXPECT_EQ(text(5), "[5]");
  EXPECT_EQ(text(std::optional<Ints>()), "None");
  EXPECT_EQ(OptionalIntArrayRef(IntArrayRef()).has_value(), true);
  EXPECT_EQ(error_of([] { OptionalIntArrayRef().value(); }),
            "OptionalArrayRef: expected a list, got None");
}

TEST(TensorOptions, FluentAndMerged) {
  TensorOptions o = dtype(kHalf).device(kCUDA, 1).requires_grad(true);
  EXPECT_EQ(o.dtype(), kHalf);
  EXPECT_EQ(o.device(), Device("cuda:1"));
  EXPECT_TRUE(o.requires_grad() && o.has_dtype() && !o.has_layout());
  EXPECT_EQ(o.layout(), kStrided);
  EXPECT_EQ(TensorOptions().dtype(), kFloat);
  EXPECT_EQ(TensorOptions(kLong).merge_in(TensorOptions(kMeta)).device(), Device(kMeta));
  EXPECT_EQ(TensorOptions(kLong).merge_in(kBool).dtype(), kBool);
  EXPECT_EQ(dtype<int32_t>().dtype(), kInt);
  EXPECT_EQ(memory_format(MemoryFormat::ChannelsLast).memory_format_opt(),
            MemoryFormat::ChannelsLast);
}

TEST(KeySet, OfDevices) {
  using namespace lamella::detail;
  uint64_t autograd = functionality_bit(Functionality::AutogradFunctionality) |
                      functionality_bit(Functionality::ADInplaceOrView);
  EXPECT_EQ(backend_bit(kCPU), 1u);
  EXPECT_EQ(backend_bit(kVulkan), 0u);
  EXPECT_EQ(default_key_set(kCPU), 1u | functionality_bit(Functionality::Dense) | autograd);
  EXPECT_EQ(default_key_set(kCPU, true), 1u | functionality_bit(Functionality::Dense));
  EXPECT_EQ(default_key_set(kMeta), uint64_t{1} << static_cast<int>(BackendComponent::MetaBit) |
                                        functionality_bit(Functionality::Dense) | autograd);
  EXPECT_EQ(default_key_set(kVulkan), functionality_bit(Functionality::Vulkan) |
                                          functionality_bit(Functionality::AutogradOther) |
                                          functionality_bit(Functionality::ADInplaceOrView));
}

}  // namespace
