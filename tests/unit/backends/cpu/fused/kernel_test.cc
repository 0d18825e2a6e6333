// Fused kernels against the kernels of single ops, one instruction after the other: the same bits, since fusion rounds
// where they round (sums and products of the random programs are exact, so that their order does not show).

#include "backends/cpu/fused/kernel.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/machine/thread_pool.h"
#include "gtest/gtest.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/micro/micro_evaluator.h"
#include "tests/testlib/micro/random_micro_program.h"
#include "tests/unit/backends/cpu/fused/call.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/sample_values.h"

namespace tensord::cpu {
namespace {

std::vector<Literal> TensorsOf(const RandomMicro& micro, uint64_t seed) {
  std::vector<Literal> tensors;
  for (size_t t = 0; t < micro.tensor_elements.size(); ++t) {
    tensors.push_back(Sample({micro.program.tensors[t], {micro.tensor_elements[t]}}, seed + t));
  }
  return tensors;
}

// Evaluates by the kernel of the single op.
Literal EvaluateByKernel(CoreOp op, const Attributes& attrs, std::vector<const Literal*> operands, ConcreteType type) {
  Literal result = *Literal::Create(type);
  BoundInstruction bound;
  bound.op = &Def(op);
  bound.attrs = &attrs;
  std::vector<const void*> addresses;
  for (const Literal* operand : operands) {
    bound.operands.push_back(operand->type());
    addresses.push_back(operand->bytes().data());
  }
  bound.results.push_back(type);
  auto kernel = FactoryOf(Def(op))(bound);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return result;
  const Storage scratch((*kernel)->scratch_bytes());
  void* results[] = {result.mutable_data()};
  ThreadPool pool(1);
  (*kernel)->Run({.operands = addresses, .results = results, .scratch = scratch.data, .pool = &pool});
  return result;
}

template <typename T>
bool AgreeAt(const std::string& got, absl::string_view want, size_t* where) {
  for (size_t i = 0; i < got.size(); i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, got.data() + i, sizeof(T));
    std::memcpy(&b, want.data() + i, sizeof(T));
    *where = i / sizeof(T);
    if (!Agree(a, b, 0)) return false;
  }
  return true;
}

bool SameValues(const std::vector<std::string>& got, const std::vector<Literal>& want, const MicroProgram& program,
                const std::string& what) {
  if (got.size() != want.size()) return false;
  for (size_t r = 0; r < want.size(); ++r) {
    size_t where = 0;
    const bool same = got[r].size() == want[r].bytes().size() &&
                      VisitDType(want[r].dtype(),
                                 [&]<typename T>(TypeTag<T>) { return AgreeAt<T>(got[r], want[r].bytes(), &where); });
    EXPECT_TRUE(same) << what << ", result " << r << ", element " << where << " of\n" << ToString(program);
    if (!same) return false;
  }
  return true;
}

bool ExpectSame(const RandomMicro& micro, uint64_t seed, const std::string& what) {
  const MicroProgram& program = micro.program;
  const std::vector<Literal> tensors = TensorsOf(micro, seed);
  const std::vector<Literal> want = EvaluateMicroProgram(program, tensors, EvaluateByKernel);
  const Fused fused(program);
  if (!fused.ok()) return false;
  const std::vector<std::string> once = fused.Run(tensors, 1);
  if (!SameValues(once, want, program, what)) return false;
  const bool same = fused.Run(tensors, 3) == once;
  EXPECT_TRUE(same) << what << ": three threads give other bits\n" << ToString(program);
  for (const auto& pair : InPlacePairs(program)) {
    const std::string name = absl::StrCat(what, ", result ", pair.first, " in operand ", pair.second);
    if (!SameValues(fused.Run(tensors, 2, pair), want, program, name)) return false;
  }
  return same;
}

void ExpectRandomProgramsSame(const RandomMicroOptions& options, uint64_t first, int count) {
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    std::mt19937_64 random(seed);
    if (!ExpectSame(MakeRandomMicroProgram(options, &random), seed, absl::StrCat("seed ", seed))) return;
  }
}

TEST(FusedKernelTest, ElementwiseProgramsGiveTheBitsOfSingleOps) {
  ExpectRandomProgramsSame({.max_points = 3000, .takes = Takes}, 1, 300);
  ExpectRandomProgramsSame({.max_points = 100000, .instructions = 6, .takes = Takes}, 1000, 20);
}

TEST(FusedKernelTest, ReductionsGiveTheBitsOfSingleOps) {
  ExpectRandomProgramsSame({.reduces = true, .max_points = 3000, .takes = Takes}, 1, 400);
  ExpectRandomProgramsSame({.reduces = true, .max_points = 150000, .instructions = 6, .takes = Takes}, 1000, 40);
}

TEST(FusedKernelTest, EveryInstructionSet) {
  ForEachInstructionSet([](const std::string&) {
    ExpectRandomProgramsSame({.max_points = 2000, .takes = Takes}, 5000, 25);
    ExpectRandomProgramsSame({.reduces = true, .max_points = 5000, .takes = Takes}, 6000, 40);
  });
}

TEST(FusedKernelTest, LongProgramsNeedManyRegisters) {
  ExpectRandomProgramsSame({.max_points = 3000, .instructions = 400, .takes = Takes}, 1, 6);
  ExpectRandomProgramsSame({.reduces = true, .max_points = 3000, .instructions = 150, .takes = Takes}, 1, 6);
}

// Windows of one operand, shifted along each axis and backwards, whose rows are tiles, or several each, or one point.
TEST(FusedKernelTest, ShiftedWindowsAreReadAlongTheirRows) {
  for (const int64_t width : {1, 2, 63, 160, 1024, 4096}) {
    for (const int64_t columns : {1, 7}) {
      constexpr int64_t kPlanes = 40;
      const int64_t row = width + 2, plane = row * (columns + 2);
      MicroBuilder b({{.size = width}, {.size = columns}, {.size = kPlanes}});
      const auto window = [&](int64_t i, int64_t j, int64_t k) {
        return MicroAccess{.offset = i + j * row + k * plane, .strides = {1, row, plane}};
      };
      MicroAccess backwards = window(0, columns - 1, kPlanes - 1);
      backwards.strides = {1, -row, -plane};
      const int32_t x = b.Load(DType::kF64, MicroLevel::kFull, window(1, 1, 1));
      int32_t sum = x;
      for (const MicroAccess& access : {window(0, 1, 1), window(2, 1, 1), window(1, 2, 0), backwards}) {
        sum =
            b.Binary(CoreOp::kAdd, sum, b.Binary(CoreOp::kMultiply, x, b.Load(DType::kF64, MicroLevel::kFull, access)));
      }
      b.Result(b.Binary(CoreOp::kSubtract, sum, b.Load(DType::kF64, MicroLevel::kFull)));
      RandomMicro micro{.program = b.Build()};
      micro.tensor_elements.assign(micro.program.tensors.size(), plane * (kPlanes + 2));
      micro.tensor_elements.back() = width * columns * kPlanes;
      if (!ExpectSame(micro, 3, absl::StrCat(width, " by ", columns))) return;
    }
  }
}

}  // namespace
}  // namespace tensord::cpu
