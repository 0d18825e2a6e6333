#include "server/config/device_names.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"

namespace tensord::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ServerConfig WithDevices(const std::vector<std::string>& devices, const std::string& first = "") {
  ServerConfig config;
  for (const std::string& device : devices) config.add_devices(device);
  config.set_default_device(first);
  return config;
}

std::vector<std::string> NamesOf(const ServerConfig& config) {
  const std::vector<DeviceName> devices = DevicesOf(config).value();
  std::vector<std::string> names;
  for (const DeviceName& device : devices) names.push_back(device.full());
  return names;
}

TEST(DeviceNamesTest, TheDefaultIsFirst) {
  EXPECT_THAT(NamesOf({}), ElementsAre("cpu:0"));
  EXPECT_THAT(NamesOf(WithDevices({"cuda:1", "cpu", "cuda"})), ElementsAre("cuda:1", "cpu:0", "cuda:0"));
  EXPECT_THAT(NamesOf(WithDevices({"cpu:0", "cuda:0", "cuda:1"}, "cuda:1")), ElementsAre("cuda:1", "cpu:0", "cuda:0"));
  EXPECT_THAT(NamesOf(WithDevices({"cpu", "cuda"}, "cuda:0")), ElementsAre("cuda:0", "cpu:0"));
  EXPECT_TRUE(HasDevice(WithDevices({"cuda:3"}), kCudaKind));
  EXPECT_FALSE(HasDevice(WithDevices({"cuda:3"}), kCpuKind));
  EXPECT_FALSE(HasDevice({}, kCudaKind));
}

TEST(DeviceNamesTest, RefusalsNameTheSetting) {
  for (const std::string wrong : {"", ":", "gpu", "cpu:1", "cpu:", "cuda:", "cuda:x", "cuda:-1", "cuda: 1", "cuda:1024",
                                  "cuda:99999999999", "cuda:0:1", "CUDA"}) {
    const absl::Status refused = DevicesOf(WithDevices({wrong})).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("devices"), HasSubstr("\"" + wrong + "\"")));
    EXPECT_EQ(ValidateConfig(WithDevices({wrong})), refused);
  }
  EXPECT_THAT(std::string(DevicesOf(WithDevices({"cuda", "cuda:0"})).status().message()), HasSubstr("cuda:0 twice"));
  EXPECT_THAT(std::string(DevicesOf(WithDevices({"cpu"}, "cuda:0")).status().message()),
              AllOf(HasSubstr("default_device"), HasSubstr("cuda:0")));
  EXPECT_THAT(std::string(DevicesOf(WithDevices({"cpu"}, "gpu")).status().message()), HasSubstr("default_device"));
}

}  // namespace
}  // namespace tensord::server
