#include <string>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

class HostAccessChecksTest : public HostDeviceTest {
 protected:
  void SetUp() override {
    HostDeviceTest::SetUp();
    cuda.hostCudaSet("CHECK", "1");
  }

  // Runs a kernel of one pointer. Returns how many of its accesses were wrong.
  long Problems(const std::string& body, unsigned blocks, unsigned threads, unsigned shared_bytes = 0) {
    const CuFunction kernel = Kernel("extern \"C\" __global__ void k(int* x) {" + body + "}", "k");
    CuAddress x = Device(4096);
    Write(x, std::vector<int>(1024));
    const long before = cuda.hostCudaProblems();
    EXPECT_EQ(Launch(kernel, a, blocks, threads, {&x}, shared_bytes), kCuSuccess);
    const CuResult result = cuda.cuStreamSynchronize(a);
    const long problems = cuda.hostCudaProblems() - before;
    // A wrong access may be a fault besides.
    EXPECT_EQ(result == kCuSuccess, problems == 0) << body;
    if (problems != 0) {
      EXPECT_EQ(cuda.cuDevicePrimaryCtxReset_v2(0), kCuSuccess);
      Retain();
    }
    return problems;
  }

  HostCounts Counts(const std::string& body) {
    HostCounts counts;
    cuda.hostCudaTakeCounts(&counts);
    EXPECT_EQ(Problems(body, 1, 32), 0);
    cuda.hostCudaTakeCounts(&counts);
    EXPECT_EQ(counts.launches, 1);
    return counts;
  }
};

TEST_F(HostAccessChecksTest, Bounds) {
  EXPECT_EQ(Problems("x[threadIdx.x] = 1;", 1, 1024), 0);
  EXPECT_EQ(Problems("x[threadIdx.x + 1] = 1;", 1, 1024), 1) << "the last thread, by one element";
  EXPECT_EQ(Problems("if (x[(int)threadIdx.x - 1] == 7) x[0] = 1;", 1, 1), 1);
  EXPECT_EQ(Problems("extern __shared__ int s[]; s[threadIdx.x] = 1;", 1, 64, 64 * 4), 0);
  EXPECT_EQ(Problems("extern __shared__ int s[]; s[threadIdx.x] = 1;", 1, 64, 63 * 4), 1);
}

TEST_F(HostAccessChecksTest, RacesInABlock) {
  const std::string put = "__shared__ int s[64]; s[threadIdx.x] = (int)threadIdx.x;";
  const std::string dynamic = "extern __shared__ int s[]; s[threadIdx.x] = (int)threadIdx.x;";
  for (const std::string& begin : {put, dynamic}) {
    EXPECT_EQ(Problems(begin + "__syncthreads(); x[threadIdx.x] = s[63 - threadIdx.x];", 1, 64, 256), 0);
    EXPECT_GT(Problems(begin + "x[threadIdx.x] = s[63 - threadIdx.x]; __syncthreads();", 1, 64, 256), 0);
    EXPECT_EQ(Problems(begin + "__syncwarp(); x[threadIdx.x] = s[threadIdx.x ^ 1];", 1, 64, 256), 0);
    EXPECT_GT(Problems(begin + "__syncwarp(); x[threadIdx.x] = s[threadIdx.x ^ 32];", 1, 64, 256), 0)
        << "a warp does not wait for the other one";
    EXPECT_GT(Problems(begin + "__syncthreads(); int y = s[63 - threadIdx.x]; s[threadIdx.x] = y + 1;", 1, 64, 256), 0)
        << "a write after others' reads";
  }
  EXPECT_GT(Problems("x[0] = (int)threadIdx.x;", 1, 2), 0) << "two writes";
  const std::string read = "__shared__ int s[64]; s[threadIdx.x] = 1; __syncthreads(); int y = s[5] + s[40]; ";
  const std::string write = "if (threadIdx.x == 5) s[5] = y; x[threadIdx.x] = y;";
  EXPECT_EQ(Problems(read + "__syncwarp(); " + write, 1, 32), 0) << "a warp has read it";
  EXPECT_EQ(Problems(read + "__syncwarp(); y += s[5]; __syncwarp(); " + write, 1, 32), 0) << "twice";
  EXPECT_GT(Problems(read + write, 1, 32), 0);
  EXPECT_GT(Problems(read + "__syncwarp(); y += s[5]; " + write, 1, 32), 0) << "again, and did not wait";
  EXPECT_GT(Problems(read + "__syncwarp(); " + write, 1, 64), 0) << "the other warp as well";
  EXPECT_EQ(Problems("x[threadIdx.x] = x[threadIdx.x] + x[100];", 1, 64), 0) << "all read";
}

TEST_F(HostAccessChecksTest, RacesOfBlocks) {
  EXPECT_EQ(Problems("x[blockIdx.x] = 1;", 4, 1), 0);
  EXPECT_GT(Problems("x[0] = 1;", 4, 1), 0);
  EXPECT_GT(Problems("if (blockIdx.x == 0) x[0] = 1; else if (x[0] == 5) x[1] = 1;", 2, 1), 0);
  EXPECT_GT(Problems("__syncthreads(); if (blockIdx.x == 0) x[0] = 1; else if (x[0] == 5) x[1] = 1;", 2, 1), 0)
      << "barriers do not order blocks";
  EXPECT_EQ(
      Problems("__shared__ int s[32]; s[threadIdx.x] = 1; x[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];", 4, 32),
      0)
      << "each block has its own";
}

TEST_F(HostAccessChecksTest, AtomicsAreOrdered) {
  EXPECT_EQ(Problems("atomicAdd(x, 1);", 4, 64), 0);
  EXPECT_GT(Problems("atomicAdd(x, 1); if (threadIdx.x == 5) x[0] = 3;", 1, 64), 0);
  EXPECT_GT(Problems("atomicAdd(x + 1024, 1);", 1, 1), 0) << "bounds hold for them too";
}

TEST_F(HostAccessChecksTest, LaunchesDoNotRace) {
  const CuFunction kernel =
      Kernel("extern \"C\" __global__ void k(int* x) { x[31 - threadIdx.x] = (int)threadIdx.x; }", "k");
  CuAddress x = Device(128);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Launch(kernel, a, 1, 32, {&x}), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
}

TEST_F(HostAccessChecksTest, CountsSectorsAndTurns) {
  HostCounts counts = Counts("x[threadIdx.x] = 1;");
  EXPECT_EQ(counts.global_requests, 1);
  EXPECT_EQ(counts.global_sectors, 4) << "32 elements of 4 bytes in a row";
  counts = Counts("x[threadIdx.x * 8] = 1;");
  EXPECT_EQ(counts.global_sectors, 32) << "a sector for each";
  counts = Counts("__shared__ volatile int s[1024]; s[threadIdx.x] = 1;");
  EXPECT_EQ(counts.shared_requests, 1);
  EXPECT_EQ(counts.shared_turns, 1);
  counts = Counts("__shared__ volatile int s[1024]; s[threadIdx.x * 32] = 1;");
  EXPECT_EQ(counts.shared_turns, 32) << "all in one bank";
  counts = Counts("__shared__ volatile int s[1088]; s[threadIdx.x * 33] = 1;");
  EXPECT_EQ(counts.shared_turns, 1) << "padded";
}

}  // namespace
}  // namespace tensord::cuda
