#ifndef TENSORD_ENGINE_EXEC_BACKEND_PARALLEL_FOR_H_
#define TENSORD_ENGINE_EXEC_BACKEND_PARALLEL_FOR_H_

#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"

namespace tensord {

// Calls fn(0) … fn(tasks - 1), each once, in any order and on the caller's and other threads, and returns when all have
// returned. For work of the host beside that of backends, so that they share their threads.
using ParallelFor = std::function<void(int64_t tasks, absl::FunctionRef<void(int64_t task)> fn)>;

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_PARALLEL_FOR_H_
