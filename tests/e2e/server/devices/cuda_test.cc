// A server whose device is one of CUDA, through its own backend, on the device that the host plays.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/abi/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/device_client.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/server_process.h"
#include "tests/hostcuda/host_control.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

namespace fs = std::filesystem;

using cuda::HostCounts;

class CudaServerTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = getenv("TENSORD_HOST_CUDA");
    if (folder == nullptr) GTEST_SKIP() << "the host CUDA device does not run under the sanitizers";
    if (HasHostCuda()) GTEST_SKIP() << "the device in the CPU's place would be lost with it";
    folder_ = folder;
    void* const library = dlopen((folder_ + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
#define TENSORD_FIND(name, result, arguments) name = reinterpret_cast<decltype(name)>(dlsym(library, #name));
    TENSORD_HOST_CUDA_CONTROLS(TENSORD_FIND)
#undef TENSORD_FIND
  }
  // Servers leave nothing on the device.
  void TearDown() override {
    if (folder_.empty()) return;
    hostCudaFail("", 0, 0);
    EXPECT_EQ(hostCudaLiveMemory(), 0);
    EXPECT_EQ(hostCudaLivePinned(), 0);
    EXPECT_EQ(hostCudaLiveHandles(), 0);
    EXPECT_EQ(hostCudaOverruns(), 0);
  }

  // Settings of a server on the device, and more.
  std::vector<std::string> OnCuda(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"devices=cuda:0", "cuda.libraries=" + folder_});
    return more;
  }
  // Returns a folder that has some of the libraries only.
  std::string FolderWith(const TemporaryFolder& folder, const std::vector<std::string>& names) const {
    for (const std::string& name : names) fs::create_symlink(fs::path(folder_) / name, fs::path(folder.path()) / name);
    return folder.path();
  }
  static void Empty(const TemporaryFolder& folder) {
    for (const auto& entry : fs::directory_iterator(folder.path())) fs::remove(entry.path());
  }

  std::string folder_;
#define TENSORD_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  TENSORD_HOST_CUDA_CONTROLS(TENSORD_MEMBER)
#undef TENSORD_MEMBER
};

// Tells whether the machine has some library of NVIDIA's, which a server finds without being told where.
bool HasLibrary(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL) != nullptr; }

std::vector<std::string> LibrariesIn(const v1::ServerInfo& info) {
  std::vector<std::string> names;
  for (const v1::Device::Library& library : info.devices(0).libraries()) names.push_back(library.name());
  return names;
}

std::vector<float> Counted(size_t size, float first = 0) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), first);
  return values;
}

v1::ExecuteRequest AddRequest() {
  return RequestOf(SmallAdd(), {FloatTensor(Counted(16), {16}), FloatTensor(Counted(16, 1), {16})});
}

TEST_F(CudaServerTest, ItsInfoNamesTheDeviceAndTheLibraries) {
  InProcessServer server(OnCuda());
  v1::ServerInfo info = InfoWithCapabilities(server);
  EXPECT_THAT(DevicesIn(info), ElementsAre("cuda:0"));
  EXPECT_EQ(info.devices(0).kind(), "host CUDA device");
  EXPECT_TRUE(info.devices(0).ready());
  EXPECT_EQ(info.devices(0).executors(), 2);
  EXPECT_THAT(LibrariesIn(info), ElementsAre("libcuda.so.1")) << "the others are opened when they are needed";
  EXPECT_EQ(info.devices(0).libraries(0).version(), "13.0");
  EXPECT_THAT(info.devices(0).libraries(0).path(), StartsWith(folder_));
  EXPECT_THAT(info.DebugString(),
              HasSubstr(absl::StrCat("name: \"cuda.tensor_bytes\"\n  value: ", info.devices(0).memory_bytes())));
  std::vector<std::string> ops;
  for (const v1::Capability& capability : info.capabilities()) ops.push_back(capability.op());
  EXPECT_THAT(ops, IsSupersetOf({"add", "exp", "select", "convert"}));

  EXPECT_EQ(RanOn(server, AddRequest()), "cuda:0");
  EXPECT_THAT(LibrariesIn(InfoWithCapabilities(server)), ElementsAre("libcuda.so.1", "libnvrtc.so.13"));
  InProcessServer warm(OnCuda({"cuda.warm=true"}));
  EXPECT_THAT(LibrariesIn(InfoWithCapabilities(warm)),
              ElementsAre("libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcusolver.so.12",
                          "libcufft.so.12"));
}

TEST_F(CudaServerTest, ADriverThatIsMissingEndsTheStart) {
  if (HasLibrary("libcuda.so.1")) GTEST_SKIP() << "this machine has a driver";
  const TemporaryFolder folder;
  server::ServerConfig config;
  config.mutable_log()->set_level("off");
  config.add_listen("unix:" + folder.path() + "/s");
  config.add_devices("cpu");
  EXPECT_TRUE(server::Daemon::Start(config).ok()) << "nothing of CUDA is needed for the CPU";
  config.add_devices("cuda:0");
  EXPECT_EQ(server::Daemon::Start(config).status(),
            absl::UnavailableError("device cuda:0 is not there: libcuda.so.1 was not found; the driver is installed on "
                                   "the host, a container needs --gpus all"));
  config.mutable_cuda()->set_libraries(folder_);
  config.set_devices(1, "cuda:7");
  EXPECT_EQ(server::Daemon::Start(config).status(),
            absl::UnavailableError("device cuda:7 is not there: cuDeviceGet: CUDA_ERROR_INVALID_DEVICE"));
  config.mutable_cuda()->set_libraries(folder.path() + "/none");
  EXPECT_EQ(server::Daemon::Start(config).status(),
            absl::InvalidArgumentError("setting cuda.libraries: " + folder.path() + "/none is no folder"));
}

TEST_F(CudaServerTest, ProgramsAreRefusedWhereTheirLibraryIsMissing) {
  if (HasLibrary("libnvrtc.so.13") || HasLibrary("libnvrtc.so.12")) GTEST_SKIP() << "this machine has NVRTC";
  const TemporaryFolder folder;
  {
    InProcessServer server({"devices=cuda:0", "cuda.libraries=" + FolderWith(folder, {"libcuda.so.1"})});
    v1::ExecuteResponse response;
    const grpc::Status refused = Execute(server.stub(), AddRequest(), &response);
    EXPECT_EQ(ReasonOf(refused), "UNSUPPORTED_ON_DEVICE");
    EXPECT_THAT(
        refused.error_message(),
        AllOf(HasSubstr(absl::StrCat("libnvrtc.so.13 was not found in: ", folder.path(), ", the loader's paths")),
              HasSubstr("; set cuda.libraries, or pip install nvidia-cuda-nvrtc nvidia-cublas nvidia-cusolver "
                        "nvidia-cufft")));
    SessionClient session(server);
    ASSERT_EQ(PutOn(server, session, "", "x", {1, 2}), "OK") << "tensors need the driver alone";
    EXPECT_THAT(Downloaded(server, session, "x"), ElementsAre(1, 2));
  }
  Empty(folder);
}

TEST_F(CudaServerTest, TheBinaryTellsOfADeviceWithoutStarting) {
  if (HasLibrary("libcufft.so.12") || HasLibrary("libcuda.so.1")) GTEST_SKIP() << "this machine has CUDA";
  const TemporaryFolder folder;
  const auto check = [](const std::vector<std::string>& settings, int* status) {
    std::vector<std::string> flags = {"--check-config"};
    for (const std::string& setting : settings) flags.push_back("--set=" + setting);
    Process process(flags);
    const std::string said = process.Rest();
    *status = process.Wait();
    return said;
  };
  int status = -1;
  EXPECT_THAT(
      check(OnCuda(), &status),
      AllOf(HasSubstr("the configuration is right\ndevice cuda:0: host CUDA device\nlibrary libcuda.so.1 13.0, "),
            HasSubstr(absl::StrCat("library libcufft.so.12 12.0, ", folder_, "/libcufft.so.12\n")),
            Not(HasSubstr("missing"))));
  EXPECT_EQ(status, 0);
  const std::string some = FolderWith(
      folder, {"libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcusolver.so.12"});
  EXPECT_THAT(check({"devices=cpu", "devices=cuda:0", "cuda.libraries=" + some}, &status),
              AllOf(HasSubstr("library libcusolver.so.12 "),
                    HasSubstr("library missing: libcufft.so.12 was not found in: " + some)));
  EXPECT_EQ(status, 0);
  Empty(folder);
  EXPECT_EQ(check({"devices=cuda:0", "cuda.libraries=" + folder.path()}, &status), "");
  EXPECT_EQ(status, 1) << "as a start ends";
  EXPECT_EQ(check({"devices=cpu", "cuda.libraries=" + folder.path()}, &status), "the configuration is right\n");
}

TEST_F(CudaServerTest, TensorsLiveOnTheDevice) {
  InProcessServer server(OnCuda({"devices=cpu"}));
  EXPECT_THAT(DevicesIn(InfoWithCapabilities(server)), ElementsAre("cpu:0", "cuda:0"));
  SessionClient session(server);
  std::vector<float> values = Counted(1 << 19);
  ASSERT_EQ(PutOn(server, session, "cuda:0", "x", values), "OK");
  EXPECT_GE(InfoWithCapabilities(server).devices(1).memory_used_bytes(), 4 << 19);
  EXPECT_EQ(server.Metric("tensord_resident_bytes", "cuda:0"), 4 << 19);
  v1::ExecuteRequest as_it_is = session.Request(GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } } outputs { name: "x" value: "x" })"));
  AddHandle(&as_it_is, "x");
  Keep(&as_it_is, "y", v1::ResultOption::DELIVERY_BOTH);
  std::vector<float> sent;
  EXPECT_EQ(RanOn(server, On("cuda", as_it_is), &sent), "cuda:0");
  EXPECT_TRUE(sent == values);
  EXPECT_TRUE(Downloaded(server, session, "y") == values);
  v1::ExecuteRequest twice = session.Request(DoubleGraph());
  AddHandle(&twice, "x");
  std::vector<float> doubled;
  EXPECT_EQ(RanOn(server, On("cuda", twice), &doubled), "cuda:0");
  for (float& value : values) value *= 2;
  EXPECT_TRUE(doubled == values);
  EXPECT_EQ(RanOn(server, On("cpu", twice)), "ARGUMENT_MISMATCH");
  EXPECT_THAT(session.Delete({"x", "y"}), IsEmpty());
  EXPECT_TRUE(WaitFor([&] { return InfoWithCapabilities(server).devices(1).memory_used_bytes() == 0; }));
}

TEST_F(CudaServerTest, PayloadsThatComeBackAreNotCopied) {
  constexpr int64_t kElements = int64_t{1} << 20, kBytes = 4 * kElements;
  const v1::Graph graph = GraphOf(
      "inputs { name: \"x\" type { dtype: DTYPE_F32 shape { size: 1048576 } } } "
      "nodes { name: \"y\" inputs: \"x\" inputs: \"x\" binary: BINARY_OP_ADD } "
      "outputs { name: \"y\" value: \"y\" }");
  InProcessServer server(OnCuda());
  const auto direct = [&server](const char* direction) {
    return server.Metric("tensord_cuda_direct_bytes_total", direction);
  };
  // A block comes back when its answer has been sent, which the next call need not wait for.
  for (int run = 0; run < 50 && (direct("to") == 0 || direct("from") == 0); ++run) {
    std::vector<float> doubled;
    const auto values = Counted(kElements, static_cast<float>(run));
    ASSERT_EQ(RanOn(server, RequestOf(graph, {FloatTensor(values, {kElements})}), &doubled), "cuda:0");
    EXPECT_EQ(doubled.back(), 2 * values.back());
  }
  EXPECT_GE(direct("to"), kBytes);
  EXPECT_GE(direct("from"), kBytes);
  EXPECT_GT(server.Metric("tensord_cuda_pinnings_total", "pinned"), 0);
  EXPECT_EQ(server.Metric("tensord_cuda_pinnings_total", "refused"), 0);
}

// The bytes on the bus are those that clients send and fetch.
TEST_F(CudaServerTest, ResidentTensorsDoNotCrossTheBus) {
  InProcessServer server(OnCuda());
  SessionClient session(server);
  const int64_t bytes = 4 << 16;
  const auto copied = [&server](const char* direction) {
    return server.Metric("tensord_cuda_copied_bytes_total", direction);
  };
  ASSERT_EQ(PutOn(server, session, "", "x", Counted(1 << 16)), "OK");
  EXPECT_EQ(copied("to"), bytes);
  EXPECT_EQ(copied("from"), 0);
  v1::ExecuteRequest step = session.Request(DoubleGraph());
  AddDonated(&step, "x");
  Keep(&step, "x");
  for (int i = 0; i < 5; ++i) ASSERT_EQ(session.Run(step), "OK");
  EXPECT_EQ(copied("to"), bytes);
  EXPECT_EQ(copied("from"), 0);
  EXPECT_EQ(Downloaded(server, session, "x").back(), 32.0F * ((1 << 16) - 1));
  EXPECT_EQ(copied("from"), bytes);
  EXPECT_EQ(copied("to"), bytes);
  EXPECT_EQ(server.Metric("tensord_device_memory_bytes", "cuda:0"),
            InfoWithCapabilities(server).devices(0).memory_bytes());
  EXPECT_GT(server.Metric("tensord_memory_bytes", "in_use"), 0);
  EXPECT_EQ(server.Metric("tensord_cuda_contexts_total", "lost"), 0);
}

// A state that is given away and kept under its name, as a training loop does.
TEST_F(CudaServerTest, DonatedTensorsAreWrittenOver) {
  InProcessServer server(OnCuda());
  SessionClient session(server);
  ASSERT_EQ(PutOn(server, session, "", "state", Counted(4096)), "OK");
  v1::ExecuteRequest step = session.Request(DoubleGraph());
  AddDonated(&step, "state");
  Keep(&step, "state");
  ASSERT_EQ(session.Run(step), "OK");
  const int64_t used = InfoWithCapabilities(server).devices(0).memory_used_bytes();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session.Run(step), "OK");
  EXPECT_EQ(InfoWithCapabilities(server).devices(0).memory_used_bytes(), used);
  std::vector<float> want = Counted(4096);
  for (float& value : want) value *= 16;
  EXPECT_TRUE(Downloaded(server, session, "state") == want);
  EXPECT_EQ(server.Metric("tensord_resident_tensors", "cuda:0"), 1);
}

TEST_F(CudaServerTest, RunsAtOnceDoNotMeet) {
  hostCudaSet("DELAY_US", "500");
  {
    InProcessServer server(OnCuda({"cuda.executors=4"}));
    std::vector<std::thread> clients;
    for (int client = 0; client < 6; ++client) {
      clients.emplace_back([&server, client] {
        SessionClient session(server);
        const std::vector<float> values = Counted(3000, static_cast<float>(client));
        ASSERT_EQ(PutOn(server, session, "", "x", values), "OK");
        for (int i = 0; i < 4; ++i) {
          v1::ExecuteRequest twice = session.Request(DoubleGraph());
          AddHandle(&twice, "x");
          std::vector<float> got;
          EXPECT_EQ(RanOn(server, twice, &got), "cuda:0");
          std::vector<float> want = values;
          for (float& value : want) value *= 2;
          EXPECT_TRUE(got == want);
        }
      });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(server.Metric("tensord_device_up", "cuda:0"), 1);
  }
  hostCudaSet("DELAY_US", "");
}

TEST_F(CudaServerTest, TheNextServerHasTheKernels) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/programs";
  for (const bool is_first : {true, false}) {
    InProcessServer server(OnCuda({"program_cache.disk_path=" + path}));
    const long compiled = hostCudaCalls("nvrtcCompileProgram");
    EXPECT_EQ(RanOn(server, AddRequest()), "cuda:0");
    EXPECT_EQ(hostCudaCalls("nvrtcCompileProgram") - compiled, is_first ? 1 : 0);
    EXPECT_EQ(server.Metric("tensord_cuda_kernels_total", "compiled"), is_first ? 1 : 0);
    EXPECT_EQ(server.Metric("tensord_cuda_kernels_total", "disk"), is_first ? 0 : 1);
    EXPECT_EQ(server.Metric("tensord_cuda_kernels_total", "memory"), 0);
    EXPECT_GT(server.Metric("tensord_cuda_kernel_bytes", "disk"), 0);
    EXPECT_GT(server.Metric("tensord_cuda_kernel_bytes", "memory"), 0);
  }
  fs::remove_all(path);
}

// A kernel faults while tensors are kept: the run tells it, their handles are poisoned, their room is free, and the
// next run is right.
TEST_F(CudaServerTest, ALostDeviceIsToldAndComesBack) {
  InProcessServer server(OnCuda({"devices=cpu"}));
  SessionClient session(server);
  for (const char* handle : {"x", "given"}) {
    ASSERT_EQ(PutOn(server, session, "cuda", handle, Counted(1 << 16)), "OK");
  }
  ASSERT_EQ(PutOn(server, session, "cpu", "here", {1, 2}), "OK");
  v1::ExecuteRequest use = On("cuda", session.Request(DoubleGraph()));
  AddHandle(&use, "x");
  ASSERT_EQ(session.Run(use), "OK");
  v1::ExecuteRequest give = On("cuda", session.Request(DoubleGraph()));
  AddDonated(&give, "given");
  Keep(&give, "made");
  hostCudaFail("cuLaunchKernel", 1, cuda::kCuIllegalAddress);
  v1::ExecuteResponse response;
  const grpc::Status lost = Execute(server.stub(), give, &response);
  EXPECT_EQ(lost.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(ReasonOf(lost), "DEVICE_LOST");
  EXPECT_THAT(lost.error_message(), HasSubstr("cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(server.Metric("tensord_device_up", "cuda:0"), 0);
  EXPECT_EQ(server.Metric("tensord_device_up", "cpu:0"), 1);
  EXPECT_TRUE(WaitFor([&] { return BytesOn(server, "cuda:0") == 0; }));
  EXPECT_EQ(server.Metric("tensord_tensor_evictions_total", "device_lost"), 2);

  const grpc::Status poisoned = Execute(server.stub(), use, &response);
  EXPECT_EQ(ReasonOf(poisoned), "HANDLE_POISONED");
  EXPECT_THAT(poisoned.error_message(),
              HasSubstr("the tensor \"x\" is lost, DEVICE_LOST: its device has failed, and what it held is gone"));
  std::string reason;
  Downloaded(server, session, "x", &reason);
  EXPECT_EQ(reason, "HANDLE_POISONED");
  EXPECT_EQ(PutOn(server, session, "cuda", "x", {1, 2}), "HANDLE_POISONED");
  EXPECT_THAT(Downloaded(server, session, "here"), ElementsAre(1, 2));

  EXPECT_THAT(session.Delete({"x"}), IsEmpty());
  EXPECT_EQ(server.Metric("tensord_device_up", "cuda:0"), 0) << "until a run succeeds";
  ASSERT_EQ(PutOn(server, session, "cuda", "x", {1, 2}), "OK");
  std::vector<float> doubled;
  EXPECT_EQ(RanOn(server, use, &doubled), "cuda:0");
  EXPECT_THAT(doubled, ElementsAre(2, 4));
  EXPECT_EQ(server.Metric("tensord_device_up", "cuda:0"), 1);
  EXPECT_EQ(server.Metric("tensord_cuda_contexts_total", "lost"), 1);
  EXPECT_EQ(server.Metric("tensord_cuda_contexts_total", "revived"), 1);
  EXPECT_EQ(server.Metric("tensord_cuda_contexts_total", "failed"), 0);
}

// A run waits for the device while the one ahead of it loses its tensor, and its result is to be kept.
TEST_F(CudaServerTest, ALossBehindWhichOthersWaitIsToldToThem) {
  InProcessServer server(OnCuda({"cuda.executors=1"}));
  SessionClient session(server);
  ASSERT_EQ(PutOn(server, session, "", "x", Counted(1 << 12)), "OK");
  v1::ExecuteRequest ahead = session.Request(DoubleGraph()), behind = ahead;
  AddHandle(&ahead, "x");
  AddHandle(&behind, "x");
  Keep(&behind, "y");
  ASSERT_EQ(session.Run(ahead), "OK");
  const long launched = hostCudaCalls("cuLaunchKernel");
  hostCudaSet("HOLD", "1");
  std::string first, second;
  std::thread running([&] { first = session.Run(ahead); });
  ASSERT_TRUE(WaitFor([&] { return hostCudaCalls("cuLaunchKernel") > launched; }));
  std::thread waiting([&] { second = session.Run(behind); });
  const DeviceExecutor& executor = **server.parts().executors->Find("cuda:0");
  ASSERT_TRUE(WaitFor([&] { return executor.stats().queued == 1; }));
  hostCudaFail("cuMemcpyDtoHAsync_v2", 1, cuda::kCuIllegalAddress);
  hostCudaSet("HOLD", "0");
  running.join();
  waiting.join();
  EXPECT_EQ(first, "DEVICE_LOST");
  EXPECT_THAT(second, testing::AnyOf("DEVICE_LOST", "HANDLE_POISONED"));
  EXPECT_THAT(session.Delete({"x"}), IsEmpty());
  ASSERT_EQ(PutOn(server, session, "", "x", {1, 2}), "OK");
  EXPECT_EQ(session.Run(ahead), "OK");
}

// Tensors of clients that nobody has told yet.
TEST_F(CudaServerTest, ALossThatATransferMeetsPoisonsToo) {
  InProcessServer server(OnCuda());
  SessionClient session(server);
  for (const char* handle : {"x", "y"}) ASSERT_EQ(PutOn(server, session, "", handle, {1, 2}), "OK");
  hostCudaFail("cuMemcpyDtoHAsync_v2", 1, cuda::kCuLaunchFailed);
  std::string reason;
  Downloaded(server, session, "x", &reason);
  EXPECT_EQ(reason, "DEVICE_LOST");
  Downloaded(server, session, "y", &reason);
  EXPECT_EQ(reason, "HANDLE_POISONED");
  EXPECT_EQ(PutOn(server, session, "", "y", {1, 2}), "HANDLE_POISONED");
  EXPECT_THAT(session.Delete({"x", "y"}), IsEmpty());
  ASSERT_EQ(PutOn(server, session, "", "y", {3, 4}), "OK");
  EXPECT_THAT(Downloaded(server, session, "y"), ElementsAre(3, 4));
}

// One that names no device runs on the default one, by whatever order the devices were written in.
TEST_F(CudaServerTest, OneOfSeveralDevicesIsTheDefault) {
  hostCudaSet("DEVICES", "2");
  {
    InProcessServer server({"devices=cpu", "devices=cuda:0", "devices=cuda:1", "default_device=cuda:1",
                            "cuda.libraries=" + folder_, "cuda.memory_bytes=1048576"});
    EXPECT_THAT(DevicesIn(InfoWithCapabilities(server)), ElementsAre("cuda:1", "cpu:0", "cuda:0"));
    const long compiled = hostCudaCalls("nvrtcCompileProgram");
    EXPECT_EQ(RanOn(server, AddRequest()), "cuda:1");
    EXPECT_EQ(RanOn(server, On("cuda:0", AddRequest())), "cuda:0");
    EXPECT_EQ(hostCudaCalls("nvrtcCompileProgram") - compiled, 1) << "devices share machine code";
    EXPECT_EQ(RanOn(server, On("cpu", AddRequest())), "cpu:0");
    EXPECT_EQ(RanOn(server, On("cuda:2", AddRequest())), "DEVICE_UNKNOWN");
    SessionClient session(server);
    ASSERT_EQ(PutOn(server, session, "", "x", {1, 2}), "OK");
    EXPECT_EQ(BytesOn(server, "cuda:1"), server::kHandleBytes);
    EXPECT_EQ(BytesOn(server, "cuda:0"), 0);
    // Bounds are each device's own: what fills one leaves the other as it was.
    const std::string too_much = PutOn(server, session, "cuda:0", "big", Counted(1 << 19));
    EXPECT_EQ(too_much, "OK") << "resident tensors have a bound of their own";
    v1::ExecuteRequest twice = session.Request(DoubleGraph());
    AddHandle(&twice, "big");
    EXPECT_EQ(RanOn(server, On("cuda:0", twice)), "OUT_OF_MEMORY");
    v1::ExecuteRequest small = session.Request(DoubleGraph());
    AddHandle(&small, "x");
    std::vector<float> doubled;
    EXPECT_EQ(RanOn(server, small, &doubled), "cuda:1");
    EXPECT_THAT(doubled, ElementsAre(2, 4));
  }
  hostCudaSet("DEVICES", "");
}

TEST_F(CudaServerTest, DevicesRunAtOnce) {
  hostCudaSet("DEVICES", "2");
  hostCudaSet("DELAY_US", "500");
  {
    InProcessServer server({"devices=cuda:0", "devices=cuda:1", "cuda.libraries=" + folder_});
    std::vector<std::thread> clients;
    for (int client = 0; client < 4; ++client) {
      clients.emplace_back([&server, client] {
        const std::string device = client % 2 == 0 ? "cuda:0" : "cuda:1";
        SessionClient session(server);
        const std::vector<float> values = Counted(2000, static_cast<float>(client));
        ASSERT_EQ(PutOn(server, session, device, "x", values), "OK");
        for (int i = 0; i < 4; ++i) {
          v1::ExecuteRequest twice = session.Request(DoubleGraph());
          AddHandle(&twice, "x");
          std::vector<float> got;
          EXPECT_EQ(RanOn(server, On(device, twice), &got), device);
          std::vector<float> want = values;
          for (float& value : want) value *= 2;
          EXPECT_TRUE(got == want);
        }
      });
    }
    for (std::thread& client : clients) client.join();
    for (const char* device : {"cuda:0", "cuda:1"}) {
      EXPECT_EQ(server.Metric("tensord_device_up", device), 1);
      EXPECT_EQ(server.Metric("tensord_segment_launches_total", device), 8);
    }
  }
  hostCudaSet("DELAY_US", "");
  hostCudaSet("DEVICES", "");
}

// Extremes along one axis and the other, which are four kernels.
v1::Graph Alternating() {
  std::string text =
      "inputs { name: \"x\" type { dtype: DTYPE_F32 shape { size: 64 } } } "
      "nodes { name: \"x0\" inputs: \"x\" reshape { shape { size: 8 } shape { size: 8 } } } ";
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&text, "nodes { name: \"r", i, "\" inputs: \"x", i,
                    "\" reduce { kind: KIND_MAX dimensions: ", i % 2, " } } nodes { name: \"b", i, "\" inputs: \"r", i,
                    "\" broadcast_in_dim { shape { size: 8 } shape { size: 8 } broadcast_dimensions: ", 1 - i % 2,
                    " } } nodes { name: \"x", i + 1, "\" inputs: \"x", i, "\" inputs: \"b", i,
                    "\" binary: BINARY_OP_SUBTRACT } ");
  }
  return GraphOf(text + "outputs { name: \"y\" value: \"x4\" }");
}

TEST_F(CudaServerTest, ProgramsThatRunAgainAreGraphs) {
  hostCudaSet("WORK_US", "1");
  {
    InProcessServer server(OnCuda());
    SessionClient session(server);
    ASSERT_EQ(PutOn(server, session, "", "x", Counted(64)), "OK");
    v1::ExecuteRequest request = session.Request(Alternating());
    AddHandle(&request, "x");
    const auto events = [&server](const char* event) {
      return server.Metric("tensord_cuda_graph_events_total", event);
    };
    EXPECT_EQ(RanOn(server, request), "cuda:0") << "its segments are timed, one by one";
    for (int run = 0; run < 5; ++run) {
      EXPECT_EQ(RanOn(server, request), "cuda:0");
      EXPECT_EQ(events("captured"), run > 0);
      EXPECT_EQ(events("replayed"), run);
      EXPECT_EQ(server.Metric("tensord_cuda_graphs", "cuda:0"), run > 0);
    }
    EXPECT_EQ(events("failed"), 0);
    v1::ExplainRequest explain;
    *explain.mutable_graph() = Alternating();
    v1::ExplainResponse explained;
    grpc::ClientContext context;
    ASSERT_TRUE(server.stub().Explain(&context, explain, &explained).ok());
    EXPECT_THAT(explained.text(), HasSubstr("session 0, replayed as one graph of "));
  }
  hostCudaSet("WORK_US", "");
}

TEST_F(CudaServerTest, ProfilesAndExplainNameTheKernels) {
  InProcessServer server(OnCuda());
  v1::ExecuteRequest request = AddRequest();
  request.set_profile(true);
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(server.stub(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.stats().segments_size(), 1);
  const v1::SegmentProfile& segment = response.stats().segments(0);
  EXPECT_EQ(segment.backend(), "cuda");
  EXPECT_THAT(segment.kernel(), HasSubstr("add"));
  EXPECT_EQ(segment.nodes_size(), 1);
  const auto nanoseconds = [](const google::protobuf::Duration& d) { return d.seconds() * 1'000'000'000 + d.nanos(); };
  EXPECT_GT(nanoseconds(segment.duration()), 0);
  EXPECT_LE(nanoseconds(segment.start()) + nanoseconds(segment.duration()),
            nanoseconds(response.stats().run_time()) + 1'000'000)
      << "the device's clock rounds";
  v1::ExplainRequest explain;
  *explain.mutable_graph() = SmallAdd();
  v1::ExplainResponse explained;
  grpc::ClientContext context;
  ASSERT_TRUE(server.stub().Explain(&context, explain, &explained).ok());
  EXPECT_THAT(explained.text(), HasSubstr("kernel  printed map, 1 element a thread, 1 launch of 1 x 32 threads, "));
}

// Two devices of one server, each with its memory, its kernels and its faults.
TEST_F(CudaServerTest, SeveralDevicesAreApart) {
  hostCudaSet("DEVICES", "2");
  {
    InProcessServer server({"devices=cuda:1", "devices=cuda:0", "cuda.libraries=" + folder_});
    EXPECT_THAT(DevicesIn(InfoWithCapabilities(server)), ElementsAre("cuda:1", "cuda:0"));
    SessionClient session(server);
    for (const char* device : {"cuda:0", "cuda:1"}) {
      ASSERT_EQ(PutOn(server, session, device, device, {1, 2}), "OK");
      v1::ExecuteRequest twice = session.Request(DoubleGraph());
      AddHandle(&twice, device);
      std::vector<float> doubled;
      EXPECT_EQ(RanOn(server, On(device, twice), &doubled), device);
      EXPECT_THAT(doubled, ElementsAre(2, 4));
      EXPECT_EQ(RanOn(server, On(device == std::string("cuda:0") ? "cuda:1" : "cuda:0", twice)), "ARGUMENT_MISMATCH");
    }
    hostCudaFail("cuLaunchKernel", 1, cuda::kCuIllegalAddress);
    EXPECT_EQ(RanOn(server, On("cuda:0", AddRequest())), "DEVICE_LOST");
    EXPECT_EQ(server.Metric("tensord_device_up", "cuda:0"), 0);
    EXPECT_EQ(server.Metric("tensord_device_up", "cuda:1"), 1);
    std::string reason;
    Downloaded(server, session, "cuda:0", &reason);
    EXPECT_EQ(reason, "HANDLE_POISONED");
    EXPECT_THAT(Downloaded(server, session, "cuda:1"), ElementsAre(1, 2));
    EXPECT_EQ(RanOn(server, On("cuda:1", AddRequest())), "cuda:1");
    EXPECT_EQ(RanOn(server, On("cuda:0", AddRequest())), "cuda:0");
    EXPECT_EQ(server.Metric("tensord_device_up", "cuda:0"), 1);
  }
  hostCudaSet("DEVICES", "");
}

}  // namespace
}  // namespace tensord
