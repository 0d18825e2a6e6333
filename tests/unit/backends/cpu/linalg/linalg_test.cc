#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "backends/cpu/linalg/kernels.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/linalg_properties.h"

namespace tensord::cpu {
namespace {

MakeFamilyKernel* FactoryOf(LinalgOp op) {
  for (const FamilyKernel& kernel : LinalgKernels()) {
    if (kernel.op == Def(op).name) return kernel.make;
  }
  return nullptr;
}

// Memory of a kernel's call, filled with other bytes than those of a result, between bytes that must stay.
class GuardedMemory {
 public:
  explicit GuardedMemory(int64_t bytes) : bytes_(bytes), storage_(static_cast<size_t>(bytes) + 3 * kGuard, kFill) {
    address_ = storage_.data() + kGuard;
    address_ += (64 - reinterpret_cast<uintptr_t>(address_) % 64) % 64;
  }

  char* address() const { return address_; }
  bool IsIntact() const {
    const auto is_fill = [](char c) { return c == kFill; };
    const char* const end = storage_.data() + storage_.size();
    return std::all_of(storage_.data(), static_cast<const char*>(address_), is_fill) &&
           std::all_of(static_cast<const char*>(address_) + bytes_, end, is_fill);
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr char kFill = 0x5a;

  const int64_t bytes_;
  std::vector<char> storage_;
  char* address_;
};

absl::StatusOr<std::vector<Literal>> RunKernel(const LinalgCall& call, int threads,
                                               absl::Span<const int32_t> num_readers = {}) {
  BoundInstruction bound;
  bound.op = &Def(call.op);
  bound.attrs = &call.attrs;
  for (const Literal& operand : call.operands) bound.operands.push_back(operand.type());
  std::vector<GuardedMemory> memory;
  std::vector<void*> addresses;
  for (const ConcreteType& type : call.ResultTypes()) {
    bound.results.push_back(type);
    memory.emplace_back(type.num_bytes());
  }
  for (const GuardedMemory& result : memory) addresses.push_back(result.address());
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = FactoryOf(call.op)(bound, {.num_readers = num_readers});
  if (!kernel.ok()) return kernel.status();
  const GuardedMemory scratch((*kernel)->scratch_bytes()), workspace((*kernel)->workspace_bytes());
  std::vector<const void*> operands;
  for (const Literal& operand : call.operands) operands.push_back(operand.bytes().data());
  ThreadPool pool(threads);
  absl::Status failure;
  (*kernel)->Run({.operands = operands,
                  .results = addresses,
                  .scratch = scratch.address(),
                  .pool = &pool,
                  .failure = &failure,
                  .workspace = workspace.address()});
  EXPECT_TRUE(scratch.IsIntact() && workspace.IsIntact()) << "scratch of " << call.Name();
  std::vector<Literal> results;
  for (size_t i = 0; i < memory.size(); ++i) {
    EXPECT_TRUE(memory[i].IsIntact()) << "result " << i << " of " << call.Name();
    const absl::string_view bytes(memory[i].address(), static_cast<size_t>(bound.results[i].num_bytes()));
    results.push_back(*Literal::FromBytes(bound.results[i], bytes));
  }
  if (!failure.ok()) return failure;
  return results;
}

std::vector<Literal> MustRun(const LinalgCall& call) {
  absl::StatusOr<std::vector<Literal>> results = RunKernel(call, 2);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? *std::move(results) : std::vector<Literal>();
}

TEST(LinalgKernelTest, HaveTheirPropertiesAndTheSameBitsOnAnyThreads) {
  ForEachRandomCall([](const LinalgCall& call) {
    const absl::StatusOr<std::vector<Literal>> results = RunKernel(call, 1);
    ASSERT_TRUE(results.ok()) << results.status() << " " << call.Name();
    ExpectProperties(call, *results);
    const absl::StatusOr<std::vector<Literal>> again = RunKernel(call, 3);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(*again == *results) << call.Name();
  });
}

void ExpectTheSameOnAnyThreads(const LinalgCall& call) {
  absl::StatusOr<std::vector<Literal>> first = RunKernel(call, 1);
  ASSERT_TRUE(first.ok()) << first.status();
  ExpectProperties(call, *first);
  for (int threads = 2; threads <= 4; ++threads) {
    const absl::StatusOr<std::vector<Literal>> again = RunKernel(call, threads);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *first) << call.Name() << " on " << threads << " threads";
  }
}

// One matrix on all threads.
TEST(LinalgKernelTest, LargeMatrices) {
  std::mt19937 random(5);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const Shape& shape :
         {Shape{150, 150}, Shape{190, 140}, Shape{140, 190}, Shape{200, 70}, Shape{300, 130}, Shape{130, 300}}) {
      const Literal a = RandomMatrices(dtype, shape, &random), flat = RandomOfRank(dtype, shape, 3, &random);
      ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kLu, {a}));
      for (const Literal& operand : {a, flat}) {
        for (LinalgOp op : {LinalgOp::kQr, LinalgOp::kSvd}) {
          for (bool full : {false, true}) {
            LinalgCall call(op, {operand});
            call.attrs.Set("full", full);
            ExpectTheSameOnAnyThreads(call);
          }
        }
      }
    }
  }
}

// Several blocks of columns, of which the last is shorter.
TEST(LinalgKernelTest, LargeCholesky) {
  std::mt19937 random(8);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    Literal a = RandomPositiveDefinite(dtype, {417, 417}, &random);
    ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kCholesky, {a}));
    // Row and column 300 are made zero.
    const size_t bytes = static_cast<size_t>(SizeOf(dtype));
    for (size_t i = 0; i < 417; ++i) {
      std::memset(a.mutable_data() + (300 * 417 + i) * bytes, 0, bytes);
      if (i <= 300) std::memset(a.mutable_data() + (i * 417 + 300) * bytes, 0, bytes);
    }
    const absl::Status status = RunKernel(LinalgCall(LinalgOp::kCholesky, {a}), 2).status();
    EXPECT_TRUE(absl::StrContains(status.message(), "info is 301")) << status;
  }
}

// Several panels, of which the last is shorter, and chunks of both widths beside them.
TEST(LinalgKernelTest, LargeLu) {
  std::mt19937 random(9);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const Shape& shape : {Shape{263, 263}, Shape{130, 330}, Shape{330, 130}}) {
      ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kLu, {RandomMatrices(dtype, shape, &random)}));
      ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kLu, {RandomOfRank(dtype, shape, 3, &random)}));
    }
    Literal a = RandomMatrices(dtype, {419, 419}, &random);
    const Literal b = RandomMatrices(dtype, {419, 2}, &random);
    ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kSolve, {a, b}));
    // Without column 300 nothing is left where its pivot should be.
    const size_t column_bytes = 419 * static_cast<size_t>(SizeOf(dtype));
    std::memset(a.mutable_data() + 300 * column_bytes, 0, column_bytes);
    const absl::Status status = RunKernel(LinalgCall(LinalgOp::kSolve, {a, b}), 2).status();
    EXPECT_TRUE(absl::StrContains(status.message(), "info is 301")) << status;
  }
}

// Factors by LAPACK and in blocks, tall, square and wide.
TEST(LinalgKernelTest, ResultsThatAreReadAreTheSameWithoutTheOthers) {
  std::mt19937 random(31);
  for (DType dtype : {DType::kF64, DType::kC64}) {
    for (const Shape& shape :
         {Shape{40, 40, 2}, Shape{50, 40}, Shape{40, 50}, Shape{263, 263}, Shape{330, 140}, Shape{140, 330}}) {
      const Literal a = RandomMatrices(dtype, shape, &random);
      for (const LinalgOp op : {LinalgOp::kLu, LinalgOp::kQr}) {
        const LinalgCall call(op, {a});
        const std::vector<Literal> whole = MustRun(call);
        std::vector<int32_t> num_readers(whole.size());
        for (uint32_t read = 0; read < 1u << whole.size(); ++read) {
          for (size_t i = 0; i < whole.size(); ++i) num_readers[i] = static_cast<int32_t>(read >> i & 1);
          const absl::StatusOr<std::vector<Literal>> results = RunKernel(call, 2, num_readers);
          ASSERT_TRUE(results.ok()) << results.status();
          for (size_t i = 0; i < whole.size(); ++i) {
            if (num_readers[i] == 0) continue;
            EXPECT_TRUE((*results)[i] == whole[i]) << call.Name() << " result " << i << " of those in " << read;
          }
        }
      }
    }
  }
}

// Exchanges of neighbours, and pivots that have no reciprocal.
TEST(LinalgKernelTest, LuPivots) {
  constexpr int64_t kSize = 130;
  for (double scale : {1.0, 4.0 * std::numeric_limits<double>::denorm_min()}) {
    // Row i has its only number in column i ^ 1.
    std::vector<double> entries(kSize * kSize);
    for (int64_t i = 0; i < kSize; ++i) entries[static_cast<size_t>((i ^ 1) * kSize + i)] = scale;
    const Literal a = *Literal::FromBytes({DType::kF64, {kSize, kSize}}, {reinterpret_cast<const char*>(entries.data()),
                                                                          entries.size() * sizeof(double)});
    const std::vector<Literal> results = MustRun(LinalgCall(LinalgOp::kLu, {a}));
    ASSERT_EQ(results.size(), 4u);
    for (int64_t i = 0; i < kSize; ++i) {
      const size_t diagonal = static_cast<size_t>(i * (kSize + 1));
      EXPECT_EQ(results[0].values<double>()[static_cast<size_t>((i ^ 1) * kSize + i)], 1);
      EXPECT_EQ(results[2].values<double>()[diagonal], scale);
    }
    EXPECT_EQ(results[3].values<double>()[0], -1);  // 65 exchanges
  }
}

TEST(LinalgKernelTest, LargeSquareMatricesAndManySides) {
  std::mt19937 random(6);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    const Shape square = {150, 150}, sides = {150, 300};
    const Literal positive = RandomPositiveDefinite(dtype, square, &random);
    ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kCholesky, {positive}));
    ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kEigh, {positive}));
    ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kEigh, {Filled(dtype, square, 1)}));
    ExpectTheSameOnAnyThreads(
        LinalgCall(LinalgOp::kSolve, {RandomMatrices(dtype, square, &random), RandomMatrices(dtype, sides, &random)}));
    ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kTriangularSolve, {RandomTriangles(dtype, square, &random),
                                                                      RandomMatrices(dtype, {300, 150}, &random)}));
  }
}

// A matrix whose entries a function of row and column gives.
Literal Made(DType dtype, int64_t n, const std::function<double(int64_t, int64_t)>& entry) {
  Literal matrix = *Literal::Create({dtype, {n, n}});
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      const Literal value = Filled(dtype, {1, 1}, entry(i, j));
      std::memcpy(matrix.mutable_data() + (j * n + i) * SizeOf(dtype), value.bytes().data(), value.bytes().size());
    }
  }
  return matrix;
}

// Matrices that are balanced away, in part or wholly, that converge by made-up shifts alone, or whose numbers are of
// many orders.
TEST(LinalgKernelTest, LargeGeneralEigenvalues) {
  constexpr int64_t kSize = 150;
  std::mt19937 random(23);
  std::uniform_real_distribution<double> any(-1, 1);
  std::vector<int64_t> order(kSize);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const auto at = [&](int64_t i) { return order[static_cast<size_t>(i)]; };
  const std::function<double(int64_t, int64_t)> entries[] = {
      [&](int64_t i, int64_t j) { return at(i) <= at(j) ? any(random) : 0; },
      [&](int64_t i, int64_t j) {
        return at(i) <= at(j) || (at(i) > 20 && at(i) < 140 && at(j) > 10) ? any(random) : 0;
      },
      [&](int64_t i, int64_t j) { return i == (j + 1) % kSize ? 1 : 0; },
      [&](int64_t i, int64_t j) { return i == j + 1 ? 1
                                         : i == j   ? 2
                                                    : 0; },
      [&](int64_t i, int64_t j) { return any(random) * std::exp2(static_cast<double>((at(i) - at(j)) / 20)); },
      [&](int64_t i, int64_t j) { return i / 100 == j / 100 ? any(random) : 0; },
      [&](int64_t, int64_t) { return any(random) * 1e-35; },
      [&](int64_t, int64_t) { return any(random) * 1e35; },
      [&](int64_t i, int64_t j) { return i == j ? 1 : 0; },
      [&](int64_t, int64_t) { return 0; },
  };
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const LinalgOp op : {LinalgOp::kEig, LinalgOp::kEigValues}) {
      ExpectTheSameOnAnyThreads(LinalgCall(op, {RandomMatrices(dtype, {310, 310}, &random)}));
      for (size_t i = 0; i < std::size(entries); ++i) {
        SCOPED_TRACE(i);
        ExpectTheSameOnAnyThreads(LinalgCall(op, {Made(dtype, kSize, entries[i])}));
      }
    }
  }
}

void Scale(double factor, Literal* literal) {
  const int64_t parts = kComplexes.Contains(literal->dtype()) ? 2 : 1, count = parts * literal->num_elements();
  if (SizeOf(literal->dtype()) / parts == 4) {
    float* const numbers = reinterpret_cast<float*>(literal->mutable_data());
    for (int64_t i = 0; i < count; ++i) numbers[i] *= static_cast<float>(factor);
  } else {
    double* const numbers = reinterpret_cast<double*>(literal->mutable_data());
    for (int64_t i = 0; i < count; ++i) numbers[i] *= factor;
  }
}

TEST(LinalgKernelTest, LargeValuesWithoutVectors) {
  std::mt19937 random(29);
  const std::pair<Shape, double> cases[] = {{{130, 130}, 1},    {{150, 130}, 1e-30}, {{130, 150}, 1e30},
                                            {{260, 128}, 1e30}, {{128, 260}, 1},     {{130, 130}, 0}};
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const auto& [shape, scale] : cases) {
      Literal a = RandomMatrices(dtype, shape, &random);
      Scale(scale, &a);
      ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kSvdValues, {a}));
      if (shape[0] == shape[1]) ExpectTheSameOnAnyThreads(LinalgCall(LinalgOp::kEighValues, {a}));
    }
  }
}

// Whatever the numbers: one call of LAPACK for the whole matrix would ask twice.
TEST(LinalgKernelTest, LargeOnesAskWhetherTheirRunIsWanted) {
  std::mt19937 random(17);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    const Literal a = RandomMatrices(dtype, {300, 300}, &random);
    for (const LinalgOp op :
         {LinalgOp::kCholesky, LinalgOp::kLu, LinalgOp::kQr, LinalgOp::kHouseholderQr, LinalgOp::kEig,
          LinalgOp::kEigValues, LinalgOp::kEigh, LinalgOp::kEighValues, LinalgOp::kSvd, LinalgOp::kSvdValues}) {
      int64_t asks = 0;
      const StopSignal::Check count = [&] {
        ++asks;
        return absl::OkStatus();
      };
      StopSignal stop(count, std::chrono::nanoseconds(0));
      const StopSignal::Scope scope(&stop);
      const Literal operand = op == LinalgOp::kCholesky ? RandomPositiveDefinite(dtype, {300, 300}, &random) : a;
      ASSERT_TRUE(RunKernel(LinalgCall(op, {operand}), 1).ok());
      EXPECT_GT(asks, 6) << Def(op).name << " of " << ToString(a.type());
    }
  }
}

// Element by element, so that 0 and -0 are equal.
bool AreEqual(const Literal& a, const Literal& b) {
  if (a.type() != b.type()) return false;
  return VisitDType(a.dtype(), [&]<typename T>(TypeTag<T>) {
    if constexpr (HalfElement<T>) {
      return false;  // linear algebra has none
    } else {
      const absl::Span<const T> x = a.values<T>(), y = b.values<T>();
      return std::equal(x.begin(), x.end(), y.begin());
    }
  });
}

// The reference is the oracle of what an empty matrix has for factors.
TEST(LinalgKernelTest, EmptyMatrices) {
  for (const Shape& shape :
       {Shape{0, 0}, Shape{0, 3}, Shape{3, 0}, Shape{3, 0, 2}, Shape{0, 4, 2, 3}, Shape{3, 3, 0}, Shape{0, 0, 2}}) {
    for (DType dtype : {DType::kF32, DType::kC128}) {
      const Literal a = *Literal::Create({dtype, shape});
      for (const OpDef& op : LinalgOps()) {
        const LinalgOp linalg_op = static_cast<LinalgOp>(op.index);
        if (op.expand.has() || op.min_operands != 1) continue;
        const bool needs_square = op.refusals.rules().size() > 1;
        if (needs_square && shape[0] != shape[1]) continue;
        LinalgCall call(linalg_op, {a});
        if (call.attrs.Has("full")) call.attrs.Set("full", true);
        const absl::StatusOr<std::vector<Literal>> expected = RunReference(call);
        ASSERT_TRUE(expected.ok()) << expected.status();
        const std::vector<Literal> results = MustRun(call);
        ASSERT_EQ(results.size(), expected->size());
        for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(AreEqual(results[i], (*expected)[i])) << call.Name();
      }
    }
  }
  const Literal none = *Literal::Create({DType::kF64, {2, 0}});
  EXPECT_EQ(MustRun(LinalgCall(LinalgOp::kSolve, {Filled(DType::kF64, {2, 2}, 0), none}))[0].num_elements(), 0);
}

absl::Status FailureOf(const LinalgCall& call) { return RunKernel(call, 2).status(); }

void ExpectRefused(const absl::Status& status, absl::string_view reason, absl::string_view place) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(DetailOf(status).value_or(RefusalDetail{}).reason, reason);
  EXPECT_TRUE(absl::StrContains(status.message(), place)) << status;
}

Literal WithMatrix(Literal batch, int64_t b, const Literal& matrix) {
  std::memcpy(batch.mutable_data() + b * matrix.type().num_bytes(), matrix.bytes().data(), matrix.bytes().size());
  return batch;
}

TEST(LinalgKernelTest, FailuresNameTheFirstMatrix) {
  std::mt19937 random(9);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (int64_t n : {3, 40}) {
      const Shape shape = {n, n, 4, 5};
      const Literal ones = Filled(dtype, {n, n}, 1), negative = Filled(dtype, {n, n}, -1);
      Literal a = RandomMatrices(dtype, shape, &random), b = RandomMatrices(dtype, {n, 2, 4, 5}, &random);
      a = WithMatrix(WithMatrix(std::move(a), 18, ones), 7, ones);
      ExpectRefused(FailureOf(LinalgCall(LinalgOp::kSolve, {a, b})), "MATRIX_SINGULAR", "[3,1]");
      Literal c = RandomPositiveDefinite(dtype, shape, &random);
      c = WithMatrix(WithMatrix(std::move(c), 19, negative), 6, negative);
      ExpectRefused(FailureOf(LinalgCall(LinalgOp::kCholesky, {c})), "MATRIX_NOT_POSITIVE_DEFINITE", "[2,1]");
    }
    const Literal nan = Filled(dtype, {2, 2}, std::numeric_limits<double>::quiet_NaN());
    ExpectRefused(FailureOf(LinalgCall(LinalgOp::kCholesky, {nan})), "MATRIX_NOT_POSITIVE_DEFINITE", "the matrix is");
  }
}

bool AllNaN(const Literal& literal, int64_t begin, int64_t end) {
  bool all = true;
  const auto look = [&](const auto* numbers, int64_t parts) {
    for (int64_t i = begin * parts; i < end * parts; ++i) all = all && std::isnan(numbers[i]);
  };
  const int64_t parts = kComplexes.Contains(literal.dtype()) ? 2 : 1;
  if (SizeOf(literal.dtype()) / parts == 4) {
    look(reinterpret_cast<const float*>(literal.bytes().data()), parts);
  } else {
    look(reinterpret_cast<const double*>(literal.bytes().data()), parts);
  }
  return all;
}

// One matrix of three is spoilt: its results are NaN, and those of its neighbours what they are without it.
TEST(LinalgKernelTest, WhatIsNotFiniteGivesNaN) {
  std::mt19937 random(13);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      for (int64_t n : {4, 50}) {
        const Literal sound = RandomMatrices(dtype, {n, n, 3}, &random);
        Literal a = sound;
        // An element of the lower triangle of the second matrix.
        std::memcpy(a.mutable_data() + (n * n + 1) * SizeOf(dtype), Filled(dtype, {1, 1}, value).bytes().data(),
                    static_cast<size_t>(SizeOf(dtype)));
        const Literal b = RandomMatrices(dtype, {n, 1, 3}, &random);
        for (LinalgOp op : {LinalgOp::kSvd, LinalgOp::kSvdValues, LinalgOp::kEigh, LinalgOp::kEighValues,
                            LinalgOp::kEig, LinalgOp::kEigValues, LinalgOp::kSolve}) {
          std::vector<Literal> operands = {a}, sound_operands = {sound};
          if (op == LinalgOp::kSolve) {
            operands.push_back(b);
            sound_operands.push_back(b);
          }
          const std::vector<Literal> results = MustRun(LinalgCall(op, operands));
          const std::vector<Literal> expected = MustRun(LinalgCall(op, sound_operands));
          for (size_t i = 0; i < results.size(); ++i) {
            const int64_t size = results[i].num_elements() / 3;
            EXPECT_TRUE(AllNaN(results[i], size, 2 * size)) << Def(op).name << " result " << i;
            const size_t bytes = results[i].bytes().size() / 3;
            EXPECT_EQ(results[i].bytes().substr(0, bytes), expected[i].bytes().substr(0, bytes));
            EXPECT_EQ(results[i].bytes().substr(2 * bytes), expected[i].bytes().substr(2 * bytes));
          }
        }
        const std::vector<Literal> lu = MustRun(LinalgCall(LinalgOp::kLu, {a}));
        EXPECT_FALSE(AllNaN(lu[0], n * n, n * n + 1));
        EXPECT_TRUE(AllNaN(lu[2], n * n, n * n + 1));
        MustRun(LinalgCall(LinalgOp::kQr, {a}));
      }
    }
  }
}

// No memory is touched: LAPACK's integers are what is too small.
TEST(LinalgKernelTest, SizesBeyondLapackAreRefused) {
  for (const Shape& shape : {Shape{int64_t{1} << 33, 2}, Shape{60000, 60000}}) {
    BoundInstruction bound;
    const Attributes attrs(Def(LinalgOp::kSvdValues).attrs);
    bound.op = &Def(LinalgOp::kSvdValues);
    bound.attrs = &attrs;
    bound.operands.push_back({DType::kF64, shape});
    bound.results.push_back({DType::kF64, {std::min(shape[0], shape[1])}});
    const absl::Status status = FactoryOf(LinalgOp::kSvdValues)(bound, {}).status();
    EXPECT_EQ(DetailOf(status).value_or(RefusalDetail{}).reason, "UNSUPPORTED_ON_DEVICE") << status;
  }
}

// Very large and very small numbers are scaled, not squared away.
TEST(LinalgKernelTest, ExtremeScales) {
  std::mt19937 random(21);
  for (double scale : {1e-300, 1e150, 0.0}) {
    for (LinalgOp op : {LinalgOp::kSvd, LinalgOp::kEigh, LinalgOp::kQr, LinalgOp::kLu}) {
      for (const Shape& shape : {Shape{12, 12}, Shape{140, 140}, Shape{130, 140}}) {
        if (op == LinalgOp::kEigh && shape[0] != shape[1]) continue;
        for (DType dtype : {DType::kF64, DType::kC128}) {
          Literal a = RandomMatrices(dtype, shape, &random);
          Scale(scale, &a);
          const LinalgCall call(op, {a});
          ExpectProperties(call, MustRun(call));
        }
      }
    }
  }
}

// a·I x = a·(1, 2, …)/n: all quotients are at most 1, whatever the parts of a.
template <typename Complex>
void ExpectQuotientsNextToTheLargest() {
  using Real = typename Complex::value_type;
  const Real most = std::numeric_limits<Real>::max();
  for (const Complex a : {Complex(most, most), Complex(most, -most / 2), Complex(-most / 3, most), Complex(most, 0)}) {
    for (const int64_t n : {1, 2, 3, 9}) {
      Literal matrix = *Literal::Create({.dtype = kDTypeOf<Complex>, .shape = {n, n}});
      Literal side = *Literal::Create({.dtype = kDTypeOf<Complex>, .shape = {n, 1}});
      for (int64_t i = 0; i < n; ++i) {
        matrix.mutable_values<Complex>()[static_cast<size_t>(i * (n + 1))] = a;
        side.mutable_values<Complex>()[static_cast<size_t>(i)] = a * (Real(i + 1) / Real(n));
      }
      Literal row = *Literal::Create({.dtype = kDTypeOf<Complex>, .shape = {1, n}});
      std::copy_n(side.values<Complex>().data(), n, row.mutable_values<Complex>().data());
      for (const LinalgOp op : {LinalgOp::kSolve, LinalgOp::kTriangularSolve}) {
        const std::vector<Literal> x = MustRun(LinalgCall(op, {matrix, op == LinalgOp::kSolve ? side : row}));
        for (int64_t i = 0; i < n; ++i) {
          const Complex got = x[0].values<Complex>()[static_cast<size_t>(i)];
          EXPECT_NEAR(got.real(), Real(i + 1) / Real(n), 1e-5) << a << " " << n << " " << Def(op).name;
          EXPECT_NEAR(got.imag(), 0, 1e-5) << a << " " << n << " " << Def(op).name;
        }
      }
    }
  }
}

TEST(LinalgKernelTest, QuotientsNextToTheLargestNumber) {
  ExpectQuotientsNextToTheLargest<std::complex<float>>();
  ExpectQuotientsNextToTheLargest<std::complex<double>>();
}

}  // namespace
}  // namespace tensord::cpu
