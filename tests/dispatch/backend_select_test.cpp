// Calls without a tensor: the device chooses the backend, unless a BackendSelect kernel does.
#include "lamella/dispatch/explain.h"
#include "lamella/dispatch/registry.h"
#include "tests/dispatch/helpers.h"

namespace lamella {
namespace {

using Factory = int64_t(IntArrayRef, std::optional<Device>, std::optional<bool>);
constexpr const char* kSchema =
    "make(int[] size, *, Device? device=None, bool? pin_memory=None) -> int";

// Kernels that say which backend they are of.
int64_t on_cpu(IntArrayRef, std::optional<Device>, std::optional<bool>) { return 1; }
int64_t outside(IntArrayRef, std::optional<Device>, std::optional<bool>) { return 3; }

TEST(BackendSelect, TheDeviceChoosesTheBackend) {
  Library m = fragment("select_device");
  m.def(kSchema);
  m.impl("make", DispatchKey::CPU, LAMELLA_FN(on_cpu));
  m.impl("make", DispatchKey::PrivateUse3, LAMELLA_FN(outside));
  auto make = find("select_device::make").typed<Factory>();
  int64_t size = 2;
  Device device(DeviceType::PrivateUse3, 1);
  EXPECT_EQ(make.call(IntArrayRef(size), std::nullopt, std::nullopt), 1);
  EXPECT_EQ(make.call(IntArrayRef(size), Device(DeviceType::CPU), true), 1);
  EXPECT_EQ(make.call(IntArrayRef(size), device, std::nullopt), 3);
  EXPECT_EQ(make.call(IntArrayRef(size), device, true), 3);
  IValue arguments[] = {IValue(IntArrayRef(size)), IValue(device), IValue()};
  lamella_value values[] = {arguments[0].value(), arguments[1].value(), arguments[2].value()};
  lamella_value result;
  detail::check(lamella_call_boxed(find("select_device::make").impl(), values, 3, &result, 1));
  EXPECT_EQ(result.as.i, 3);
}

TEST(BackendSelect, AKernelOfAUsersIsAskedFirst) {
  Library m = fragment("select_user");
  m.def(kSchema);
  m.impl("make", DispatchKey::CPU, LAMELLA_FN(on_cpu));
  m.impl("make", DispatchKey::PrivateUse3, LAMELLA_FN(outside));
  auto make = find("select_user::make").typed<Factory>();
  int64_t size = 2;
  {
    Library select = implementation("select_user", DispatchKey::BackendSelect);
    // Pinned memory is the outside backend's.
    select.impl("make",
                [make](IntArrayRef size, std::optional<Device> device,
                       std::optional<bool> pinned) -> int64_t {
                  DispatchKey key =
                      pinned.value_or(false) ? DispatchKey::PrivateUse3 : DispatchKey::CPU;
                  return 10 * make.redispatch(DispatchKeySet(key), size, device, pinned);
                });
    EXPECT_EQ(make.call(IntArrayRef(size), std::nullopt, true), 30);
    EXPECT_EQ(make.call(IntArrayRef(size), Device(DeviceType::PrivateUse3), false), 10);

    IValue arguments[] = {IValue(IntArrayRef(size)), IValue(), IValue(true)};
    lamella_value values[] = {arguments[0].value(), arguments[1].value(), arguments[2].value()};
    Explanation why = explain(find("select_user::make").impl(), values);
    ASSERT_FALSE(why.steps.empty());
    EXPECT_EQ(why.steps.back().key, DispatchKey::BackendSelect);
    EXPECT_EQ(why.steps.back().verdict, "runs");
    EXPECT_NE(why.kernel.find("BackendSelect"), std::string::npos) << why.kernel;
  }
  EXPECT_EQ(make.call(IntArrayRef(size), std::nullopt, true), 1);
}

}  // namespace
}  // namespace lamella
