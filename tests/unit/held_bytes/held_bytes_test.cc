// The bytes that programs say they hold, compared with malloc's count: a test binary of its own, with one thread.

#include <malloc.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/allocated_bytes.h"
#include "engine/runtime/compile/compiler.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/mixed_graph.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord {
namespace {

int64_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

struct Setting {
  std::string name;
  bool symbolic = false;
  std::vector<std::string> disabled_passes;
};

class HeldBytesTest : public testing::TestWithParam<Setting> {};

TEST_P(HeldBytesTest, AreWhatMallocHasGiven) {
  // Code lies beside malloc.
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1, .jit = CpuUse::kOff});
  const CompileSettings settings{.device = "cpu:0", .disabled_passes = GetParam().disabled_passes};
  Graph graph = MixedGraph({.nodes = 3000, .symbolic = GetParam().symbolic});
  const Fingerprint fingerprint = MakeProgramKey(graph, settings).fingerprint;
  const CompiledProgramPtr program = *Compile(std::move(graph), settings, fingerprint, backend.get());
  ASSERT_EQ(program->static_binding() != nullptr, !GetParam().symbolic);
  const auto types_of = [&](int64_t rows) {
    std::vector<ConcreteType> types;
    for (size_t i = 0; i < program->program().inputs.size(); ++i) {
      ConcreteType type{.dtype = DType::kF32, .shape = {}};
      for (const Dim& dim : program->program().slot_types[i].shape) {
        type.shape.push_back(dim.is_static() ? dim.size.constant() : rows);
      }
      types.push_back(std::move(type));
    }
    return types;
  };
  if (program->static_binding() != nullptr) {
    // Made with the program, whose own bytes are an estimate.
    const int64_t before = BytesInUse();
    const auto sizes = BindSizes(program->program(), types_of(8));
    const auto bound = BoundProgram::Create(program->program(), backend.get(), *sizes);
    const double given = static_cast<double>(BytesInUse() - before);
    EXPECT_NEAR(static_cast<double>((*bound)->held_bytes()), given, 0.05 * given);
    EXPECT_GE(program->size_bytes(), (*bound)->held_bytes());
    return;
  }
  ASSERT_TRUE(program->Bind(types_of(5)).ok());
  const int64_t before = BytesInUse(), said = program->size_bytes();
  for (int64_t rows = 6; rows < 12; ++rows) ASSERT_TRUE(program->Bind(types_of(rows)).ok());
  const double given = static_cast<double>(BytesInUse() - before);
  EXPECT_NEAR(static_cast<double>(program->size_bytes() - said), given, 0.05 * given);

  // A plan for another set of donated arguments is held until four others came.
  const auto bound = *program->Bind(types_of(11));
  const int64_t without = bound->held_bytes(), in_use = BytesInUse();
  ASSERT_EQ(program->program().inputs.size(), 5u);
  const bool donated[] = {true, false, false, false, false};
  ASSERT_TRUE(bound->PlanFor(donated).ok());
  const double plan = static_cast<double>(BytesInUse() - in_use);
  EXPECT_NEAR(static_cast<double>(bound->held_bytes() - without), plan, 0.05 * plan + 512);
}

// If a destination would take more of the device, the plan without it serves both.
TEST(HeldPlansTest, OneThatServesTwoIsCountedOnce) {
  std::string text =
      "graph \"g\" {  %x = input : f32[64]  %used_up = input : f32[]  %z = constant() {value = f32[] [0]}  %x0 = "
      "exp(%x)\n";
  for (int i = 1; i < 500; ++i) absl::StrAppend(&text, "%x", i, " = exp(%x", i - 1, ")\n");
  absl::StrAppend(&text, R"(%a = concatenate(%x499, %x499) {dimension = 0}
    %b = concatenate(%a, %a) {dimension = 0}
    %c = reverse(%b) {dimensions = [0]}
    %d = pad(%c, %z) {edge_padding_low = [0], edge_padding_high = [32]}
    %y = reverse(%d) {dimensions = [0]}  output "y" = %y  %w = negate(%used_up)  output "w" = %w })");
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1, .jit = CpuUse::kOff});
  const CompileSettings settings{.device = "cpu:0", .disabled_passes = {"fuse"}};
  const CompiledProgramPtr program = *Compile(ParsedGraph(text), settings, Fingerprint(), backend.get());
  const BoundProgram& bound = *program->static_binding();
  const bool donated[] = {false, true}, destinations[] = {true, false};

  const int64_t without = bound.held_bytes();
  const AllocatedBytes allocated;
  const auto plan = bound.PlanFor(donated, destinations);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*bound.PlanFor(donated), *plan) << "or this shows nothing";
  EXPECT_NE(plan->get(), &bound.plan());
  const double given = static_cast<double>(allocated.bytes());
  EXPECT_NEAR(static_cast<double>(bound.held_bytes() - without), given, 0.05 * given + 512);
}

INSTANTIATE_TEST_SUITE_P(Settings, HeldBytesTest,
                         testing::Values(Setting{.name = "sizes_known", .disabled_passes = {}},
                                         Setting{.name = "symbolic", .symbolic = true, .disabled_passes = {}},
                                         Setting{.name = "unfused", .symbolic = true, .disabled_passes = {"fuse"}}),
                         [](const testing::TestParamInfo<Setting>& info) { return info.param.name; });

}  // namespace
}  // namespace tensord
