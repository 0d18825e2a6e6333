#ifndef TENSORD_TESTS_UNIT_BACKENDS_CUDA_BESIDE_CPU_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CUDA_BESIDE_CPU_H_

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/reason_of.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {

// Graphs on the host CUDA device beside the CPU.
class BesideCpuTest : public CudaTest {
 protected:
  std::unique_ptr<Backend> Made() {
    auto backend = MakeCudaBackend({.libraries = libraries_.get(),
                                    .tensor_bytes = 256 * kMiB,
                                    .host_memory = host_memory_,
                                    .most_ahead = most_ahead_,
                                    .most_division_steps = most_division_steps_,
                                    .most_call_products = most_call_products_});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }

  static absl::StatusOr<std::vector<Literal>> Run(Backend* backend, absl::string_view text,
                                                  const std::vector<Literal>& arguments) {
    return CompileAndRun(ParsedGraph(text), {.backend = backend}, arguments);
  }
  void ExpectAsOnCpu(Backend* backend, absl::string_view text, const std::vector<Literal>& arguments,
                     const Tolerance& tolerance) {
    SCOPED_TRACE(text);
    const auto want = Run(cpu_.get(), text, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    const auto got = Run(backend, text, arguments);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want->size());
    for (size_t i = 0; i < got->size(); ++i) {
      EXPECT_EQ(Difference((*got)[i], (*want)[i], tolerance), "") << "output " << i;
    }
  }

  // Lets each call of the functions fail that a run from nothing makes, one at a time: each time the run or its
  // preparation is refused, and nothing is left; afterwards the same backend runs it.
  void ExpectFailuresLeaveNothing(const std::vector<std::string>& functions, absl::string_view text,
                                  const std::vector<Literal>& arguments) {
    for (const std::string& function : functions) {
      const long before = hostCudaCalls(function.c_str());
      {
        const std::unique_ptr<Backend> backend = Made();
        const auto run = Run(backend.get(), text, arguments);
        ASSERT_TRUE(run.ok()) << run.status();
      }
      const long calls = hostCudaCalls(function.c_str()) - before;
      EXPECT_GT(calls, 0) << function;
      for (long n = 1; n <= calls; ++n) {
        SCOPED_TRACE(function + " number " + std::to_string(n));
        const std::unique_ptr<Backend> backend = Made();
        hostCudaFail(function.c_str(), n, 0);
        const auto failed = Run(backend.get(), text, arguments);
        hostCudaFail("", 0, 0);
        EXPECT_FALSE(failed.ok());
        EXPECT_NE(failed.status().message().find(function.substr(0, function.find('_'))), std::string::npos)
            << failed.status();
        const auto again = Run(backend.get(), text, arguments);
        EXPECT_TRUE(again.ok()) << again.status();
      }
    }
    EXPECT_EQ(hostCudaLiveObjects(), objects_);
  }

  void TearDown() override {
    EXPECT_EQ(hostCudaLiveObjects(), objects_);
    CudaTest::TearDown();
  }

  // Devices that earlier tests of the process lost have left what nobody can end.
  const long objects_ = hostCudaLiveObjects();
  const std::shared_ptr<HostBufferPool> host_memory_ = HostBufferPool::Create(1 << 30, 0);
  const std::unique_ptr<Backend> cpu_ = MakeCpuBackend({.threads = 1});
  // So much that nothing depends on how fast this machine is.
  std::chrono::nanoseconds most_ahead_ = std::chrono::hours(1);
  int64_t most_division_steps_ = 0;
  int64_t most_call_products_ = 0;
  std::mt19937_64 random_{1};
};

}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CUDA_BESIDE_CPU_H_
