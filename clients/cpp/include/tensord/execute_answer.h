#ifndef TENSORD_EXECUTE_ANSWER_H_
#define TENSORD_EXECUTE_ANSWER_H_

#include <optional>
#include <vector>

#include "tensord/execution_stats.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

// Result of an ExecuteCall. Its type is set even if the tensor is kept or discarded.
struct ExecuteOutput {
  DType dtype = DType::kF32;
  Shape shape = {};
  MemoryOrder order = MemoryOrder::kRowMajor;
  std::optional<HostTensor> tensor = {};  // set if the plan returns it
};

struct ExecuteAnswer {
  std::vector<ExecuteOutput> outputs = {};  // in the order of the program's outputs
  ExecutionStats stats = {};
};

}  // namespace tensord::client

#endif  // TENSORD_EXECUTE_ANSWER_H_
