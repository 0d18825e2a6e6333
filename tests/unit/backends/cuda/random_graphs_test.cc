// Random graphs over the whole vocabulary on the host CUDA device, against the reference evaluator. TENSORD_SEED=N
// chooses the first seed, TENSORD_GRAPHS=N the number of graphs. A failure is made small and printed.
#include <memory>
#include <string>

#include "backends/cuda/cuda_backend.h"
#include "tests/testlib/property/agreement.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/setting_run.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using CudaRandomGraphs = CudaTest;

TEST_F(CudaRandomGraphs, AgreeWithTheReferenceWhateverTheOrder) {
  hostCudaSet("DELAY_US", "200");
  auto backend = MakeCudaBackend(
      {.libraries = libraries_.get(), .tensor_bytes = 256 * kMiB, .host_memory = HostBufferPool::Create(1 << 30, 0)});
  ASSERT_TRUE(backend.ok()) << backend.status();
  SettingRun setting(MatrixSetting{.name = "the host CUDA device"}, *std::move(backend));
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = 8});
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    hostCudaSet("ORDER", seed % 3 == 0 ? "reverse" : "forward");
    const property::RandomCase random_case = property::MakeRandomCase({.max_nodes = 30, .size_choices = 2}, seed);
    const auto wanted = property::WantedOf(random_case.graph, random_case.arguments);
    ASSERT_TRUE(wanted.ok()) << "seed " << seed << ": " << wanted.status();
    const bool row_major = seed % 2 == 1;
    const std::string problem =
        property::Disagreement(setting, row_major, random_case.graph, random_case.arguments, *wanted);
    EXPECT_EQ(problem, "") << "TENSORD_SEED=" << seed << " TENSORD_GRAPHS=1" << (row_major ? ", row-major\n" : "\n")
                           << property::Explained(setting, row_major, random_case);
  }
  hostCudaSet("ORDER", "");
}

}  // namespace
}  // namespace tensord::cuda
