// Random graphs over the whole vocabulary on the host CUDA device, against the reference evaluator. TENSORD_SEED=N
// chooses the first seed, TENSORD_GRAPHS=N the number of graphs. A failure is made small and printed.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "backends/cuda/cuda_backend.h"
#include "tests/testlib/property/agreement.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/setting_run.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

class CudaRandomGraphs : public CudaTest {
 protected:
  void TearDown() override {
    for (const char* setting : {"ORDER", "CHECK"}) hostCudaSet(setting, "");
    setting_ = nullptr;
    CudaTest::TearDown();
  }

  void MakeDevice() {
    auto backend = MakeCudaBackend(
        {.libraries = libraries_.get(), .tensor_bytes = 256 * kMiB, .host_memory = HostBufferPool::Create(1 << 30, 0)});
    ASSERT_TRUE(backend.ok()) << backend.status();
    setting_ = std::make_unique<SettingRun>(MatrixSetting{.name = "the host CUDA device"}, *std::move(backend));
  }

  // Runs a graph in each of the ways that `next_way` sets; false after the last one.
  template <typename NextWay>
  void ExpectAgreement(uint64_t seed, NextWay next_way) {
    const property::RandomCase random_case = property::MakeRandomCase({.max_nodes = 30, .size_choices = 2}, seed);
    const auto wanted = property::WantedOf(random_case.graph, random_case.arguments);
    ASSERT_TRUE(wanted.ok()) << "seed " << seed << ": " << wanted.status();
    const bool row_major = seed % 2 == 1;
    for (int way = 0; next_way(way); ++way) {
      const std::string problem =
          property::Disagreement(*setting_, row_major, random_case.graph, random_case.arguments, *wanted);
      ASSERT_EQ(problem, "") << "TENSORD_SEED=" << seed << " TENSORD_GRAPHS=1, way " << way
                             << (row_major ? ", row-major\n" : "\n")
                             << property::Explained(*setting_, row_major, random_case);
    }
  }

  std::unique_ptr<SettingRun> setting_;
};

TEST_F(CudaRandomGraphs, AgreeWithTheReferenceWhateverTheOrder) {
  MakeDevice();
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = 8});
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    ExpectAgreement(seed, [&](int way) {
      constexpr const char* kDelays[] = {"0", "300", "3000"};
      hostCudaSet("DELAY_US", kDelays[way % 3]);
      hostCudaSet("SEED", absl::StrCat(way / 3 + 1).c_str());
      hostCudaSet("ORDER", (seed + static_cast<uint64_t>(way)) % 2 == 0 ? "reverse" : "forward");
      return way < 9;
    });
  }
}

TEST_F(CudaRandomGraphs, StayInBoundsAndDoNotRace) {
  hostCudaSet("CHECK", "1");
  MakeDevice();
  const long before = hostCudaProblems();
  const property::SeedRange seeds = property::ChosenSeeds({.first = 100, .count = 4});
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    ExpectAgreement(seed, [](int way) { return way < 1; });
  }
  EXPECT_EQ(hostCudaProblems(), before);
}

}  // namespace
}  // namespace tensord::cuda
