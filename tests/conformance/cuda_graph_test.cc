// Random graphs on a CUDA device, within the bounds of tests/testlib/property/reference_bounds.h: a few on the device
// that the host plays, since each of their kernels is compiled. TENSORD_CUDA_GRAPHS=N chooses the number,
// TENSORD_SEED=N the first seed, TENSORD_CUDA_LIBRARIES a GPU (cuda_under_test.h).
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/conformance/cuda_under_test.h"
#include "tests/testlib/property/agreement.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/setting_run.h"

namespace tensord::property {
namespace {

int64_t ChosenGraphs() {
  constexpr int64_t kUsual = 8;
  const char* const chosen = std::getenv("TENSORD_CUDA_GRAPHS");
  int64_t count = kUsual;
  return chosen != nullptr && absl::SimpleAtoi(chosen, &count) ? count : kUsual;
}

TEST(RandomGraphs, AgreeOnCuda) {
  SettingRun cuda(MatrixSetting{.name = "cuda"}, MakeCudaUnderTest());
  const int64_t count = ChosenGraphs();
  const uint64_t first = ChosenSeeds({.first = 0, .count = count}).first;
  std::cout << count << " graphs from TENSORD_SEED=" << first << std::endl;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    const RandomCase random_case = MakeRandomCase({.max_nodes = 40, .size_choices = 2}, seed);
    const absl::StatusOr<Wanted> wanted = WantedOf(random_case.graph, random_case.arguments);
    ASSERT_TRUE(wanted.ok()) << "seed " << seed << ": " << wanted.status();
    const bool row_major = seed % 2 == 1;
    const std::string problem = Disagreement(cuda, row_major, random_case.graph, random_case.arguments, *wanted);
    ASSERT_EQ(problem, "") << "TENSORD_SEED=" << seed << " TENSORD_CUDA_GRAPHS=1"
                           << (row_major ? ", row-major\n" : "\n") << Explained(cuda, row_major, random_case);
  }
}

}  // namespace
}  // namespace tensord::property
