// Fused reductions on the host CUDA device, with their accesses checked: values, races, and how memory is read.
#include "backends/cuda/kernels/printed_kernel.h"

#include <memory>
#include <string>

#include "absl/strings/substitute.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

std::string Softmax(int64_t length, int64_t rows, absl::string_view dtype) {
  return absl::Substitute(R"(graph "g" {
    %x = input : $2[$0,$1]
    %m = reduce(%x) {kind = max, dimensions = [0]}
    %mb = broadcast_in_dim(%m) {shape = [$0, $1], broadcast_dimensions = [1]}
    %d = subtract(%x, %mb)
    %e = exp(%d)
    %s = reduce(%e) {kind = sum, dimensions = [0]}
    %sb = broadcast_in_dim(%s) {shape = [$0, $1], broadcast_dimensions = [1]}
    %softmax = divide(%e, %sb)
    output "softmax" = %softmax
  })",
                          length, rows, dtype);
}

std::string SquaresByColumn(int64_t columns, int64_t rows, absl::string_view dtype) {
  return absl::Substitute(R"(graph "g" {
    %x = input : $2[$0,$1]
    %square = multiply(%x, %x)
    %sum = reduce(%square) {kind = sum, dimensions = [1]}
    output "sum" = %sum
  })",
                          columns, rows, dtype);
}

class PrintedKernelTest : public BesideCpuTest {
 protected:
  // A device of one processor, which is full soon.
  void SetUp() override {
    hostCudaSet("CHECK", "1");
    hostCudaSet("MULTIPROCESSORS", "1");
  }
  void TearDown() override {
    hostCudaSet("CHECK", "");
    hostCudaSet("MULTIPROCESSORS", "");
    BesideCpuTest::TearDown();
  }

  // Returns the sectors that a warp touches by one request for global memory, on average, of a run beside the CPU.
  double Sectors(const std::string& text, const ConcreteType& type, const Tolerance& tolerance) {
    const std::unique_ptr<Backend> backend = Made();
    const long problems = hostCudaProblems();
    HostCounts counts;
    hostCudaTakeCounts(&counts);
    ExpectAsOnCpu(backend.get(), text, {RandomLiteral(type, Values::kModest, &random_)}, tolerance);
    hostCudaTakeCounts(&counts);
    EXPECT_EQ(hostCudaProblems(), problems);
    EXPECT_GT(counts.global_requests, 0);
    shared_requests_ = counts.shared_requests;
    return static_cast<double>(counts.global_sectors) / static_cast<double>(counts.global_requests);
  }
  long shared_requests_ = 0;
};

// 16 bytes a thread are 16 sectors a warp: whole ones, and a quarter of the requests that elements of 4 bytes take.
TEST_F(PrintedKernelTest, RowsAreReadByVectors) {
  EXPECT_EQ(Sectors(Softmax(1024, 24, "f32"), {DType::kF32, {1024, 24}}, {.norm_relative = 1e-5}), 16.0);
  EXPECT_EQ(shared_requests_, 0) << "a warp has a row, and joins by itself";
  EXPECT_EQ(Sectors(Softmax(4096, 8, "bf16"), {DType::kBF16, {4096, 8}}, {.ulps = 1.01, .norm_relative = 3e-2}), 16.0);
  EXPECT_EQ(Sectors(Softmax(32768, 4, "f32"), {DType::kF32, {32768, 4}}, {.norm_relative = 1e-5}), 16.0);
  EXPECT_GT(shared_requests_, 0);
}

TEST_F(PrintedKernelTest, ColumnsAreReadByVectorsAndTheirPartsSideBySide) {
  EXPECT_EQ(Sectors(SquaresByColumn(1024, 600, "f32"), {DType::kF32, {1024, 600}}, {.norm_relative = 1e-5}), 16.0);
  hostCudaSet("MULTIPROCESSORS", "16");
  const double split =
      Sectors(SquaresByColumn(1024, 600, "f16"), {DType::kF16, {1024, 600}}, {.ulps = 1.01, .norm_relative = 4e-3});
  EXPECT_GT(split, 15.0);
  EXPECT_LE(split, 16.0);
}

// Rows whose length is no multiple of a vector are read element by element, whole sectors still.
TEST_F(PrintedKernelTest, OtherRowsAreReadByElements) {
  const double sectors = Sectors(Softmax(1023, 8, "f32"), {DType::kF32, {1023, 8}}, {.norm_relative = 1e-5});
  EXPECT_LE(sectors, 5.0) << "rows begin anywhere: a fifth sector";
  EXPECT_GE(sectors, 4.0);
}

}  // namespace
}  // namespace tensord::cuda
