#include "tensord/printing.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

// The texts are NumPy's own (1.24) for the same arrays.
namespace tensord::client {
namespace {

template <typename T>
std::string Text(std::vector<T> values, Shape shape = {-1}) {
  if (shape == Shape{-1}) shape = {static_cast<int64_t>(values.size())};
  return ToString(*HostTensor::FromVector(std::move(values), std::move(shape)));
}

template <typename T>
std::vector<T> Iota(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T(0));
  return values;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

TEST(Printing, AlignsColumnsAtThePoint) {
  EXPECT_EQ(Text<float>({1, 2.5, -3, 4, 5, 6}, {2, 3}), "[[ 1.   2.5 -3. ]\n [ 4.   5.   6. ]]");
  EXPECT_EQ(Text<double>({1. / 3, 2. / 3, 1}), "[0.33333333 0.66666667 1.        ]");
  EXPECT_EQ(Text<float>({1.f / 3, 2.f / 3, 1}), "[0.33333334 0.6666667  1.        ]");
  EXPECT_EQ(Text<double>({0, 0, 0}), "[0. 0. 0.]");
  EXPECT_EQ(Text<double>({-0.0, 1}), "[-0.  1.]");
  EXPECT_EQ(Text<int64_t>({1, -20, 300, 4}, {2, 2}), "[[  1 -20]\n [300   4]]");
  EXPECT_EQ(Text<bool>({true, false}), "[ True False]");
}

TEST(Printing, HasExponentsWhereTheRangeIsWide) {
  EXPECT_EQ(Text<double>({1e-5, 1, 123456}), "[1.00000e-05 1.00000e+00 1.23456e+05]");
  EXPECT_EQ(Text<float>({1e10f, -1.5f}), "[ 1.0e+10 -1.5e+00]");
  EXPECT_EQ(Text<double>({1, 1e-300, 1e300}), "[1.e+000 1.e-300 1.e+300]");
}

TEST(Printing, PrintsWhatIsNotFinite) {
  EXPECT_EQ(Text<double>({kNan, -kInfinity, 1.5}), "[ nan -inf  1.5]");
  EXPECT_EQ(Text<double>({kNan, kNan}), "[nan nan]");
}

TEST(Printing, FillsColumnsWithTheValuesOwnDigits) {
  EXPECT_EQ(Text<float>({1e-5f, 1234.5678f}), "[9.9999997e-06 1.2345677e+03]");
  EXPECT_EQ(Text<Half>({Half::FromFloat(6e-8f), Half::FromFloat(65504), Half::FromFloat(1)}),
            "[5.96e-08 6.55e+04 1.00e+00]");
  EXPECT_EQ(Text<Half>({Half::FromFloat(46048), Half::FromFloat(INFINITY)}), "[46048.    inf]");
  EXPECT_EQ(Text<Half>({Half::FromFloat(2540), Half::FromFloat(-26512)}), "[  2540. -26512.]");
}

TEST(Printing, PrintsComplexNumbers) {
  EXPECT_EQ(Text<std::complex<double>>({{1, 2}, {-0.5, -0.1}}), "[ 1. +2.j  -0.5-0.1j]");
  EXPECT_EQ(Text<std::complex<double>>({{1, kNan}, {-0.5, -0.1}}), "[ 1. +nanj -0.5-0.1j]");
  EXPECT_EQ(Text<std::complex<double>>({{1, kNan}, {2, -0.0}}), "[1.+nanj 2. -0.j]");
}

TEST(Printing, PrintsNarrowFloatsWithTheDigitsThatTheyHave) {
  EXPECT_EQ(Text<Half>({Half::FromFloat(0.1f), Half::FromFloat(65504), Half::FromFloat(1)}),
            "[1.00e-01 6.55e+04 1.00e+00]");
  EXPECT_EQ(Text<Half>({Half::FromFloat(0.1f), Half::FromFloat(2), Half::FromFloat(1)}), "[0.1 2.  1. ]");
  // A power of two, whose neighbours lie closer below than above.
  EXPECT_EQ(Text<Half>({Half::FromFloat(0.015625f), Half::FromFloat(0.3f)}), "[0.01563 0.3    ]");
  EXPECT_EQ(ToString(HostTensor::Scalar(Half::FromFloat(-0.015625f))), "-0.01563");
  EXPECT_EQ(Text<BFloat16>({BFloat16::FromFloat(0.1f), BFloat16::FromFloat(2)}), "[0.1 2. ]");
}

TEST(Printing, PrintsAScalarAlone) {
  EXPECT_EQ(ToString(HostTensor::Scalar(1.5f)), "1.5");
  EXPECT_EQ(ToString(HostTensor::Scalar(2.0)), "2.0");
  EXPECT_EQ(ToString(HostTensor::Scalar(1e20)), "1e+20");
  EXPECT_EQ(ToString(HostTensor::Scalar(int64_t{7})), "7");
  EXPECT_EQ(ToString(HostTensor::Scalar(true)), "True");
  EXPECT_EQ(ToString(HostTensor::Scalar(std::complex<double>(1, 2))), "(1+2j)");
  EXPECT_EQ(ToString(HostTensor::Scalar(std::complex<double>(0, 2))), "2j");
  EXPECT_EQ(ToString(HostTensor::Scalar(std::complex<double>(-0.0, 2))), "(-0+2j)");
  EXPECT_EQ(ToString(HostTensor::Scalar(std::complex<float>(0, kNan))), "nanj");
}

TEST(Printing, SummarizesLargeTensors) {
  EXPECT_EQ(Text(Iota<int64_t>(1001)), "[   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(Text(Iota<double>(2000), {40, 50}),
            "[[0.000e+00 1.000e+00 2.000e+00 ... 4.700e+01 4.800e+01 4.900e+01]\n"
            " [5.000e+01 5.100e+01 5.200e+01 ... 9.700e+01 9.800e+01 9.900e+01]\n"
            " [1.000e+02 1.010e+02 1.020e+02 ... 1.470e+02 1.480e+02 1.490e+02]\n"
            " ...\n"
            " [1.850e+03 1.851e+03 1.852e+03 ... 1.897e+03 1.898e+03 1.899e+03]\n"
            " [1.900e+03 1.901e+03 1.902e+03 ... 1.947e+03 1.948e+03 1.949e+03]\n"
            " [1.950e+03 1.951e+03 1.952e+03 ... 1.997e+03 1.998e+03 1.999e+03]]");
}

TEST(Printing, BreaksLongLines) {
  std::vector<int64_t> values = Iota<int64_t>(40);
  for (int64_t& value : values) value *= 1000;
  EXPECT_EQ(Text(values),
            "[    0  1000  2000  3000  4000  5000  6000  7000  8000  9000 10000 11000\n"
            " 12000 13000 14000 15000 16000 17000 18000 19000 20000 21000 22000 23000\n"
            " 24000 25000 26000 27000 28000 29000 30000 31000 32000 33000 34000 35000\n"
            " 36000 37000 38000 39000]");
}

TEST(Printing, NestsAxesAndReadsBothOrders) {
  const HostTensor cube = *HostTensor::FromVector(Iota<int64_t>(8), {2, 2, 2});
  EXPECT_EQ(ToString(cube), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  EXPECT_EQ(ToString(cube.InOrder(MemoryOrder::kColumnMajor)), ToString(cube));
  EXPECT_EQ(Text<double>({}, {0, 3}), "[]");
  std::ostringstream out;
  out << cube;
  EXPECT_EQ(out.str(), ToString(cube));
}

TEST(Printing, HeedsItsOptions) {
  const HostTensor tensor = *HostTensor::FromVector(std::vector<double>{1. / 3, 2, 3, 4, 5}, {5});
  EXPECT_EQ(ToString(tensor, {.precision = 2, .threshold = 4, .edge_elements = 1}), "[0.33 ... 5.  ]");
}

}  // namespace
}  // namespace tensord::client
