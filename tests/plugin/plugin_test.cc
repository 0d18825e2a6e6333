// A server that loads families from outside: one that is sound, and many that are not.
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tests/e2e/server_binary.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::Contains;

using ::testing::HasSubstr;

std::string PluginPath(const std::string& name) {
  const char* const folder = std::getenv("TENSORD_PLUGINS");
  return std::string(folder == nullptr ? "" : folder) + "/" + name + ".so";
}

std::string Setting(const std::string& path) { return "--set=families.plugins=" + path; }

struct Ended {
  std::string output;  // both streams
  int status = -1;
};

// Starts a server that must end without listening, and returns its output.
Ended StartOf(const std::vector<std::string>& settings) {
  std::string command = "timeout 60 '" + ServerBinary::Path() + "' --listen=127.0.0.1:0 --log-level=warning";
  for (const std::string& setting : settings) command += " '" + setting + "'";
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  Ended ended;
  for (int c; pipe != nullptr && (c = fgetc(pipe)) != EOF;) ended.output.push_back(static_cast<char>(c));
  const int status = pipe == nullptr ? -1 : pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

void ExpectRefused(const std::vector<std::string>& settings, const std::string& why) {
  const Ended ended = StartOf(settings);
  EXPECT_EQ(ended.status, 2) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("tensord: the plugin "), HasSubstr(why)));
  EXPECT_EQ(std::count(ended.output.begin(), ended.output.end(), '\n'), 1) << ended.output;
}

class PluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(ServerBinary::Path().empty()) << "the environment variable TENSORD_BINARY names the server's binary";
  }
};

v1::ExecuteRequest RollRequest(const std::string& type) {
  v1::ExecuteRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
            graph { inputs { name: "x" type {)pb" +
          type + R"pb(}
                      }
          nodes {
            name: "y"
            inputs: "x"
            extension { op { type_url: "type.googleapis.com/sample.v1.Roll" value: "\010\002" } }
          }
          nodes { name: "z" inputs: "y" inputs: "y" binary: BINARY_OP_ADD }
          outputs { name: "z" value: "z" }
        }
      )pb",
      &request));
  return request;
}

TEST_F(PluginTest, ALoadedFamilyIsListedAndRuns) {
  const auto server = ServerBinary::Start({Setting(PluginPath("sample_plugin"))});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = v1::Compute::NewStub(grpc::CreateChannel((*server)->target(), grpc::InsecureChannelCredentials()));

  v1::GetServerInfoRequest ask;
  ask.set_capabilities(true);
  v1::ServerInfo info;
  grpc::ClientContext info_context;
  ASSERT_TRUE(stub->GetServerInfo(&info_context, ask, &info).ok());
  EXPECT_THAT(info.families(), Contains("sample.v1.Roll"));
  EXPECT_TRUE(std::any_of(info.capabilities().begin(), info.capabilities().end(), [](const v1::Capability& capability) {
    return capability.op() == "sample.v1.Roll" && capability.device() == "cpu:0" && capability.dtypes_size() > 5;
  }));

  for (const int64_t n : {5, 3}) {  // one program, whose size is a symbol
    v1::ExecuteRequest request = RollRequest("dtype: DTYPE_F32 shape { symbol: \"n\" }");
    v1::Tensor* const x = request.add_arguments()->mutable_tensor();
    x->set_dtype(v1::DTYPE_F32);
    x->add_shape(n);
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i));
    x->set_data(values.data(), values.size() * sizeof(float));
    grpc::ClientContext context;
    v1::ExecuteResponse response;
    const grpc::Status status = stub->Execute(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.results_size(), 1);
    const std::string& bytes = response.results(0).tensor().data();
    const float* const z = reinterpret_cast<const float*>(bytes.data());
    std::vector<float> expected;
    for (int64_t i = 0; i < n; ++i) expected.push_back(2 * static_cast<float>((i - 2 + n) % n));
    EXPECT_EQ(std::vector<float>(z, z + bytes.size() / sizeof(float)), expected);
  }

  grpc::ClientContext context;
  v1::ExecuteResponse response;
  const grpc::Status refused =
      stub->Execute(&context, RollRequest("dtype: DTYPE_F32 shape { size: 2 } shape { size: 2 }"), &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), AllOf(HasSubstr("a roll takes a vector"), HasSubstr("\"y\"")));
  EXPECT_EQ((*server)->Stop(), 0);
}

TEST_F(PluginTest, AFileThatIsNoPluginEndsTheStart) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tensord-plugin-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "text.so") << "no library";
  ExpectRefused({Setting((folder / "text.so").string())}, "text.so cannot be loaded: ");
  ExpectRefused({Setting((folder / "absent.so").string())}, "No such file");
  ExpectRefused({Setting("bare.so")}, "name it by a path with a folder");
  ExpectRefused({Setting(PluginPath("bad_plugin_kNoSymbol"))}, "it has no symbol tensord_family_plugin_v1");
  std::filesystem::remove_all(folder);
}

TEST_F(PluginTest, AFileThatOthersMayWriteIsNotRun) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tensord-plugin-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = (folder / "sample.so").string();
  std::filesystem::copy_file(PluginPath("sample_plugin"), file);
  for (const mode_t mode : {0775, 0757}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    ExpectRefused({Setting(file)}, "more than its owner may write it");
  }
  ASSERT_EQ(chmod(file.c_str(), 0755), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
    ExpectRefused({Setting(file)}, "it belongs to user 12345");
    ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  }
  const auto server = ServerBinary::Start({Setting(file)});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->Stop(), 0);
  std::filesystem::remove_all(folder);
}

TEST_F(PluginTest, APluginOfAnotherBuildEndsTheStart) {
  ExpectRefused({Setting(PluginPath("bad_plugin_kNothing"))}, "tensord_family_plugin_v1 returns nothing");
  ExpectRefused({Setting(PluginPath("bad_plugin_kOtherMagic"))}, "is no tensord::FamilyPlugin");
  ExpectRefused({Setting(PluginPath("bad_plugin_kOtherAbi"))}, "it has version 99 of the plugins' interface");
  ExpectRefused({Setting(PluginPath("bad_plugin_kOtherBuild"))},
                "it was made for \"tensord 0.0.1\", and this server is");
  ExpectRefused(
      {Setting(PluginPath("bad_plugin_kOtherHeaders"))},
      "it was compiled against other headers of tensord (their hash is \"0123456789abcdef\") than this server");
}

TEST_F(PluginTest, OpsThatAreNotSoundEndTheStart) {
  ExpectRefused({Setting(PluginPath("bad_plugin_kNoOps"))}, "it has no family, or one without ops");
  ExpectRefused({Setting(PluginPath("bad_plugin_kKnownOp"))}, "there is an op tensord.fft.v1.Fft already");
  ExpectRefused({Setting(PluginPath("bad_plugin_kNoMessage"))}, "the operation \"bad.v1.Copy\" has no message");
  ExpectRefused({Setting(PluginPath("sample_plugin")), Setting(PluginPath("sample_plugin"))},
                "there is a family \"sample\" already");
}

TEST_F(PluginTest, KernelsThatAreNotTheOpsEndTheStart) {
  const auto expect = [](const std::string& flaw, const std::string& why) {
    ExpectRefused({Setting(PluginPath("bad_plugin_" + flaw))}, why);
  };
  expect("kNoKernel", "the op bad.v1.Copy is not expanded, and no device of this server has a kernel of it");
  expect("kOnlyOnCuda", "the op bad.v1.Copy is not expanded, and no device of this server has a kernel of it");
  expect("kOtherDevice", "it has kernels for devices of the kind \"cpuu\"; there are cpu and cuda");
  expect("kNoDevice", "it has kernels for devices of the kind \"\"; there are cpu and cuda");
  expect("kNoTable", "its kernels for cpu have no table");
  expect("kKernelOfOther", "it has a CPU kernel of \"bad.v1.Copi\", which is no op of its family");
  expect("kKernelTwice", "the op bad.v1.Copy has two CPU kernels");
  expect("kKernelUnmade", "the CPU kernel of the op bad.v1.Copy has no function that makes it");
}

}  // namespace
}  // namespace tensord
