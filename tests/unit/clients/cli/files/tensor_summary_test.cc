#include "clients/cli/files/tensor_summary.h"

#include <complex>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using client::HostTensor;
using client::MemoryOrder;

TEST(Summarize, ShowsValuesInRowMajorSequence) {
  EXPECT_EQ(Summarize(*HostTensor::FromVector(std::vector<float>{1, 4, 2, 5, 3, 6}, {2, 3}, MemoryOrder::kColumnMajor)),
            "f32[2,3] 1, 2, 3, 4, 5, 6");
}

TEST(Summarize, CutsLongTensors) {
  EXPECT_EQ(Summarize(*HostTensor::FromVector(std::vector<int64_t>(100, -3), {100})),
            "i64[100] -3, -3, -3, -3, -3, -3, -3, -3, …");
}

TEST(Summarize, ShowsEveryDType) {
  EXPECT_EQ(Summarize(HostTensor::Scalar(true)), "bool[] true");
  EXPECT_EQ(Summarize(HostTensor::Scalar(int32_t{-7})), "i32[] -7");
  EXPECT_EQ(Summarize(HostTensor::Scalar(0.1)), "f64[] 0.1");
  EXPECT_EQ(Summarize(HostTensor::Scalar(std::numeric_limits<float>::infinity())), "f32[] inf");
  EXPECT_EQ(Summarize(HostTensor::Scalar(client::Half::FromFloat(1.5f))), "f16[] 1.5");
  EXPECT_EQ(Summarize(HostTensor::Scalar(client::BFloat16::FromFloat(-2))), "bf16[] -2");
  EXPECT_EQ(Summarize(HostTensor::Scalar(std::complex<float>(1, -2))), "c64[] 1-2i");
  EXPECT_EQ(Summarize(HostTensor::Scalar(std::complex<double>(0, 2))), "c128[] 0+2i");
  EXPECT_EQ(Summarize(HostTensor()), "f32[0] ");
}

}  // namespace
}  // namespace tensord::cli
