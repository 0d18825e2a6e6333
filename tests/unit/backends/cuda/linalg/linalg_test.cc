// The family linalg on cuSOLVER: the properties of its results, and the matrices at which it ends or gives NaN.
#include <cmath>
#include <complex>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/linalg/equilibrate_text.h"
#include "gmock/gmock.h"
#include "tests/testlib/numbers/linalg_properties.h"
#include "tests/testlib/numbers/literal_of.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kLinalgDTypes[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};

// A graph of the call alone, with all its results.
Graph GraphOf(const LinalgCall& call) {
  Graph graph;
  graph.set_name("g");
  Node node{.name = "n", .op = &Def(call.op), .attrs = call.attrs};
  for (size_t i = 0; i < call.operands.size(); ++i) {
    node.operands.push_back(graph.AddInput(absl::StrCat("x", i), ToTensorType(call.operands[i].type())));
  }
  node.num_results = static_cast<int32_t>(call.ResultTypes().size());
  const int32_t results = node.num_results;
  const ValueId first = graph.AddNode(std::move(node));
  for (int32_t i = 0; i < results; ++i) graph.AddOutput(absl::StrCat("y", i), ValueId{first.index + i});
  return graph;
}

// A graph of one op of the family, with all its results, on operands of these types.
std::string TextOf(absl::string_view op, int results, const std::vector<Literal>& operands,
                   absl::string_view attrs = "") {
  std::vector<std::string> names;
  std::string text = "graph \"g\" {\n";
  for (const Literal& operand : operands) {
    names.push_back(absl::StrCat("%x", names.size()));
    absl::StrAppend(&text, "  ", names.back(), " = input : ", ToString(operand.type()), "\n");
  }
  absl::StrAppend(&text, "  %y", results > 1 ? absl::StrCat(":", results) : "", " = tensord.linalg.v1.", op, "(",
                  absl::StrJoin(names, ", "), ")", attrs, "\n");
  for (int i = 0; i < results; ++i) {
    absl::StrAppend(&text, "  output \"y", i, "\" = %y", results > 1 ? absl::StrCat(":", i) : "", "\n");
  }
  return absl::StrCat(text, "}\n");
}

// Returns n rows and columns with the first ones given, and else those of the identity.
Literal WithIdentity(const std::vector<double>& first, int64_t size, int64_t n) {
  std::vector<double> values(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i * (n + 1))] = 1;
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = 0; i < size; ++i)
      values[static_cast<size_t>(i + j * n)] = first[static_cast<size_t>(i + j * size)];
  }
  return LiteralOf(values, {n, n});
}

class CudaLinalgTest : public BesideCpuTest {
 protected:
  absl::StatusOr<std::vector<Literal>> RunCall(Backend* backend, const LinalgCall& call) {
    return CompileAndRun(GraphOf(call), {.backend = backend}, call.operands);
  }
  void ExpectCallProperties(Backend* backend, const LinalgCall& call) {
    SCOPED_TRACE(call.Name());
    const auto results = RunCall(backend, call);
    ASSERT_TRUE(results.ok()) << results.status();
    ExpectProperties(call, *results);
  }
  // Real numbers, by columns.
  static Literal Matrices(const std::vector<double>& values, Shape shape) {
    return LiteralOf(values, std::move(shape));
  }

  std::mt19937 small_random_{5};
};

// A part of all calls: each is several kernels for the host's compiler.
TEST_F(CudaLinalgTest, ResultsHaveTheirProperties) {
  hostCudaSet("DELAY_US", "100");
  const std::unique_ptr<Backend> backend = Made();
  int count = 0;
  ForEachRandomCall([&](const LinalgCall& call) {
    if (count++ % 97 == 0) ExpectCallProperties(backend.get(), call);
  });
  EXPECT_GT(count, 200);
}

// More rows than a block takes: those that the libraries factor.
TEST_F(CudaLinalgTest, LargeMatrices) {
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : kLinalgDTypes) {
    const Literal a = RandomMatrices(dtype, {34, 34, 2}, &small_random_);
    const Literal b = RandomMatrices(dtype, {34, 3, 2}, &small_random_);
    ExpectCallProperties(backend.get(),
                         LinalgCall(LinalgOp::kCholesky, {RandomPositiveDefinite(dtype, {34, 34, 2}, &small_random_)}));
    ExpectCallProperties(backend.get(), LinalgCall(LinalgOp::kLu, {a}));
    ExpectCallProperties(backend.get(), LinalgCall(LinalgOp::kLu, {RandomMatrices(dtype, {34, 5}, &small_random_)}));
    for (const LinalgOp op : {LinalgOp::kQr, LinalgOp::kSvd, LinalgOp::kEigh}) {
      ExpectCallProperties(backend.get(), LinalgCall(op, {a}));
    }
    ExpectCallProperties(backend.get(), LinalgCall(LinalgOp::kSolve, {a, b}));
    const Literal triangles = RandomTriangles(dtype, {34, 34, 2}, &small_random_);
    LinalgCall right(LinalgOp::kTriangularSolve, {triangles, RandomMatrices(dtype, {3, 34, 2}, &small_random_)});
    right.attrs.Set("left_side", false);
    right.attrs.Set("transpose_a", int64_t{2});
    ExpectCallProperties(backend.get(), right);
    LinalgCall left(LinalgOp::kTriangularSolve, {triangles, b});
    left.attrs.Set("left_side", true);
    left.attrs.Set("lower", true);
    ExpectCallProperties(backend.get(), left);
  }
}

TEST_F(CudaLinalgTest, LongMatricesAndValuesAlone) {
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : {DType::kF64, DType::kC64}) {
    for (const Shape& shape : {Shape{34, 3}, Shape{3, 34}}) {
      const Literal a = RandomMatrices(dtype, shape, &small_random_);
      for (const bool full : {false, true}) {
        for (const LinalgOp op : {LinalgOp::kQr, LinalgOp::kSvd}) {
          LinalgCall call(op, {a});
          call.attrs.Set("full", full);
          ExpectCallProperties(backend.get(), call);
        }
      }
      ExpectCallProperties(backend.get(), LinalgCall(LinalgOp::kHouseholderQr, {a}));
      ExpectCallProperties(backend.get(), LinalgCall(LinalgOp::kSvdValues, {a}));
    }
    ExpectCallProperties(backend.get(),
                         LinalgCall(LinalgOp::kEighValues, {RandomMatrices(dtype, {34, 34}, &small_random_)}));
  }
}

TEST_F(CudaLinalgTest, EachOpInEachDtype) {
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : kLinalgDTypes) {
    const Literal a = RandomMatrices(dtype, {4, 4, 3}, &small_random_);
    const Literal tall = RandomMatrices(dtype, {5, 3, 2}, &small_random_);
    const Literal wide = RandomMatrices(dtype, {3, 5}, &small_random_);
    ExpectCallProperties(backend.get(),
                         LinalgCall(LinalgOp::kCholesky, {RandomPositiveDefinite(dtype, {4, 4, 3}, &small_random_)}));
    for (const Literal& operand : {a, tall, wide}) {
      for (const LinalgOp op : {LinalgOp::kLu, LinalgOp::kHouseholderQr, LinalgOp::kSvdValues}) {
        ExpectCallProperties(backend.get(), LinalgCall(op, {operand}));
      }
      for (const bool full : {false, true}) {
        for (const LinalgOp op : {LinalgOp::kQr, LinalgOp::kSvd}) {
          LinalgCall call(op, {operand});
          call.attrs.Set("full", full);
          ExpectCallProperties(backend.get(), call);
        }
      }
    }
    for (const LinalgOp op : {LinalgOp::kEigh, LinalgOp::kEighValues, LinalgOp::kEig, LinalgOp::kEigValues}) {
      ExpectCallProperties(backend.get(), LinalgCall(op, {a}));
    }
    ExpectCallProperties(backend.get(),
                         LinalgCall(LinalgOp::kSolve, {a, RandomMatrices(dtype, {4, 2, 3}, &small_random_)}));
    for (const bool left : {false, true}) {
      for (const int64_t transpose : {0, 1, 2}) {
        LinalgCall call(LinalgOp::kTriangularSolve, {RandomTriangles(dtype, {4, 4}, &small_random_),
                                                     RandomMatrices(dtype, {4, 4}, &small_random_)});
        call.attrs.Set("left_side", left);
        call.attrs.Set("lower", transpose != 1);
        call.attrs.Set("transpose_a", transpose);
        ExpectCallProperties(backend.get(), call);
      }
    }
  }
}

// Those that the engine makes of other ops; where a core op has no kernel yet, they are refused.
TEST_F(CudaLinalgTest, CompositionsAreAsOnTheCpu) {
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : kLinalgDTypes) {
    const Literal a = RandomMatrices(dtype, {4, 4, 2}, &small_random_);
    const Tolerance tolerance = {.norm_relative = SizeOf(RealPartOf(dtype)) == 4 ? 1e-4 : 1e-12, .least_norm = 1};
    const std::pair<absl::string_view, int> kOps[] = {
        {"Inverse", 1}, {"Determinant", 1}, {"SignLogDeterminant", 2}, {"PseudoInverse", 1}, {"MatrixRank", 1}};
    for (const auto& [op, results] : kOps) {
      const std::string text = TextOf(op, results, {a});
      const auto run = Run(backend.get(), text, {a});
      if (!run.ok() && ReasonOf(run.status()) == "UNSUPPORTED_ON_DEVICE") continue;
      ExpectAsOnCpu(backend.get(), text, {a}, tolerance);
    }
  }
}

TEST_F(CudaLinalgTest, DeterminantsAreThoseOfTheCpu) {
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : kLinalgDTypes) {
    const Literal triangles = RandomTriangles(dtype, {9, 9, 3}, &small_random_);
    ExpectAsOnCpu(backend.get(), TextOf("TriangularDeterminant", 3, {triangles}), {triangles}, {.ulps = 4});
    // Rows that are far apart.
    Literal uneven = RandomMatrices(dtype, {4, 4}, &small_random_);
    VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
      if constexpr (RealElement<T> || ComplexElement<T>) {
        const auto values = uneven.mutable_values<T>();
        for (size_t column = 0; column < 4; ++column) {
          values[column * 4 + 1] *= decltype(std::real(T()))(SizeOf(RealPartOf(dtype)) == 4 ? 0x1p100 : 0x1p900);
        }
      }
    });
    ExpectAsOnCpu(backend.get(), TextOf("Equilibrate", 2, {uneven}), {uneven}, {});
    ExpectAsOnCpu(backend.get(), TextOf("Equilibrate", 2, {triangles}), {triangles}, {});
  }
  const Literal edges = Matrices({0, 0, 0, 0, -1e300, 0, 0, 0, 1e300, kNaN, 0, 0, 0, 1, 0, 0, 0, 2}, {3, 3, 2});
  ExpectAsOnCpu(backend.get(), TextOf("TriangularDeterminant", 3, {edges}), {edges}, {});
}

// Of more rows than a block factors: many blocks look through each matrix.
TEST_F(CudaLinalgTest, LargeMatricesAreEquilibratedAsOnTheCpu) {
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : kLinalgDTypes) {
    const bool is_single = SizeOf(RealPartOf(dtype)) == 4;
    for (const int64_t n : {33, 150}) {
      // As it is; rows and columns far apart; one beside a NaN; zeros; a row and a column of zeros; parts far apart.
      Literal a = RandomMatrices(dtype, {n, n, 6}, &small_random_);
      VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
        if constexpr (std::is_floating_point_v<T> || ComplexElement<T>) {
          using Real = decltype(std::real(T()));
          const Real large = static_cast<Real>(is_single ? 0x1p100 : 0x1p900);
          const auto values = a.mutable_values<T>();
          const auto at = [&](int64_t row, int64_t column, int64_t matrix) -> T& {
            return values[static_cast<size_t>(row + (column + matrix * n) * n)];
          };
          for (int64_t k = 0; k < n; ++k) {
            for (const int64_t matrix : {1, 2, 4, 5}) at(n - 1, k, matrix) *= large;
            for (const int64_t matrix : {1, 2, 4}) at(k, n / 2, matrix) /= large;
            for (int64_t row = 0; row < n; ++row) at(row, k, 3) = T(0);
            at(3, k, 4) = at(k, 5, 4) = T(0);
          }
          at(n - 2, 7, 2) = T(std::numeric_limits<Real>::quiet_NaN());
          if constexpr (ComplexElement<T>) at(n - 1, 9, 5) = T(large, 1 / large);
        }
      });
      ExpectAsOnCpu(backend.get(), TextOf("Equilibrate", 2, {a}), {a}, {});
    }
  }
}

// A launch cannot be stopped: none leaves a large matrix to a few blocks.
TEST_F(CudaLinalgTest, AllBlocksEquilibrateALargeMatrix) {
  constexpr int64_t kSize = 46000, kBlocks = 2112;
  for (const DType dtype : kLinalgDTypes) {
    const KernelText text = EquilibrateText(dtype, kSize, 1, kBlocks);
    int over_entries = 0;
    for (const CudaLaunch& launch : text.launches) {
      if (launch.blocks_of_part() < kBlocks) {
        EXPECT_THAT(launch.entry, testing::AnyOf("equilibrate_clear", "equilibrate_far", "equilibrate_sum"))
            << "it goes over rows, and not over entries";
        continue;
      }
      ++over_entries;
      const int64_t blocks_of_entries = launch.parts > 1 ? launch.blocks : kBlocks;
      EXPECT_LE(kSize * kSize / blocks_of_entries, int64_t{1} << 20) << launch.entry;
    }
    EXPECT_GE(over_entries, 5);
  }
}

// Beside a tensor of 92,480 bytes: a run's memory is aligned to 64, and cuSOLVER wants more.
TEST_F(CudaLinalgTest, WorkspacesBesideOtherTensorsAreAligned) {
  const std::unique_ptr<Backend> backend = Made();
  const Literal a = RandomPositiveDefinite(DType::kF64, {34, 34}, &small_random_);
  const Literal b = RandomMatrices(DType::kF64, {34, 340}, &small_random_);
  struct Call {
    absl::string_view op;
    int results, square;
  };
  for (const auto& [op, results, square] :
       {Call{"Cholesky", 1, 0}, Call{"HouseholderQr", 2, 0}, Call{"Qr", 2, 0}, Call{"Eigh", 2, 1}, Call{"Svd", 3, 0}}) {
    constexpr absl::string_view kProduct = ") {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}\n";
    const auto run =
        Run(backend.get(),
            absl::StrCat("graph \"g\" {\n  %a = input : f64[34,34]\n  %b = input : f64[34,340]\n",
                         "  %q = dot_general(%a, %b", kProduct, "  %c", results > 1 ? absl::StrCat(":", results) : "",
                         " = tensord.linalg.v1.", op, "(%a)\n  %y = dot_general(%c",
                         results > 1 ? absl::StrCat(":", square) : "", ", %q", kProduct, "  output \"y\" = %y\n}"),
            {a, b});
    EXPECT_TRUE(run.ok()) << op << run.status();
  }
}

TEST_F(CudaLinalgTest, MatricesWithoutElements) {
  const std::unique_ptr<Backend> backend = Made();
  const Literal kEmpty[] = {Matrices({}, {0, 0}), Matrices({}, {0, 0, 2}), Matrices({}, {3, 3, 0}),
                            Matrices({}, {3, 0}), Matrices({}, {0, 3})};
  for (const Literal& a : kEmpty) {
    const bool is_square = a.shape()[0] == a.shape()[1];
    ExpectAsOnCpu(backend.get(), TextOf("Lu", 4, {a}), {a}, {});
    ExpectAsOnCpu(backend.get(), TextOf("Qr", 2, {a}, " {full = true}"), {a}, {});
    ExpectAsOnCpu(backend.get(), TextOf("Svd", 3, {a}, " {full = true}"), {a}, {});
    ExpectAsOnCpu(backend.get(), TextOf("Svd", 3, {a}), {a}, {});
    if (!is_square) continue;
    ExpectAsOnCpu(backend.get(), TextOf("Cholesky", 1, {a}), {a}, {});
    ExpectAsOnCpu(backend.get(), TextOf("Eigh", 2, {a}), {a}, {});
    ExpectAsOnCpu(backend.get(), TextOf("Eig", 2, {a}), {a}, {});
    ExpectAsOnCpu(backend.get(), TextOf("TriangularDeterminant", 3, {a}), {a}, {});
    ExpectAsOnCpu(backend.get(), TextOf("Equilibrate", 2, {a}), {a}, {});
  }
}

// Three matrices, of which the second one has a NaN where it is read: the others have the bits that they have with any
// other second one.
TEST_F(CudaLinalgTest, ANaNStaysInItsMatrix) {
  const std::unique_ptr<Backend> backend = Made();
  const std::pair<absl::string_view, int> kOps[] = {{"Lu", 4},         {"Svd", 3}, {"SvdValues", 1}, {"Eigh", 2},
                                                    {"EighValues", 1}, {"Eig", 2}, {"EigValues", 1}};
  for (const auto& [n, bad] :
       std::vector<std::pair<int64_t, double>>{{3, kNaN}, {3, std::numeric_limits<double>::infinity()}, {34, kNaN}}) {
    const auto elements = static_cast<size_t>(n * n);
    const Literal whole = RandomMatrices(DType::kF64, {n, n, 3}, &small_random_);
    Literal broken = whole;
    broken.mutable_values<double>()[elements + 2] = bad;  // in the lower triangle
    for (const auto& [op, results] : kOps) {
      SCOPED_TRACE(op);
      const std::string text = TextOf(op, results, {whole});
      const auto want = Run(backend.get(), text, {whole}), got = Run(backend.get(), text, {broken});
      const auto on_cpu = Run(cpu_.get(), text, {broken});
      ASSERT_TRUE(want.ok() && got.ok() && on_cpu.ok()) << got.status();
      for (size_t i = 0; i < got->size(); ++i) {
        const size_t bytes = (*got)[i].bytes().size() / 3;
        EXPECT_EQ((*got)[i].bytes().substr(0, bytes), (*want)[i].bytes().substr(0, bytes));
        EXPECT_EQ((*got)[i].bytes().substr(2 * bytes), (*want)[i].bytes().substr(2 * bytes));
        const auto second = [&](const Literal& x) {
          Shape shape = x.shape();
          shape.back() = 1;
          return *Literal::FromBytes({x.dtype(), shape}, x.bytes().substr(bytes, bytes));
        };
        EXPECT_EQ(Difference(second((*got)[i]), second((*on_cpu)[i]), {}), "");
      }
    }
    const Literal b = RandomMatrices(DType::kF64, {n, 2, 3}, &small_random_);
    const auto solved = Run(backend.get(), TextOf("Solve", 1, {broken, b}), {broken, b});
    ASSERT_TRUE(solved.ok()) << solved.status();
    for (size_t i = 0; i < static_cast<size_t>(6 * n); ++i) {
      EXPECT_EQ(std::isnan((*solved)[0].values<double>()[i]), i / static_cast<size_t>(2 * n) == 1) << i;
    }
  }
}

TEST_F(CudaLinalgTest, RefusalsNameTheMatrix) {
  const std::unique_ptr<Backend> backend = Made();
  const auto refusal = [&](absl::string_view text, const std::vector<Literal>& arguments) {
    const auto on_cpu = Run(cpu_.get(), text, arguments), got = Run(backend.get(), text, arguments);
    EXPECT_FALSE(got.ok());
    EXPECT_EQ(got.status().message(), on_cpu.status().message());
    EXPECT_EQ(ReasonOf(got.status()), ReasonOf(on_cpu.status()));
    return ReasonOf(got.status());
  };
  std::vector<double> identities(4 * 6, 0);
  for (size_t i = 0; i < 6; ++i) identities[i * 4] = identities[i * 4 + 3] = 1;
  std::vector<double> bad = identities;
  bad[4 * 4 + 3] = -1;
  bad[5 * 4] = -1;
  EXPECT_EQ(refusal(TextOf("Cholesky", 1, {Matrices(bad, {2, 2, 2, 3})}), {Matrices(bad, {2, 2, 2, 3})}),
            "MATRIX_NOT_POSITIVE_DEFINITE");
  bad = identities;
  bad[3 * 4 + 3] = kNaN;
  EXPECT_EQ(refusal(TextOf("Cholesky", 1, {Matrices(bad, {2, 2, 6})}), {Matrices(bad, {2, 2, 6})}),
            "MATRIX_NOT_POSITIVE_DEFINITE");
  bad = identities;
  bad[2 * 4 + 3] = 0;
  const std::vector<Literal> system = {Matrices(bad, {2, 2, 6}), Matrices(std::vector<double>(12, 1), {2, 1, 6})};
  EXPECT_EQ(refusal(TextOf("Solve", 1, system), system), "MATRIX_SINGULAR");
  // By the library, a batch at once and one after the other.
  for (const int64_t n : {40, 257}) {
    std::mt19937 random{11};
    Literal batch = RandomPositiveDefinite(DType::kF64, {n, n, 5}, &random);
    const auto at = [&](int64_t matrix, int64_t row) {
      return &batch.mutable_values<double>()[static_cast<size_t>(matrix * n * n + row * (n + 1))];
    };
    *at(4, 0) = -1;
    *at(3, 7) = -1;
    EXPECT_EQ(refusal(TextOf("Cholesky", 1, {batch}), {batch}), "MATRIX_NOT_POSITIVE_DEFINITE") << "the fourth";
    *at(2, 9) = kNaN;
    EXPECT_EQ(refusal(TextOf("Cholesky", 1, {batch}), {batch}), "MATRIX_NOT_POSITIVE_DEFINITE") << "the third";
  }
  const Literal large = WithIdentity({1, 0, 0, 0}, 2, 34);
  EXPECT_EQ(refusal(TextOf("Cholesky", 1, {large}), {large}), "MATRIX_NOT_POSITIVE_DEFINITE");
  EXPECT_EQ(refusal(TextOf("Solve", 1, {large, large}), {large, large}), "MATRIX_SINGULAR");
}

TEST_F(CudaLinalgTest, PivotsWithoutReciprocal) {
  const std::unique_ptr<Backend> backend = Made();
  const double tiny = 4 * std::numeric_limits<double>::denorm_min();
  for (const int64_t n : {2, 34}) {
    const Literal a = WithIdentity({0, tiny, tiny, 0}, 2, n), lower = WithIdentity({tiny, tiny, 0, tiny}, 2, n);
    ExpectAsOnCpu(backend.get(), TextOf("Lu", 4, {a}), {a}, {});
    std::vector<double> sides(static_cast<size_t>(2 * n), 1);
    for (size_t i = 0; i < 2; ++i) {
      sides[i] = tiny * static_cast<double>(i + 2);
      sides[static_cast<size_t>(n) + i] = tiny;
    }
    const Literal b = Matrices(sides, {n, 2});
    ExpectAsOnCpu(backend.get(), TextOf("Solve", 1, {a, b}), {a, b}, {});
    ExpectAsOnCpu(backend.get(), TextOf("TriangularSolve", 1, {lower, b}, " {lower = true, left_side = true}"),
                  {lower, b}, {});
  }
}

// Large matrices of subnormal numbers are divided by a block, in launches that end soon.
TEST_F(CudaLinalgTest, DivisionsThatTakeManyLaunches) {
  constexpr int64_t kSize = 40, kSides = 150;  // more than a block has threads
  const auto scaled = [&](Literal a, bool is_dominant, double scale) {
    absl::Span<double> values = a.mutable_values<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t place = i % (kSize * kSize);
      if (is_dominant && place % (kSize + 1) == 0) values[i] += 10;
      values[i] *= scale;
    }
    return a;
  };
  const double tiny = 0x1p-1030;
  const Literal a = scaled(RandomMatrices(DType::kF64, {kSize, kSize, 2}, &small_random_), true, tiny);
  const Literal b = scaled(RandomMatrices(DType::kF64, {kSize, kSides, 2}, &small_random_), false, tiny);
  const Literal rows = scaled(RandomMatrices(DType::kF64, {kSides, kSize, 2}, &small_random_), false, tiny);
  for (const int64_t steps : {0, 20, 100}) {
    SCOPED_TRACE(steps);
    most_division_steps_ = steps;
    const std::unique_ptr<Backend> backend = Made();
    const long launches = hostCudaCalls("cuLaunchKernel");
    ExpectAsOnCpu(backend.get(), TextOf("Lu", 4, {a}), {a}, {.ulps = 64});
    // Of 40 columns eight launches have five each, and two have 20.
    EXPECT_EQ(hostCudaCalls("cuLaunchKernel") - launches > 12, steps == 20);
    ExpectAsOnCpu(backend.get(), TextOf("Solve", 1, {a, b}), {a, b}, {.norm_relative = 1e-8});
    for (const char* attrs : {" {lower = true, left_side = true}", " {lower = false, left_side = true}",
                              " {lower = false, left_side = true, transpose_a = transpose}"}) {
      ExpectAsOnCpu(backend.get(), TextOf("TriangularSolve", 1, {a, b}, attrs), {a, b}, {.norm_relative = 1e-8});
    }
    ExpectAsOnCpu(backend.get(), TextOf("TriangularSolve", 1, {a, rows}, " {lower = true, left_side = false}"),
                  {a, rows}, {.norm_relative = 1e-8});
  }
}

TEST_F(CudaLinalgTest, NumbersFarFromOne) {
  const std::unique_ptr<Backend> backend = Made();
  for (const double scale : {1e-290, 1e290}) {
    Literal a = RandomMatrices(DType::kF64, {34, 4}, &small_random_);
    for (double& x : a.mutable_values<double>()) x *= scale;
    ExpectAsOnCpu(backend.get(), TextOf("SvdValues", 1, {a}), {a}, {.norm_relative = 1e-13});
    Literal square = RandomMatrices(DType::kF64, {34, 34, 2}, &small_random_);
    for (double& x : square.mutable_values<double>()) x *= scale;
    ExpectAsOnCpu(backend.get(), TextOf("EighValues", 1, {square}), {square}, {.norm_relative = 1e-13});
  }
}

// A size that a function of cuSOLVER does not take is refused, with what to do.
TEST_F(CudaLinalgTest, SizesThatTheLibraryRefuses) {
  const Literal a = RandomMatrices(DType::kF64, {34, 34}, &small_random_);
  const std::pair<absl::string_view, const char*> kCalls[] = {{"Eig", "cusolverDnXgeev_bufferSize"},
                                                              {"Qr", "cusolverDnXgeqrf_bufferSize"},
                                                              {"Qr", "cusolverDnDorgqr_bufferSize"},
                                                              {"Eigh", "cusolverDnXsyevBatched_bufferSize"}};
  for (const auto& [op, function] : kCalls) {
    for (const SolverResult result : {kSolverInvalidValue, kSolverNotSupported}) {
      const std::unique_ptr<Backend> backend = Made();
      hostCudaFail(function, 1, result);
      const auto refused = Run(backend.get(), TextOf(op, 2, {a}), {a});
      hostCudaFail("", 0, 0);
      EXPECT_EQ(ReasonOf(refused.status()), "UNSUPPORTED_ON_DEVICE") << function;
      for (const absl::string_view part : {op, absl::string_view("34 x 34 f64"), absl::string_view("device cpu")}) {
        EXPECT_TRUE(absl::StrContains(refused.status().message(), part)) << refused.status();
      }
    }
  }
}

// Numbers next to the largest: quotients of complex numbers.
TEST_F(CudaLinalgTest, NumbersNextToTheLargest) {
  using C = std::complex<float>;
  const std::unique_ptr<Backend> backend = Made();
  const Tolerance close = {.norm_relative = 1e-5};
  const Literal a = LiteralOf(std::vector<C>{{3e38f, 0}, {3e38f, 0}, {1, 0}, {2, 0}}, {2, 2});
  const Literal b = LiteralOf(std::vector<C>{{3e38f, 3e38f}, {3e38f, 3e38f}}, {2, 1});
  const Literal one = LiteralOf(std::vector<C>{{3e38f, 3e38f}}, {1, 1});
  const std::string triangle = TextOf("TriangularSolve", 1, {one, one}, " {left_side = true, lower = true}");
  ExpectAsOnCpu(backend.get(), TextOf("Lu", 4, {a}), {a}, close);
  ExpectAsOnCpu(backend.get(), TextOf("Solve", 1, {a, b}), {a, b}, close);
  for (const std::string& text : {TextOf("Solve", 1, {one, one}), triangle}) {
    const auto got = Run(backend.get(), text, {one, one});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Difference((*got)[0], LiteralOf(std::vector<C>{{1, 0}}, {1, 1}), close), "") << text;
  }
}

// R has the scale of the matrix; Q, reflectors and their factors have none.
TEST_F(CudaLinalgTest, ReflectorsOfNumbersFarFromOne) {
  const std::unique_ptr<Backend> backend = Made();
  for (const int64_t n : {2, 34}) {
    const auto size = static_cast<size_t>(n);
    std::vector<float> values(size * size, 0);
    for (size_t i = 0; i < size; ++i) values[i * (size + 1)] = 1;
    values[0] = 3;
    values[1] = values[size] = 1;
    for (const float scale : {0x1p126f, 0x1p-130f}) {
      std::vector<float> scaled = values;
      for (float& x : scaled) x *= scale;
      const Literal ordinary = LiteralOf(values, {n, n}), far = LiteralOf(scaled, {n, n});
      for (const absl::string_view op : {"Qr", "HouseholderQr"}) {
        auto want = Run(cpu_.get(), TextOf(op, 2, {ordinary}), {ordinary});
        const auto got = Run(backend.get(), TextOf(op, 2, {far}), {far});
        ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
        const auto r = (*want)[op == "Qr" ? 1 : 0].mutable_values<float>();
        for (size_t i = 0; i < r.size(); ++i) r[i] *= i % size <= i / size ? scale : 1;
        for (size_t i = 0; i < 2; ++i) {
          EXPECT_EQ(Difference((*got)[i], (*want)[i], {.norm_relative = 1e-5}), "") << op << " " << n << " " << scale;
        }
      }
    }
  }
}

// More than the library solves in a call; the last ones have the bits that they have alone.
TEST_F(CudaLinalgTest, ManyHermitianMatrices) {
  auto made =
      MakeCudaBackend({.libraries = libraries_.get(), .tensor_bytes = 1024 * kMiB, .host_memory = host_memory_});
  ASSERT_TRUE(made.ok()) << made.status();
  constexpr int64_t kSize = 33, kBatch = 16384 + 2, kElements = kSize * kSize;
  Literal all = LiteralOf(std::vector<float>(kElements * kBatch), {kSize, kSize, kBatch});
  Literal last = LiteralOf(std::vector<float>(kElements), {kSize, kSize});
  const auto values = all.mutable_values<float>(), last_values = last.mutable_values<float>();
  for (size_t i = 0; i < values.size(); i += kSize + 1) values[i] = static_cast<float>(i % 101);
  for (size_t i = 0; i < kElements; ++i) {
    last_values[i] = values[values.size() - kElements + i] += static_cast<float>(i % kSize + i / kSize) / 7;
  }
  const auto got = Run(made->get(), TextOf("EighValues", 1, {all}), {all});
  const auto alone = Run(made->get(), TextOf("EighValues", 1, {last}), {last});
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(alone.ok()) << alone.status();
  const auto all_values = (*got)[0].values<float>(), alone_values = (*alone)[0].values<float>();
  for (size_t i = 0; i < kSize; ++i) EXPECT_EQ(all_values[all_values.size() - kSize + i], alone_values[i]) << i;
}

// cuSOLVER before 11.7.2 has wrong vectors of batches of C64.
TEST_F(CudaLinalgTest, OldBatchesOfC64AreLeftAlone) {
  const std::unique_ptr<Backend> backend = Made();
  auto* const solver = const_cast<Solver*>(*libraries_->solver());
  solver->cusolverGetVersion = [](int* version) {
    *version = 11701;
    return kSolverSuccess;
  };
  const auto calls = [&] { return hostCudaCalls("cusolverDnXsyevBatched"); };
  for (const DType dtype : {DType::kC64, DType::kC128}) {
    const long before = calls();
    ExpectCallProperties(backend.get(),
                         LinalgCall(LinalgOp::kEigh, {RandomMatrices(dtype, {34, 34, 2}, &small_random_)}));
    EXPECT_EQ(calls() > before, dtype == DType::kC128);
  }
}

// Up to 256 rows by one call, above by one for each.
TEST_F(CudaLinalgTest, CholeskyOfBatches) {
  const std::unique_ptr<Backend> backend = Made();
  const std::map<DType, const char*> functions = {{DType::kF32, "cusolverDnSpotrfBatched"},
                                                  {DType::kF64, "cusolverDnDpotrfBatched"},
                                                  {DType::kC64, "cusolverDnCpotrfBatched"},
                                                  {DType::kC128, "cusolverDnZpotrfBatched"}};
  for (const auto& [dtype, function] : functions) {
    for (const int64_t n : {33, 100, 256, 257}) {
      const long batches = hostCudaCalls(function), each = hostCudaCalls("cusolverDnXpotrf");
      ExpectCallProperties(backend.get(),
                           LinalgCall(LinalgOp::kCholesky, {RandomPositiveDefinite(dtype, {n, n, 2}, &small_random_)}));
      EXPECT_EQ(hostCudaCalls(function) - batches, n <= 256 ? 1 : 0) << n;
      EXPECT_EQ(hostCudaCalls("cusolverDnXpotrf") - each, n <= 256 ? 0 : 2) << n;
    }
  }
  // What is above the diagonal is not read, and the result has zeros there.
  Literal a = RandomPositiveDefinite(DType::kF64, {40, 40, 2}, &small_random_);
  const auto want = Run(cpu_.get(), TextOf("Cholesky", 1, {a}), {a});
  ASSERT_TRUE(want.ok());
  const absl::Span<double> values = a.mutable_values<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 40 < i / 40 % 40) values[i] = kNaN;
  }
  const auto got = Run(backend.get(), TextOf("Cholesky", 1, {a}), {a});
  ASSERT_TRUE(got.ok()) << got.status();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR((*got)[0].values<double>()[i], (*want)[0].values<double>()[i], 1e-12) << i;
  }
}

// An older library is opened, and has the functions of its time.
TEST_F(CudaLinalgTest, OlderLibraries) {
  const std::unique_ptr<Backend> backend = Made();
  auto* const solver = const_cast<Solver*>(*libraries_->solver());
  solver->cusolverDnXgeev = nullptr;
  solver->cusolverDnXsyevBatched = nullptr;
  const Literal a = RandomMatrices(DType::kF64, {3, 3, 2}, &small_random_);
  const auto refused = Run(backend.get(), TextOf("Eig", 2, {a}), {a});
  EXPECT_EQ(ReasonOf(refused.status()), "UNSUPPORTED_ON_DEVICE");
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "CUDA 12.8")) << refused.status();
  const Literal large = RandomMatrices(DType::kF64, {33, 33, 2}, &small_random_);
  ExpectCallProperties(backend.get(), LinalgCall(LinalgOp::kEigh, {large}));
}

TEST_F(CudaLinalgTest, EachCallMayFail) {
  const Literal a = RandomMatrices(DType::kF64, {34, 34, 2}, &small_random_);
  const Literal definite = RandomPositiveDefinite(DType::kF64, {34, 34}, &small_random_);
  const Literal larger = RandomPositiveDefinite(DType::kF64, {257, 257}, &small_random_);
  const Literal one = RandomMatrices(DType::kF64, {34, 34}, &small_random_);
  ExpectFailuresLeaveNothing({"cusolverDnDpotrfBatched"}, TextOf("Cholesky", 1, {definite}), {definite});
  ExpectFailuresLeaveNothing({"cusolverDnCreate", "cusolverDnSetStream", "cusolverDnSetDeterministicMode",
                              "cusolverDnCreateParams", "cusolverDnXpotrf_bufferSize", "cusolverDnXpotrf"},
                             TextOf("Cholesky", 1, {larger}), {larger});
  ExpectFailuresLeaveNothing({"cusolverDnXgetrf_bufferSize", "cusolverDnXgetrf", "cusolverDnXgetrs"},
                             TextOf("Solve", 1, {a, a}), {a, a});
  ExpectFailuresLeaveNothing({"cublasCreate_v2", "cublasSetStream_v2", "cublasSetAtomicsMode", "cublasSetMathMode",
                              "cublasSetWorkspace_v2", "cublasDtrsm_v2_64"},
                             TextOf("TriangularSolve", 1, {one, one}), {one, one});
  ExpectFailuresLeaveNothing({"cusolverDnXgeqrf_bufferSize", "cusolverDnXgeqrf"}, TextOf("Qr", 2, {one}), {one});
  ExpectFailuresLeaveNothing({"cusolverDnXsyevBatched_bufferSize", "cusolverDnXsyevBatched"}, TextOf("Eigh", 2, {a}),
                             {a});
  ExpectFailuresLeaveNothing({"cusolverDnXgesvd_bufferSize", "cusolverDnXgesvd"}, TextOf("Svd", 3, {one}), {one});
  ExpectFailuresLeaveNothing({"cusolverDnXgeev_bufferSize", "cusolverDnXgeev"}, TextOf("Eig", 2, {one}), {one});
  const_cast<Solver*>(*libraries_->solver())->cusolverDnXsyevBatched = nullptr;
  ExpectFailuresLeaveNothing({"cusolverDnXsyevd_bufferSize", "cusolverDnXsyevd"}, TextOf("Eigh", 2, {one}), {one});
}

}  // namespace
}  // namespace tensord::cuda
