#ifndef TENSORD_TESTS_BENCH_IN_PROCESS_HOST_WORKLOADS_H_
#define TENSORD_TESTS_BENCH_IN_PROCESS_HOST_WORKLOADS_H_

#include <functional>
#include <string>
#include <vector>

namespace tensord {

// The cost of the CPU backend's threads and memory before any kernel has run.
struct HostWorkload {
  std::string name;
  std::string what;
  int threads = 1;
  std::function<double()> measure;  // median, in microseconds
};

std::vector<HostWorkload> HostWorkloads();

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_IN_PROCESS_HOST_WORKLOADS_H_
