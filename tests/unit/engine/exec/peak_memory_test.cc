#include <string>

#include "engine/runtime/compiler.h"
#include "gtest/gtest.h"
#include "tests/testlib/bench_graphs.h"
#include "tests/testlib/hidden_memory_backend.h"

namespace tensord {
namespace {

TEST(PeakMemory, BenchGraphsCompileAtFullSize) {
  HiddenMemoryBackend backend;
  for (const BenchGraph& bench : AllBenchGraphs()) {
    const auto program = Compile(bench.build(1), {.device = "test:0"}, Fingerprint(), &backend);
    ASSERT_TRUE(program.ok()) << bench.name << ": " << program.status();
  }
}

}  // namespace
}  // namespace tensord
