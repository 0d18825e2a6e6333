#include "backends/cpu/fft/kernels.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/fft/line_step.h"
#include "backends/cpu/fft/long_transform.h"
#include "backends/cpu/fft/transforms.h"
#include "engine/base/allocated_bytes.h"
#include "engine/base/refusal.h"
#include "engine/families/fft/fft_ops.h"
#include "engine/families/fft/fft_steps.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/kernel_call.h"

namespace tensord::cpu {
namespace {

struct FftCall {
  FftKind kind = FftKind::kFft;
  Ints axes;
  Ints lengths;
  FftNorm norm = FftNorm::kBackward;
  DType dtype = DType::kC128;
  Ints shape;
};

std::string ToString(const FftCall& call) {
  return testing::PrintToString(static_cast<int>(call.kind)) + " of " + std::string(Name(call.dtype)) +
         testing::PrintToString(call.shape) + " along " + testing::PrintToString(call.axes) + " to " +
         testing::PrintToString(call.lengths) + ", norm " + testing::PrintToString(static_cast<int>(call.norm));
}

Attributes AttributesOf(const FftCall& call) {
  Attributes attrs(FftOps()[0].attrs);
  attrs.Set("kind", static_cast<int64_t>(call.kind)).Set("axes", call.axes).Set("lengths", call.lengths);
  attrs.Set("norm", static_cast<int64_t>(call.norm));
  return attrs;
}

ConcreteType ResultType(const Attributes& attrs, const ConcreteType& operand) {
  const TensorType type = ToTensorType(operand);
  const TensorType* const types[] = {&type};
  std::vector<ShapeGuard> guards;
  InferContext context(attrs, types, 0, "y", &guards, nullptr);
  const absl::StatusOr<ResultTypes> results = FftOps()[0].infer.get()(context);
  EXPECT_TRUE(results.ok()) << results.status();
  return ToConcreteType((*results)[0]);
}

template <typename T>
void FillRandom(absl::Span<T> values) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(normal(random));
    } else {
      using Real = typename T::value_type;
      value = T(static_cast<Real>(normal(random)), static_cast<Real>(normal(random)));
    }
  }
}

Literal RandomValues(DType dtype, const Ints& shape) {
  Literal literal = *Literal::Create({dtype, Shape(shape.begin(), shape.end())});
  if (dtype == DType::kF32) FillRandom(literal.mutable_values<float>());
  if (dtype == DType::kF64) FillRandom(literal.mutable_values<double>());
  if (dtype == DType::kC64) FillRandom(literal.mutable_values<std::complex<float>>());
  if (dtype == DType::kC128) FillRandom(literal.mutable_values<std::complex<double>>());
  return literal;
}

// Returns the transforms of all tests but those that have their own.
FftTransforms& Transforms() {
  static FftTransforms* const transforms = new FftTransforms();
  return *transforms;
}

Literal RunFft(const Attributes& attrs, const Literal& operand, int threads) {
  const ConcreteType type = ResultType(attrs, operand.type());
  Literal result = *Literal::Create(type);
  if (!result.bytes().empty()) std::memset(result.mutable_data(), 0x5a, result.bytes().size());
  BoundInstruction bound{.op = &FftOps()[0], .attrs = &attrs};
  bound.operands.push_back(operand.type());
  bound.results.push_back(type);
  const absl::StatusOr<std::unique_ptr<Kernel>> kernel = FftKernels()[0].make(bound, {.fft = &Transforms()});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return result;
  std::vector<char> storage(static_cast<size_t>((*kernel)->scratch_bytes()) + 64);
  char* const scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  const void* const operands[] = {operand.bytes().data()};
  void* const results[] = {result.mutable_data()};
  ThreadPool pool(threads);
  (*kernel)->Run({.operands = operands, .results = results, .scratch = scratch, .pool = &pool});
  return result;
}

template <typename T>
double LargestOf(absl::Span<const T> values) {
  double largest = 0;
  for (T value : values) largest = std::max(largest, static_cast<double>(std::abs(value)));
  return largest;
}

// In units of the largest expected value's rounding.
template <typename T>
double LargestError(const Literal& actual, const Literal& expected) {
  const double largest = LargestOf(expected.values<T>());
  double error = 0;
  for (size_t i = 0; i < actual.values<T>().size(); ++i) {
    const double difference = static_cast<double>(std::abs(actual.values<T>()[i] - expected.values<T>()[i]));
    if (!(difference <= error)) error = difference;  // NaN too
  }
  const bool is_double = actual.dtype() == DType::kF64 || actual.dtype() == DType::kC128;
  const double epsilon = is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return error == 0 ? 0 : error / (epsilon * largest);
}

double LargestError(const Literal& actual, const Literal& expected) {
  switch (actual.dtype()) {
    case DType::kF32:
      return LargestError<float>(actual, expected);
    case DType::kF64:
      return LargestError<double>(actual, expected);
    case DType::kC64:
      return LargestError<std::complex<float>>(actual, expected);
    default:
      return LargestError<std::complex<double>>(actual, expected);
  }
}

void ExpectDefinition(const FftCall& call) {
  SCOPED_TRACE(ToString(call));
  const Attributes attrs = AttributesOf(call);
  const Literal operand = RandomValues(call.dtype, call.shape);
  const Literal actual = RunFft(attrs, operand, 1);
  EXPECT_TRUE(RunFft(attrs, operand, 3) == actual) << "three threads give other bits than one";
  Literal expected = *Literal::Create(actual.type());
  const Literal* const operands[] = {&operand};
  ASSERT_TRUE(FftOps()[0].reference.get()({attrs, operands, absl::MakeSpan(&expected, 1)}).ok());
  EXPECT_LE(LargestError(actual, expected), 12);
}

constexpr DType kReals[] = {DType::kF32, DType::kF64};
constexpr DType kAll[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};

// Every kind and dtype of one line or several, along any axis.
void ExpectAllKinds(const Ints& shape, int64_t axis) {
  for (FftKind kind : {FftKind::kFft, FftKind::kIfft, FftKind::kRfft, FftKind::kIrfft}) {
    for (DType dtype : kAll) {
      if (kind == FftKind::kRfft && std::find(std::begin(kReals), std::end(kReals), dtype) == std::end(kReals))
        continue;
      const int64_t size = shape[static_cast<size_t>(axis)];
      if (kind == FftKind::kIrfft && size < 2) continue;
      FftCall call{.kind = kind, .axes = {axis}, .dtype = dtype, .shape = shape};
      ExpectDefinition(call);
      // An odd length of the real side, which the default never is.
      call.lengths = {2 * size - 1};
      if (kind == FftKind::kIrfft) ExpectDefinition(call);
    }
  }
}

TEST(FftKernelTest, EveryShortLength) {
  for (int64_t n = 1; n <= 70; ++n) ExpectAllKinds({n}, 0);
}

TEST(FftKernelTest, LinesBesideEachOtherAndOneAfterTheOther) {
  ForEachInstructionSet([](const char*) {
    for (int64_t n : {1, 2, 5, 16, 30, 37}) {
      ExpectAllKinds({n, 21}, 0);
      ExpectAllKinds({21, n}, 1);
      ExpectAllKinds({3, n, 7}, 1);
      ExpectAllKinds({35, n, 2}, 1);
    }
  });
}

// Transforms by columns and rows, ragged ones too, by convolution, and real lines as half as many complex numbers.
TEST(FftKernelTest, LongerLines) {
  ForEachInstructionSet([](const char*) {
    for (int64_t n : {64, 72, 256, 289, 514, 521}) ExpectAllKinds({n}, 0);
    for (int64_t n : {272, 522}) ExpectAllKinds({2, n}, 1);
  });
  for (int64_t n : {64, 80, 257, 360, 512}) {
    ExpectAllKinds({n, 2}, 0);
    ExpectAllKinds({2, n}, 1);
  }
  ExpectAllKinds({600, 9}, 0);
  ExpectAllKinds({9, 521}, 1);
}

// Bins in vectors and singly, an odd and an even number of them, of whole lines and of padded ones.
TEST(FftKernelTest, BinsOfLongRealLines) {
  ForEachInstructionSet([](const char*) {
    for (const int64_t length : {512, 530, 544, 578, 1200}) {
      for (const int64_t size : {length, length / 2, length / 2 + 1, length / 2 - 15}) {
        for (const DType dtype : kReals) {
          ExpectDefinition({.kind = FftKind::kRfft, .axes = {0}, .lengths = {length}, .dtype = dtype, .shape = {size}});
        }
        for (const DType dtype : kAll) {
          ExpectDefinition(
              {.kind = FftKind::kIrfft, .axes = {0}, .lengths = {length}, .dtype = dtype, .shape = {size}});
        }
      }
    }
  });
}

TEST(FftKernelTest, LengthsCutAndPad) {
  std::mt19937 random(5);
  for (int64_t size : {1, 7, 40, 300, 640}) {
    for (int64_t length : {1, 2, 6, 9, 41, 300, 523, 768}) {
      for (FftKind kind : {FftKind::kFft, FftKind::kIfft, FftKind::kRfft, FftKind::kIrfft}) {
        const DType dtype = kind == FftKind::kRfft ? kReals[random() % 2] : kAll[random() % 4];
        ExpectDefinition({.kind = kind, .axes = {0}, .lengths = {length}, .dtype = dtype, .shape = {size}});
        ExpectDefinition({.kind = kind, .axes = {1}, .lengths = {length}, .dtype = dtype, .shape = {2, size}});
      }
    }
  }
}

TEST(FftKernelTest, SeveralAxesNormsAndRepetitions) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    Ints shape(1 + random() % 4);
    for (int64_t& size : shape) size = 2 + static_cast<int64_t>(random() % 6);
    FftCall call{
        .kind = static_cast<FftKind>(1 + random() % 4), .norm = static_cast<FftNorm>(random() % 3), .shape = shape};
    call.dtype = call.kind == FftKind::kRfft ? kReals[random() % 2] : kAll[random() % 4];
    call.axes.resize((call.kind == FftKind::kRfft || call.kind == FftKind::kIrfft) + random() % 4);
    for (int64_t& axis : call.axes) axis = static_cast<int64_t>(random() % shape.size());
    if (random() % 2 == 0) {
      for (size_t i = 0; i < call.axes.size(); ++i) call.lengths.push_back(1 + static_cast<int64_t>(random() % 9));
    }
    ExpectDefinition(call);
  }
}

TEST(FftKernelTest, EmptyTensors) {
  ExpectDefinition({.axes = {0}, .shape = {5, 0}});
  ExpectDefinition({.axes = {1}, .shape = {0, 5}});
  ExpectDefinition({.kind = FftKind::kRfft, .axes = {0}, .dtype = DType::kF32, .shape = {5, 0, 3}});
  // No elements, padded with zeros.
  ExpectDefinition({.axes = {0, 1}, .lengths = {4, 3}, .shape = {0, 0}});
  ExpectDefinition({.kind = FftKind::kIrfft, .axes = {0}, .lengths = {600}, .dtype = DType::kC64, .shape = {0, 2}});
}

// A line that is zero but for a few elements, of which the definition is a short sum.
void ExpectSparse(FftKind kind, DType dtype, int64_t n) {
  SCOPED_TRACE(testing::Message() << Name(dtype) << " " << n << ", kind " << static_cast<int>(kind));
  const bool is_real = dtype == DType::kF64 || dtype == DType::kF32;
  const std::pair<int64_t, std::complex<double>> elements[] = {
      {1, {0.5, 0.25}}, {n / 3, {-1, 2}}, {n - 1, {0.75, -0.5}}};
  Literal operand = *Literal::Create({dtype, {n}});
  for (const auto& [at, value] : elements) {
    const size_t i = static_cast<size_t>(at);
    if (dtype == DType::kF32) operand.mutable_values<float>()[i] = static_cast<float>(value.real());
    if (dtype == DType::kF64) operand.mutable_values<double>()[i] = value.real();
    if (dtype == DType::kC64) operand.mutable_values<std::complex<float>>()[i] = std::complex<float>(value);
    if (dtype == DType::kC128) operand.mutable_values<std::complex<double>>()[i] = value;
  }
  const Attributes attrs =
      AttributesOf({.kind = kind, .axes = {0}, .norm = FftNorm::kForward, .dtype = dtype, .shape = {n}});
  const Literal actual = RunFft(attrs, operand, 1);
  EXPECT_TRUE(RunFft(attrs, operand, 4) == actual) << "four threads give other bits than one";
  Literal expected = *Literal::Create(actual.type());
  const bool forward = kind != FftKind::kIfft;
  for (int64_t k = 0; k < actual.shape()[0]; ++k) {
    std::complex<long double> sum = 0;
    for (const auto& [at, value] : elements) {
      const long double turn =
          2 * std::acos(-1.0L) * static_cast<long double>(at * k % n) / static_cast<long double>(n);
      const std::complex<long double> x(value.real(), is_real ? 0 : value.imag());
      sum += x * std::complex<long double>(std::cos(turn), forward ? -std::sin(turn) : std::sin(turn));
    }
    if (forward) sum /= static_cast<long double>(n);
    const size_t i = static_cast<size_t>(k);
    if (actual.dtype() == DType::kC64) {
      expected.mutable_values<std::complex<float>>()[i] =
          std::complex<float>(static_cast<float>(sum.real()), static_cast<float>(sum.imag()));
    } else {
      expected.mutable_values<std::complex<double>>()[i] =
          std::complex<double>(static_cast<double>(sum.real()), static_cast<double>(sum.imag()));
    }
  }
  EXPECT_LE(LargestError(actual, expected), 12);
}

TEST(FftKernelTest, LongLinesOfAFewElements) {
  for (int64_t n : {32768, 65536, 40009, 65610, 131071, 101 * 404}) {
    for (DType dtype : kAll) {
      ExpectSparse(FftKind::kFft, dtype, n);
      ExpectSparse(FftKind::kIfft, dtype, n);
      if (dtype == DType::kF32 || dtype == DType::kF64) ExpectSparse(FftKind::kRfft, dtype, n);
    }
  }
}

TEST(FftKernelTest, ThereAndBack) {
  for (int64_t n : {32768, 99991}) {
    const Literal line = RandomValues(DType::kF64, {n});
    const Literal bins = RunFft(AttributesOf({.kind = FftKind::kRfft, .axes = {0}}), line, 2);
    const Literal again = RunFft(AttributesOf({.kind = FftKind::kIrfft, .axes = {0}, .lengths = {n}}), bins, 2);
    EXPECT_LE(LargestError(again, line), 12) << n;
  }
}

// A line of a large prime length, without tables and with them.
template <typename T>
void ExpectTheSameWithoutTables(int64_t n) {
  std::vector<std::complex<T>> line(static_cast<size_t>(n)), expected(line.size()), actual(line.size());
  FillRandom(absl::MakeSpan(line));
  const auto run = [&](const FftLongTransform<T>& transform, bool forward, std::vector<std::complex<T>>& into) {
    ThreadPool pool(3);
    std::vector<char> storage(static_cast<size_t>(transform.scratch_bytes(FftTasks::Slots())) + 64);
    char* const scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
    transform.Run({.in = line.data(), .out = into.data(), .in_length = n, .out_length = n, .forward = forward}, scratch,
                  FftTasks(&pool));
  };
  const FftLongTransform<T> with(n, Transforms()), without(n, Transforms(), 0);
  ASSERT_TRUE(with.is_chirped() && without.is_chirped());
  EXPECT_GT(without.scratch_bytes(1), with.scratch_bytes(1));
  for (const bool forward : {true, false}) {
    run(with, forward, expected);
    run(without, forward, actual);
    EXPECT_EQ(actual, expected) << n << (forward ? " forward" : " back");
  }
}

TEST(FftKernelTest, LongLinesNeedNoTables) {
  for (const int64_t n : {4099, 40009}) {
    ExpectTheSameWithoutTables<float>(n);
    ExpectTheSameWithoutTables<double>(n);
  }
}

TEST(FftKernelTest, AVeryLongPrimeLength) {
  const int64_t n = 16'777'259;
  const std::pair<int64_t, double> elements[] = {{1, 0.5}, {n / 3, -1}, {n - 1, 0.75}};
  Literal operand = *Literal::Create({DType::kF32, {n}});
  for (const auto& [at, value] : elements) {
    operand.mutable_values<float>()[static_cast<size_t>(at)] = static_cast<float>(value);
  }
  const Literal actual = RunFft(AttributesOf({.kind = FftKind::kRfft, .axes = {0}}), operand, 2);
  ASSERT_EQ(actual.shape()[0], n / 2 + 1);
  for (int64_t k = 0; k <= n / 2; k += 9973) {
    std::complex<double> expected = 0;
    for (const auto& [at, value] : elements) {
      const double turn = -2 * std::acos(-1.0) * static_cast<double>(at * k % n) / static_cast<double>(n);
      expected += value * std::complex<double>(std::cos(turn), std::sin(turn));
    }
    const std::complex<double> bin(actual.values<std::complex<float>>()[static_cast<size_t>(k)]);
    ASSERT_LE(std::abs(bin - expected), 2e-6) << k;
  }
}

TEST(FftKernelTest, TheLongestLengths) {
  const auto status = [](FftForm form, int64_t length) {
    const FftLineTask task{.form = form, .length = length, .lines = {.in_length = 1, .out_length = 1}, .num_lines = 1};
    return FftLineStep::Create(task, Transforms()).status();
  };
  constexpr int64_t kPrime = 134'217'689, kNextPrime = 134'217'757;  // beside 2^27
  EXPECT_TRUE(status(FftForm::kComplex, kPrime).ok());
  EXPECT_TRUE(status(FftForm::kRealToHalf, kPrime).ok());
  EXPECT_TRUE(status(FftForm::kRealToHalf, 2 * kPrime).ok());
  EXPECT_TRUE(status(FftForm::kComplex, int64_t{1} << 28).ok());
  const absl::Status awkward = status(FftForm::kComplex, kNextPrime);
  ASSERT_TRUE(DetailOf(awkward).has_value());
  EXPECT_EQ(DetailOf(awkward)->reason, "UNSUPPORTED_ON_DEVICE") << awkward;
  EXPECT_EQ(status(FftForm::kRealToHalf, kNextPrime).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status(FftForm::kRealToHalf, 2 * kNextPrime).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status(FftForm::kComplex, int64_t{1} << 30).code(), absl::StatusCode::kUnimplemented);
}

TEST(FftTransformsTest, SharesTablesUpToItsBound) {
  FftTransforms transforms(100'000);
  const auto first = transforms.Lanes(true, FftForm::kComplex, 1000);
  EXPECT_EQ(transforms.Lanes(true, FftForm::kComplex, 1000), first);
  EXPECT_NE(transforms.Lanes(false, FftForm::kComplex, 1000), nullptr);
  EXPECT_EQ(transforms.stats().tables, 2);
  EXPECT_EQ(transforms.stats().hits, 1);
  EXPECT_EQ(transforms.stats().misses, 2);
  EXPECT_EQ(transforms.stats().evictions, 0);
  for (int64_t n = 500; n < 700; ++n) transforms.Lanes(true, FftForm::kComplex, n);
  EXPECT_LE(transforms.stats().bytes, 100'000);
  EXPECT_GT(transforms.stats().bytes, 50'000);
  EXPECT_EQ(transforms.stats().evictions, transforms.stats().misses - transforms.stats().tables);
  EXPECT_NE(transforms.Lanes(true, FftForm::kComplex, 1000), first) << "the oldest goes first";
}

// A kernel of each way of transforming, before and after its tables were dropped.
TEST(FftTransformsTest, AKernelKeepsTheTablesThatItUses) {
  for (const int64_t n : {48, 4096, 4099, 6000}) {
    FftTransforms transforms(int64_t{4} << 20);
    const Attributes attrs = AttributesOf({.kind = FftKind::kRfft, .axes = {0}});
    const Literal operand = RandomValues(DType::kF64, {n});
    const ConcreteType type = ResultType(attrs, operand.type());
    BoundInstruction bound{.op = &FftOps()[0], .attrs = &attrs};
    bound.operands.push_back(operand.type());
    bound.results.push_back(type);
    const absl::StatusOr<std::unique_ptr<Kernel>> kernel = FftKernels()[0].make(bound, {.fft = &transforms});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const int64_t tables = transforms.stats().tables;
    EXPECT_GT(tables, 0) << n;
    std::vector<char> storage(static_cast<size_t>((*kernel)->scratch_bytes()) + 64);
    char* const scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
    ThreadPool pool(2);
    const auto run = [&] {
      Literal result = *Literal::Create(type);
      const void* const operands[] = {operand.bytes().data()};
      void* const results[] = {result.mutable_data()};
      (*kernel)->Run({.operands = operands, .results = results, .scratch = scratch, .pool = &pool});
      return result;
    };
    const Literal before = run();
    for (int64_t other = 100; transforms.stats().evictions < tables; ++other) {
      transforms.Lanes(true, FftForm::kComplex, other);
    }
    EXPECT_TRUE(run() == before) << n;
  }
}

// The bytes of a program, by which caches are bounded.
TEST(FftTransformsTest, WhatIsDroppedIsNotTakenOffWhatANewOneTakes) {
  struct Table {
    int64_t table_bytes() const { return static_cast<int64_t>(memory.size()); }
    std::vector<char> memory;
  };
  FftTransforms transforms(1 << 20);
  const auto get = [&](const std::string& name, size_t bytes) {
    return transforms.Get<Table>(name, [&] { return std::make_shared<const Table>(std::vector<char>(bytes)); });
  };
  get("large", 1 << 20);
  const AllocatedBytes allocated;
  const auto kept = get("small", 1 << 16);
  EXPECT_EQ(transforms.stats().evictions, 1);
  EXPECT_GE(allocated.bytes(), 1 << 16);
  EXPECT_LT(allocated.bytes(), 1 << 17);
}

TEST(FftTransformsTest, WithoutRoomNothingIsKept) {
  FftTransforms transforms(0);
  EXPECT_NE(transforms.Lanes(true, FftForm::kComplex, 100), transforms.Lanes(true, FftForm::kComplex, 100));
  EXPECT_EQ(transforms.stats().tables, 0);
  EXPECT_EQ(transforms.stats().bytes, 0);
  EXPECT_EQ(transforms.stats().misses, 2);
}

}  // namespace
}  // namespace tensord::cpu
