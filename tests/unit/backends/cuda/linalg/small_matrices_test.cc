// Texts that decompose small matrices: by properties, by scale, at the edges, and under NVIDIA's compiler.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/compile/cubin_store.h"
#include "backends/cuda/cuda_program.h"
#include "backends/cuda/cuda_session.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/small_kernel.h"
#include "backends/cuda/linalg/small_texts.h"
#include "engine/families/linalg/spectra.h"
#include "gmock/gmock.h"
#include "tests/testlib/cuda/nvrtc.h"
#include "tests/testlib/numbers/linalg_properties.h"
#include "tests/testlib/numbers/literal_of.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

constexpr DType kSmallDTypes[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};
constexpr LinalgOp kSmallOps[] = {LinalgOp::kQr,        LinalgOp::kHouseholderQr, LinalgOp::kSvd,
                                  LinalgOp::kSvdValues, LinalgOp::kEigh,          LinalgOp::kEighValues};

bool IsOfSquares(LinalgOp op) { return op == LinalgOp::kEigh || op == LinalgOp::kEighValues; }
bool CanBeFull(LinalgOp op) { return op == LinalgOp::kQr || op == LinalgOp::kSvd; }

LinalgCall CallOf(LinalgOp op, const Literal& a, bool is_full = false) {
  LinalgCall call(op, {a});
  if (CanBeFull(op)) call.attrs.Set("full", is_full);
  return call;
}

// Changes each element: `f` takes its real and its imaginary part.
Literal Mapped(Literal a, const std::function<double(double)>& f) {
  VisitDType(a.dtype(), [&]<typename T>(TypeTag<T>) {
    for (T& x : a.mutable_values<T>()) {
      if constexpr (RealElement<T>) {
        x = static_cast<T>(f(static_cast<double>(x)));
      } else if constexpr (ComplexElement<T>) {
        using R = decltype(x.real());
        x = T(static_cast<R>(f(static_cast<double>(x.real()))), static_cast<R>(f(static_cast<double>(x.imag()))));
      }
    }
  });
  return a;
}

class SmallMatricesTest : public BesideCpuTest {
 protected:
  static absl::StatusOr<std::vector<Literal>> RunCall(Backend* backend, const LinalgCall& call) {
    tensord::Graph graph;
    graph.set_name("g");
    Node node{.name = "n", .op = &Def(call.op), .attrs = call.attrs};
    node.operands.push_back(graph.AddInput("x", ToTensorType(call.operands[0].type())));
    node.num_results = static_cast<int32_t>(call.ResultTypes().size());
    const int32_t results = node.num_results;
    const ValueId first = graph.AddNode(std::move(node));
    for (int32_t i = 0; i < results; ++i) graph.AddOutput(absl::StrCat("y", i), ValueId{first.index + i});
    return CompileAndRun(graph, {.backend = backend}, call.operands);
  }
  std::vector<Literal> Results(const LinalgCall& call) {
    auto results = RunCall(backend_.get(), call);
    EXPECT_TRUE(results.ok()) << call.Name() << " of " << ToString(call.operands[0].type()) << ": " << results.status();
    return results.ok() ? *std::move(results) : std::vector<Literal>();
  }
  void ExpectAllProperties(const Literal& a) {
    SCOPED_TRACE(ToString(a.type()));
    for (const LinalgOp op : kSmallOps) {
      if (IsOfSquares(op) && a.shape()[0] != a.shape()[1]) continue;
      for (const bool is_full : {false, true}) {
        if (is_full && (!CanBeFull(op) || a.shape()[0] == a.shape()[1])) continue;
        const LinalgCall call = CallOf(op, a, is_full);
        if (const std::vector<Literal> results = Results(call); !results.empty()) ExpectProperties(call, results);
      }
    }
  }

  void TearDown() override {
    hostCudaSet("CHECK", "");
    hostCudaSet("ORDER", "");
    backend_ = nullptr;
    BesideCpuTest::TearDown();
  }

  std::unique_ptr<Backend> backend_ = Made();
  std::mt19937 small_random_{7};
};

TEST_F(SmallMatricesTest, EverySizeHasTheProperties) {
  for (const int64_t n : {1, 2, 31, 32}) {
    ExpectAllProperties(RandomMatrices(DType::kF64, {n, n, 2}, &small_random_));
  }
  for (const Shape& shape : {Shape{32, 1}, Shape{7, 3, 2}, Shape{17, 32}}) {
    ExpectAllProperties(RandomMatrices(DType::kF64, shape, &small_random_));
  }
  ExpectAllProperties(RandomMatrices(DType::kC128, {32, 32}, &small_random_));
  for (const DType dtype : {DType::kF32, DType::kC64}) {
    ExpectAllProperties(RandomMatrices(dtype, {9, 9, 2}, &small_random_));
  }
}

// One row or column more is the library's.
TEST_F(SmallMatricesTest, TheTextsEndAt32) {
  const auto calls = [&](const Literal& a) {
    long before = 0, after = 0;
    const char* const functions[] = {"cusolverDnXgeqrf", "cusolverDnXsyevBatched", "cusolverDnXgesvd"};
    for (const char* function : functions) before += hostCudaCalls(function);
    for (const LinalgOp op : {LinalgOp::kQr, LinalgOp::kSvd, LinalgOp::kEigh}) {
      if (IsOfSquares(op) && a.shape()[0] != a.shape()[1]) continue;
      const LinalgCall call = CallOf(op, a);
      ExpectProperties(call, Results(call));
    }
    for (const char* function : functions) after += hostCudaCalls(function);
    return after - before;
  };
  EXPECT_EQ(calls(RandomMatrices(DType::kF64, {32, 32}, &small_random_)), 0);
  EXPECT_EQ(calls(RandomMatrices(DType::kF64, {33, 33}, &small_random_)), 3);
  EXPECT_EQ(calls(RandomMatrices(DType::kF64, {33, 2}, &small_random_)), 2);
  EXPECT_EQ(calls(RandomMatrices(DType::kF64, {2, 33}, &small_random_)), 2);
}

TEST_F(SmallMatricesTest, ADecompositionIsOneLaunch) {
  const Literal a = RandomMatrices(DType::kF64, {6, 6, 40}, &small_random_);
  for (const LinalgOp op : kSmallOps) {
    const LinalgCall call = CallOf(op, a);
    Results(call);
    const long before = hostCudaCalls("cuLaunchKernel");
    Results(call);
    EXPECT_EQ(hostCudaCalls("cuLaunchKernel") - before, 1) << call.Name();
  }
}

// Reflectors have LAPACK's signs, as the CPU's have.
TEST_F(SmallMatricesTest, ReflectorsAreThoseOfTheCpu) {
  for (const DType dtype : kSmallDTypes) {
    const double tolerance = SizeOf(RealPartOf(dtype)) == 4 ? 2e-5 : 1e-13;
    for (const Shape& shape : {Shape{6, 6, 3}, Shape{9, 4}, Shape{4, 9}, Shape{1, 1}, Shape{1, 3}, Shape{3, 1}}) {
      Literal a = RandomMatrices(dtype, shape, &small_random_);
      for (const bool has_zeros : {false, true}) {
        if (has_zeros) a = Filled(dtype, shape, 0);
        const LinalgCall call = CallOf(LinalgOp::kHouseholderQr, a);
        const auto want = RunCall(cpu_.get(), call);
        ASSERT_TRUE(want.ok()) << want.status();
        const std::vector<Literal> got = Results(call);
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(Difference(got[i], (*want)[i], {.norm_relative = tolerance}), "") << ToString(a.type());
        }
      }
    }
  }
}

// Matrices at which iterations like to fail; of one size, so that they share their kernels.
TEST_F(SmallMatricesTest, SpecialMatrices) {
  constexpr int64_t n = 5;
  for (const DType dtype : {DType::kF64, DType::kC64}) {
    ExpectAllProperties(Filled(dtype, {n, n, 2}, 0));
    ExpectAllProperties(Filled(dtype, {n, n, 2}, 1));  // of rank 1: n - 1 equal eigenvalues
    ExpectAllProperties(RandomOfRank(dtype, {n, n, 2}, 2, &small_random_));
    // The identity and a swap: equal eigenvalues, and zeros on a diagonal.
    int64_t place = 0;
    const int64_t parts = SizeOf(dtype) / SizeOf(RealPartOf(dtype));
    ExpectAllProperties(Mapped(Filled(dtype, {n, n, 2}, 0), [&](double) {
      const int64_t e = place / parts % (n * n), row = e % n, column = e / n, matrix = place / parts / (n * n);
      const bool is_real = place++ % parts == 0;
      return is_real && (matrix == 0 ? row == column : row + column == n - 1) ? 1.0 : 0.0;
    }));
    // Columns of lengths from 1 to far below an epsilon.
    place = 0;
    ExpectAllProperties(Mapped(RandomMatrices(dtype, {n, n, 2}, &small_random_), [&](double x) {
      return std::ldexp(x, -15 * static_cast<int>(place++ / parts / n % n));
    }));
    for (const Shape& shape : {Shape{8, 3}, Shape{3, 8}}) {
      ExpectAllProperties(Filled(dtype, shape, 0));
      ExpectAllProperties(RandomOfRank(dtype, shape, 1, &small_random_));
    }
  }
}

// A power of two times a matrix has that times its values, and the same vectors, whatever squares of numbers do.
TEST_F(SmallMatricesTest, ScalesDoNotShow) {
  for (const DType dtype : kSmallDTypes) {
    const bool is_single = SizeOf(RealPartOf(dtype)) == 4;
    const Literal a = Mapped(RandomMatrices(dtype, {5, 5}, &small_random_),
                             [](double x) { return std::round(x * 16) + 1; });  // integers, none of them 0
    for (const int exponent : {is_single ? 115 : 1010, is_single ? -100 : -900, is_single ? -149 : -1074}) {
      SCOPED_TRACE(exponent);
      const auto scale = [&](double x) { return std::ldexp(x, exponent); };
      const Literal scaled = Mapped(a, scale);
      // Subnormal values are rounded.
      const bool is_subnormal = exponent == (is_single ? -149 : -1074);
      const struct {
        LinalgOp op;
        size_t values;
      } kCases[] = {{LinalgOp::kQr, 1}, {LinalgOp::kSvd, 1}, {LinalgOp::kEigh, 0}};
      for (const auto& c : kCases) {
        const std::vector<Literal> plain = Results(CallOf(c.op, a)), got = Results(CallOf(c.op, scaled));
        ASSERT_EQ(got.size(), plain.size());
        for (size_t i = 0; i < got.size(); ++i) {
          if (i != c.values) {
            EXPECT_TRUE(got[i].bytes() == plain[i].bytes()) << Def(c.op).name << " result " << i;
          } else if (!is_subnormal) {
            EXPECT_EQ(Difference(got[i], Mapped(plain[i], scale), {}), "") << Def(c.op).name;
          } else {
            EXPECT_EQ(Difference(got[i], Mapped(plain[i], scale), {.ulps = 1}), "") << Def(c.op).name;
          }
        }
      }
    }
  }
}

TEST_F(SmallMatricesTest, ABatchHasTheBitsOfItsMatricesAlone) {
  for (const int64_t n : {3, 20}) {
    const int64_t batch = n == 3 ? 1000 : 7, bytes = n * n * 8;
    const Literal all = RandomMatrices(DType::kF64, {n, n, batch}, &small_random_);
    for (const LinalgOp op : kSmallOps) {
      const std::vector<Literal> together = Results(CallOf(op, all));
      for (const char* order : {"forward", "reverse"}) {
        hostCudaSet("ORDER", order);
        EXPECT_TRUE(Results(CallOf(op, all))[0].bytes() == together[0].bytes());
      }
      hostCudaSet("ORDER", "");
      for (const int64_t b : {int64_t{0}, batch / 2, batch - 1}) {
        const Literal one = *Literal::FromBytes(
            {DType::kF64, {n, n}}, all.bytes().substr(static_cast<size_t>(b * bytes), static_cast<size_t>(bytes)));
        const std::vector<Literal> alone = Results(CallOf(op, one));
        for (size_t i = 0; i < alone.size(); ++i) {
          const size_t size = alone[i].bytes().size();
          EXPECT_TRUE(together[i].bytes().substr(static_cast<size_t>(b) * size, size) == alone[i].bytes())
              << Def(op).name << " result " << i << " matrix " << b;
        }
      }
    }
  }
}

// Nothing stops a launch: on a device of one processor it has a thousand matrices or two.
TEST_F(SmallMatricesTest, VeryManyMatricesAreCutAndHaveTheSameBits) {
  const Literal all = RandomPositiveDefinite(DType::kF32, {6, 6, 2100}, &small_random_);
  const std::unique_ptr<Backend> small = Made();
  for (const LinalgOp op : {LinalgOp::kQr, LinalgOp::kEighValues, LinalgOp::kCholesky, LinalgOp::kLu}) {
    SCOPED_TRACE(Def(op).name);
    const LinalgCall call = CallOf(op, all);
    const auto launches = [&] { return hostCudaCalls("cuLaunchKernel"); };
    const long before = launches();
    const std::vector<Literal> whole = Results(call);
    const long between = launches();
    hostCudaSet("MULTIPROCESSORS", "1");  // it asks when it compiles
    const auto cut = RunCall(small.get(), call);
    hostCudaSet("MULTIPROCESSORS", "");
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_GT(launches() - between, between - before);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE((*cut)[i].bytes() == whole[i].bytes()) << i;
  }
}

TEST_F(SmallMatricesTest, NoAccessIsOutOfBoundsAndNoneRaces) {
  hostCudaSet("CHECK", "1");
  const long before = hostCudaProblems();
  for (const Shape& shape : {Shape{5, 5, 3}, Shape{9, 2}, Shape{2, 9}}) {
    ExpectAllProperties(RandomMatrices(DType::kF64, shape, &small_random_));
  }
  ExpectAllProperties(RandomOfRank(DType::kC64, {3, 3, 9}, 1, &small_random_));
  EXPECT_EQ(hostCudaProblems(), before);
}

// The engine makes these of the same kernels.
TEST_F(SmallMatricesTest, SolutionsByLeastSquares) {
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{7, 3}, {3, 7}, {4, 4}}) {
    for (const DType dtype : {DType::kF64, DType::kC128}) {
      const Literal a = RandomMatrices(dtype, {m, n, 2}, &small_random_),
                    b = RandomMatrices(dtype, {m, 2, 2}, &small_random_);
      const std::string inputs = absl::StrCat("graph \"g\" {\n  %a = input : ", ToString(a.type()),
                                              "\n  %b = input : ", ToString(b.type()), "\n");
      const auto text = [&](absl::string_view call) {
        return absl::StrCat(inputs, "  %y = tensord.linalg.v1.", call, "\n  output \"y\" = %y\n}\n");
      };
      ExpectAsOnCpu(backend_.get(), text("LeastSquares(%a, %b)"), {a, b}, {.norm_relative = 1e-11});
      ExpectAsOnCpu(backend_.get(), text("PseudoInverse(%a)"), {a, b}, {.norm_relative = 1e-11});
      ExpectAsOnCpu(backend_.get(), text("MatrixRank(%a)"), {a, b}, {});
      const Literal of_rank_2 = RandomOfRank(dtype, {m, n, 2}, 2, &small_random_);
      ExpectAsOnCpu(backend_.get(), text("MatrixRank(%a)"), {of_rank_2, b}, {});
      ExpectAsOnCpu(backend_.get(), text("PseudoInverse(%a)"), {of_rank_2, b}, {.norm_relative = 1e-10});
    }
  }
}

// Rows of a matrix of powers are up to 46 powers of ten apart.
TEST_F(SmallMatricesTest, RowsFarApartConverge) {
  constexpr int64_t kSize = 32;
  Literal powers = *Literal::Create({.dtype = DType::kF64, .shape = {kSize, kSize}});
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      const double base = 0.01 + 0.99 * static_cast<double>(j) / (kSize - 1);
      powers.mutable_values<double>()[static_cast<size_t>(i + j * kSize)] = std::pow(base, static_cast<double>(i));
    }
  }
  const absl::string_view text = R"(graph "g" {
    %a = input : f64[32,32]
    %s = tensord.linalg.v1.SvdValues(%a)
    output "s" = %s
  })";
  ExpectAsOnCpu(backend_.get(), text, {powers}, {.norm_relative = 1e-13});
}

TEST_F(SmallMatricesTest, ARunWithoutRoomForItsVerdictIsRefused) {
  const std::shared_ptr<Context> context = Entered();
  auto compiler = *KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  const KernelContext of = {.compiler = compiler.get(), .libraries = libraries_.get()};
  BoundInstruction bound{.op = &kSvdValuesDef};
  bound.operands.push_back({DType::kF64, {3, 3}});
  bound.results.push_back({DType::kF64, {3}});
  const Slot slots[] = {0, 1};
  const SegmentInstruction segments[] = {
      {.bound = bound, .operands = {&slots[0], 1}, .results = {&slots[1], 1}, .node = "values"}};
  auto program =
      CudaProgram::CreateOf(segments, [&](const BoundInstruction&) { return MakeSmallSvd(bound, of, kMostSweeps); });
  ASSERT_TRUE(program.ok()) << program.status();
  auto memory = *DevicePool::Create(context, {.limit_bytes = kMiB, .limit_name = "limit"});
  std::vector<std::shared_ptr<Buffer>> held;
  for (int64_t bytes = kMiB; bytes > 0; bytes /= 2) {
    for (auto more = memory->Allocate(bytes); more.ok(); more = memory->Allocate(bytes)) held.push_back(*more);
  }
  ASSERT_FALSE(held.empty());
  Lanes lanes(context, libraries_.get(), 1);
  CudaSession session(context, memory, *lanes.Borrow(), /*most_ahead=*/std::chrono::hours(1));
  void* const address = held[0]->address();
  EXPECT_EQ(session.Run(**program, {address, address}, {}, {}).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SmallMatricesTest, WhatIteratesSaysThatTheNumbersDecideHowLong) {
  const std::shared_ptr<Context> context = Entered();
  auto compiler = *KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  const KernelContext of = {.compiler = compiler.get(), .libraries = libraries_.get()};
  BoundInstruction values{.op = &kSvdValuesDef};
  values.operands.push_back({DType::kF64, {3, 3}});
  values.results.push_back({DType::kF64, {3}});
  const auto svd = MakeSmallSvd(values, of, kMostSweeps), eigh = MakeSmallEigh(values, of, kMostSweeps);
  BoundInstruction factors = values;
  factors.results = {{DType::kF64, {3, 3}}, {DType::kF64, {3, 3}}};
  const auto qr = MakeSmallQr(factors, of);
  ASSERT_TRUE(svd.ok() && eigh.ok() && qr.ok()) << svd.status() << eigh.status() << qr.status();
  EXPECT_TRUE((*svd)->varies());
  EXPECT_TRUE((*eigh)->varies());
  EXPECT_FALSE((*qr)->varies());
}

// One sweep is too little for all but diagonal matrices.
TEST_F(SmallMatricesTest, TheFirstMatrixThatDoesNotConvergeIsRefused) {
  const std::shared_ptr<Context> context = Entered();
  auto compiler = *KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  const KernelContext of = {.compiler = compiler.get(), .libraries = libraries_.get()};
  const int64_t n = 4, batch = 6;
  const Literal hard = RandomMatrices(DType::kF64, {n, n, batch}, &small_random_);
  for (const OpDef* op : {&kEighValuesDef, &kSvdValuesDef}) {
    for (const auto& [first_hard, sweeps] :
         std::vector<std::pair<int64_t, int>>{{0, 1}, {4, 1}, {6, 1}, {0, kMostSweeps}}) {
      Literal a = hard;
      for (int64_t e = 0; e < n * n * first_hard; ++e) {
        a.mutable_values<double>()[static_cast<size_t>(e)] = e % (n * n) % (n + 1) == 0 ? 2 : 0;
      }
      BoundInstruction bound{.op = op};
      bound.operands.push_back({DType::kF64, {n, n, 2, 3}});
      bound.results.push_back({DType::kF64, {n, 2, 3}});
      const auto make = [&](const BoundInstruction&) {
        return op == &kEighValuesDef ? MakeSmallEigh(bound, of, sweeps) : MakeSmallSvd(bound, of, sweeps);
      };
      const Slot slots[] = {0, 1};
      const SegmentInstruction segments[] = {
          {.bound = bound, .operands = {&slots[0], 1}, .results = {&slots[1], 1}, .node = "values"}};
      auto program = CudaProgram::CreateOf(segments, make);
      ASSERT_TRUE(program.ok()) << program.status();
      auto memory = *DevicePool::Create(context, {.limit_bytes = kMiB, .limit_name = "limit"});
      Lanes lanes(context, libraries_.get(), 1);
      Lanes::Loan lane = *lanes.Borrow();
      const auto in = *memory->Allocate(8 * n * n * batch), out = *memory->Allocate(8 * n * batch);
      ASSERT_TRUE(lane->Upload(reinterpret_cast<CuAddress>(in->address()), a.bytes().data(), 8 * n * n * batch).ok());
      CudaSession session(context, memory, std::move(lane), /*most_ahead=*/std::chrono::hours(1));
      const absl::Status run = session.Run(**program, {in->address(), out->address()}, {}, {});
      ASSERT_TRUE(run.ok()) << run;
      const absl::Status finished = session.Finish();
      if (first_hard == batch || sweeps == kMostSweeps) {
        EXPECT_TRUE(finished.ok()) << finished;
        continue;
      }
      EXPECT_EQ(ReasonOf(finished), "NO_CONVERGENCE");
      EXPECT_THAT(std::string(finished.message()), HasSubstr(first_hard == 0 ? "[0,0]" : "[0,2]"));
    }
  }
}

// Nothing is spilled, and the registers leave a processor to as many warps as its shared memory lets in.
TEST(SmallTextsTest, NvidiasCompilerTakesThem) {
  const tensord::Nvrtc* const nvrtc = tensord::Nvrtc::Get();
  if (nvrtc == nullptr) GTEST_SKIP() << "no NVRTC";
  constexpr const char* kArchitectures[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
  int texts = 0;
  const auto expect = [&](const KernelText& text, int most_registers, const char* architecture) {
    const auto registers =
        nvrtc->Registers(text.source, {absl::StrCat("--gpu-architecture=", architecture),
                                       std::string(kCudaCompileOptions[0]), std::string(kCudaCompileOptions[1])});
    ASSERT_TRUE(registers.ok()) << architecture << ": " << registers.status() << text.source;
    EXPECT_LE(*registers, most_registers) << text.launches[0].entry << " " << architecture;
    ++texts;
  };
  for (const DType dtype : kSmallDTypes) {
    const bool is_wide = dtype == DType::kC128;
    const SmallMatrices square = {.dtype = dtype, .rows = 32, .columns = 32, .batch = 1000, .most_blocks = 2112};
    const SmallMatrices wide = {.dtype = dtype, .rows = 3, .columns = 7, .batch = 1000, .most_blocks = 2112};
    for (const char* architecture : kArchitectures) {
      if (!is_wide && architecture != kArchitectures[texts % 5]) continue;
      expect(SmallQrText(square, 32), is_wide ? 96 : 72, architecture);
      expect(SmallEighText(square, true, kMostSweeps), is_wide ? 96 : 80, architecture);
      expect(SmallSvdText(square, {32, 32}, kMostSweeps), is_wide ? 160 : 96, architecture);
    }
    expect(SmallReflectorsText(wide), 72, kArchitectures[texts % 5]);
    expect(SmallSvdText(wide, {3, 7}, kMostSweeps), 96, kArchitectures[texts % 5]);
    expect(SmallSvdText(wide, {}, kMostSweeps), 96, kArchitectures[texts % 5]);
  }
}

}  // namespace
}  // namespace tensord::cuda
