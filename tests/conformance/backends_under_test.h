#ifndef TENSORD_TESTS_CONFORMANCE_BACKENDS_UNDER_TEST_H_
#define TENSORD_TESTS_CONFORMANCE_BACKENDS_UNDER_TEST_H_

#include <memory>
#include <ostream>
#include <string>

#include "backends/cpu/cpu_backend.h"
#include "tests/conformance/cuda_under_test.h"

namespace tensord {

// A backend that a suite runs on.
struct BackendUnderTest {
  std::string name;
  std::unique_ptr<Backend> (*make)();
  bool compiles = false;  // a kernel of each case, which takes longer than a small case
  // Its share of a suite's cases: the part-th and each parts-th after it. Tests that are parts of one may run at once.
  int part = 0;
  int parts = 1;
};

inline void PrintTo(const BackendUnderTest& backend, std::ostream* out) { *out << backend.name; }

// The backends of suites that look at devices of one kind alike.
inline const BackendUnderTest kCpuAndCuda[] = {
    {.name = "cpu", .make = [] { return MakeCpuBackend({.threads = 2}); }},
    {.name = "cuda", .make = &MakeCudaUnderTest, .compiles = true},
};

// INSTANTIATE_TEST_SUITE_P(Backends, Suite, testing::ValuesIn(kCpuAndCuda), NameOfBackend())
struct NameOfBackend {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return info.param.name;
  }
};

}  // namespace tensord

#endif  // TENSORD_TESTS_CONFORMANCE_BACKENDS_UNDER_TEST_H_
