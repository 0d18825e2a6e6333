// The allocations of programs, counted by replacing the process's operator new: a test binary of its own.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "engine/runtime/compile/compiler.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/mixed_graph.h"

namespace {

std::atomic<int64_t> allocations{0};

void* Allocate(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

// None is inlined: the compiler would see memory of one function freed by another.
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* const address = Allocate(size)) return address;
  std::abort();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept { return Allocate(size); }
[[gnu::noinline]] void operator delete(void* address) noexcept { std::free(address); }
[[gnu::noinline]] void operator delete(void* address, size_t) noexcept { std::free(address); }
[[gnu::noinline]] void operator delete(void* address, const std::nothrow_t&) noexcept { std::free(address); }

namespace tensord {
namespace {

constexpr int kFew = 2'000, kMany = 20'000;

struct Setting {
  std::string name;
  std::vector<std::string> disabled_passes;
  bool row_major = false;
  bool symbolic = false;
};

class AllocationCountTest : public testing::TestWithParam<Setting> {
 protected:
  CompiledProgramPtr CompileMixed(int nodes) {
    Graph graph = MixedGraph({.nodes = nodes, .symbolic = GetParam().symbolic});
    const CompileSettings settings{
        .device = "cpu:0", .row_major = GetParam().row_major, .disabled_passes = GetParam().disabled_passes};
    const int64_t before = allocations;
    const ProgramKey key = MakeProgramKey(graph, settings);
    absl::StatusOr<CompiledProgramPtr> program = Compile(std::move(graph), settings, key.fingerprint, backend_.get());
    compile_allocations_ = allocations - before;
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? *program : nullptr;
  }

  // Counts one run on one thread, when the pool has the memory already.
  int64_t RunAllocations(const CompiledProgram& program) {
    std::vector<ConcreteType> types;
    std::vector<BufferPtr> arguments;
    for (size_t i = 0; i < program.program().inputs.size(); ++i) {
      ConcreteType type{.dtype = DType::kF32, .shape = {}};
      for (const Dim& dim : program.program().slot_types[i].shape) {
        type.shape.push_back(dim.is_static() ? dim.size.constant() : 8);
      }
      auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(type.num_elements()), 0.25f);
      arguments.push_back(*backend_->Import(values->data(), type.num_bytes(), values));
      types.push_back(std::move(type));
    }
    const auto bound = program.Bind(types);
    EXPECT_TRUE(bound.ok()) << bound.status();
    if (!bound.ok()) return -1;
    EXPECT_TRUE((*bound)->Run(arguments).ok());
    const int64_t before = allocations;
    const auto results = (*bound)->Run(arguments);
    const int64_t made = allocations - before;
    EXPECT_TRUE(results.ok()) << results.status();
    return made;
  }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
  int64_t compile_allocations_ = 0;
};

TEST_P(AllocationCountTest, RunsAllocateTheSameHoweverManyInstructionsThereAre) {
  const CompiledProgramPtr few = CompileMixed(kFew), many = CompileMixed(kMany);
  ASSERT_TRUE(few != nullptr && many != nullptr);
  ASSERT_GT(many->program().instructions.size(), 5 * few->program().instructions.size());
  EXPECT_EQ(RunAllocations(*many), RunAllocations(*few));
}

TEST_P(AllocationCountTest, CompilesAllocateInProportionToTheGraph) {
  ASSERT_NE(CompileMixed(kFew), nullptr);
  const double few = static_cast<double>(compile_allocations_) / kFew;
  ASSERT_NE(CompileMixed(kMany), nullptr);
  const double many = static_cast<double>(compile_allocations_) / kMany;
  EXPECT_LE(many, 1.2 * few);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, AllocationCountTest,
    testing::Values(Setting{.name = "defaults", .disabled_passes = {}},
                    Setting{.name = "unfused", .disabled_passes = {"fuse"}},
                    Setting{.name = "row_major", .disabled_passes = {}, .row_major = true},
                    Setting{.name = "symbolic", .disabled_passes = {}, .row_major = true, .symbolic = true}),
    [](const testing::TestParamInfo<Setting>& info) { return info.param.name; });

}  // namespace
}  // namespace tensord
