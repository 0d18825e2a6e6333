#ifndef TENSORD_TESTS_BENCH_SUITE_DERIVATIVE_WORKLOADS_H_
#define TENSORD_TESTS_BENCH_SUITE_DERIVATIVE_WORKLOADS_H_

#include <vector>

#include "tests/bench/suite/workloads.h"

namespace tensord {

// Appends the workloads D…: the value of a function together with its gradient, and D…_value, the value alone.
void AddDerivatives(std::vector<Workload>* all);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SUITE_DERIVATIVE_WORKLOADS_H_
