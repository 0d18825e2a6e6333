#include <thread>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

using HostStreamsTest = HostDeviceTest;

TEST_F(HostStreamsTest, WorkOfAStreamIsDoneInOrder) {
  cuda.hostCudaSet("DELAY_US", "300");
  cuda.hostCudaSet("HOLD", "1");
  const CuAddress x = Device(4);
  for (unsigned i = 0; i < 50; ++i) ASSERT_EQ(cuda.cuMemsetD32Async(x, i, 1, a), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamQuery(a), kCuNotReady);
  cuda.hostCudaSet("HOLD", "0");
  EXPECT_EQ(Read<unsigned>(x, 1).front(), 49u);
  EXPECT_EQ(cuda.cuStreamQuery(a), kCuSuccess);
}

TEST_F(HostStreamsTest, EventsTellWhatIsDone) {
  CuEvent begin = nullptr, end = nullptr, untimed = nullptr;
  ASSERT_EQ(cuda.cuEventCreate(&begin, 0), kCuSuccess);
  ASSERT_EQ(cuda.cuEventCreate(&end, kCuEventBlockingSync), kCuSuccess);
  ASSERT_EQ(cuda.cuEventCreate(&untimed, kCuEventDisableTiming), kCuSuccess);
  EXPECT_EQ(cuda.cuEventQuery(end), kCuSuccess) << "never recorded";
  EXPECT_EQ(cuda.cuStreamWaitEvent(b, end, 0), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(b), kCuSuccess);

  const CuAddress x = Device(4);
  float ms = -1;
  cuda.hostCudaSet("HOLD", "1");
  ASSERT_EQ(cuda.cuEventRecord(begin, a), kCuSuccess);
  for (int i = 0; i < 20; ++i) cuda.cuMemsetD32Async(x, 0, 1, a);
  ASSERT_EQ(cuda.cuEventRecord(end, a), kCuSuccess);
  ASSERT_EQ(cuda.cuEventRecord(untimed, a), kCuSuccess);
  EXPECT_EQ(cuda.cuEventQuery(end), kCuNotReady);
  EXPECT_EQ(cuda.cuEventElapsedTime(&ms, begin, end), kCuNotReady);
  cuda.hostCudaSet("HOLD", "0");
  EXPECT_EQ(cuda.cuEventSynchronize(end), kCuSuccess);
  EXPECT_EQ(cuda.cuEventQuery(end), kCuSuccess);
  EXPECT_EQ(cuda.cuEventElapsedTime(&ms, begin, end), kCuSuccess);
  EXPECT_GT(ms, 0);
  EXPECT_EQ(cuda.cuEventElapsedTime(&ms, begin, untimed), kCuInvalidHandle);
  EXPECT_EQ(cuda.cuEventDestroy_v2(end), kCuSuccess);
  EXPECT_EQ(cuda.cuEventQuery(end), kCuInvalidHandle);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
}

TEST_F(HostStreamsTest, ThereIsNoDefaultStream) {
  EXPECT_EQ(cuda.cuMemsetD8Async(Device(1), 0, 1, nullptr), kCuInvalidHandle);
  EXPECT_EQ(cuda.cuStreamSynchronize(nullptr), kCuInvalidHandle);
  EXPECT_EQ(cuda.cuStreamDestroy_v2(b), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamQuery(b), kCuInvalidHandle);
}

TEST_F(HostStreamsTest, EachThreadHasToSetTheContext) {
  CuResult without = kCuSuccess, with = kCuUnknown;
  CuContext context = nullptr;
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), kCuSuccess);
  std::thread([&] {
    without = cuda.cuStreamQuery(a);
    cuda.cuCtxSetCurrent(context);
    with = cuda.cuStreamQuery(a);
  }).join();
  EXPECT_EQ(without, kCuInvalidContext);
  EXPECT_EQ(with, kCuSuccess);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamQuery(a), kCuSuccess) << "the test retains it";
}

TEST_F(HostStreamsTest, GraphsAreCapturedAndReplayed) {
  const CuFunction scale = Kernel(kScale, "scale"), turn = Kernel(kReverse, "turn");
  constexpr int kN = 2560;
  CuAddress x = Device(kN * 8);
  std::vector<double> values(kN);
  for (int i = 0; i < kN; ++i) values[static_cast<size_t>(i)] = i;
  Write(x, values);
  long long n = kN;
  double k = 2;
  int status = -1;
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(a, kCuCaptureThreadLocal), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamIsCapturing(a, &status), kCuSuccess);
  EXPECT_EQ(status, kCuCaptureStatusActive);
  EXPECT_EQ(Launch(scale, a, 10, 256, {&x, &x, &n, &k}), kCuSuccess);
  EXPECT_EQ(Launch(turn, a, 10, 256, {&x}), kCuSuccess);
  CuGraph graph = nullptr;
  CuGraphExec exec = nullptr;
  ASSERT_EQ(cuda.cuStreamEndCapture(a, &graph), kCuSuccess);
  ASSERT_EQ(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), kCuSuccess);
  EXPECT_EQ(cuda.cuGraphDestroy(graph), kCuSuccess);
  EXPECT_EQ(Read<double>(x, kN), values) << "nothing has run yet";
  for (int r = 0; r < 3; ++r) EXPECT_EQ(cuda.cuGraphLaunch(exec, a), kCuSuccess);
  for (size_t i = 0; i < kN; ++i) values[i] = 8.0 * static_cast<double>(i / 256 * 256 + 255 - i % 256);
  EXPECT_EQ(Read<double>(x, kN), values);
  EXPECT_EQ(cuda.cuGraphExecDestroy(exec), kCuSuccess);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, a), kCuInvalidHandle);
}

TEST_F(HostStreamsTest, CallsThatWaitSpoilACapture) {
  CuGraph graph = nullptr;
  CuAddress x = Device(4), more = 0;
  int status = 0;
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(a, kCuCaptureThreadLocal), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuStreamCaptureUnsupported);
  EXPECT_EQ(cuda.cuStreamIsCapturing(a, &status), kCuSuccess);
  EXPECT_EQ(status, kCuCaptureStatusInvalidated);
  EXPECT_EQ(cuda.cuMemsetD8Async(x, 0, 1, a), kCuStreamCaptureInvalidated);
  EXPECT_EQ(cuda.cuStreamEndCapture(a, &graph), kCuStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cuda.cuStreamEndCapture(a, &graph), kCuInvalidValue) << "nothing is captured any more";

  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(a, kCuCaptureThreadLocal), kCuSuccess);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, 4), kCuStreamCaptureUnsupported);
  EXPECT_EQ(cuda.cuStreamEndCapture(a, &graph), kCuStreamCaptureInvalidated);

  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(a, kCuCaptureRelaxed), kCuSuccess);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, 4), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamEndCapture(a, &graph), kCuSuccess);
}

}  // namespace
}  // namespace tensord::cuda
