#include "clients/cli/files/tensor_summary.h"

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "clients/cli/shell/json_text.h"
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

std::string JsonOf(const HostTensor& tensor) { return JsonText(FirstValues(tensor, 4), JsonLayout::kOneLine); }

TEST(FirstValues, AreNumbersInJson) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(JsonOf(*HostTensor::FromVector(std::vector<float>{0.1f, -3, 1e30f, kNaN, 5}, {5})),
            "[0.1,-3,1e+30,\"NaN\"]\n");
  EXPECT_EQ(JsonOf(*HostTensor::FromVector(std::vector<double>{0.1, 1.0 / 3, kInfinity, -kInfinity}, {4})),
            "[0.1,0.3333333333333333,\"Infinity\",\"-Infinity\"]\n");
  const int64_t exact = int64_t{1} << 53;
  EXPECT_EQ(JsonOf(*HostTensor::FromVector(std::vector<int64_t>{exact, -exact, exact + 1, INT64_MIN}, {4})),
            "[9007199254740992,-9007199254740992,\"9007199254740993\",\"-9223372036854775808\"]\n");
  EXPECT_EQ(JsonOf(HostTensor::Scalar(int32_t{-7})), "[-7]\n");
  EXPECT_EQ(JsonOf(HostTensor::Scalar(true)), "[true]\n");
  EXPECT_EQ(JsonOf(HostTensor::Scalar(client::Half::FromFloat(1.5f))), "[1.5]\n");
  EXPECT_EQ(JsonOf(HostTensor::Scalar(client::BFloat16::FromFloat(-2))), "[-2]\n");
  EXPECT_EQ(JsonOf(HostTensor::Scalar(std::complex<float>(1, 0.1f))), "[[1,0.1]]\n");
  EXPECT_EQ(JsonOf(*HostTensor::FromVector(std::vector<float>{1, 4, 2, 5}, {2, 2}, MemoryOrder::kColumnMajor)),
            "[1,2,4,5]\n");
}

}  // namespace
}  // namespace tensord::cli
