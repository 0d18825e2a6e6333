#ifndef TENSORD_BACKENDS_CUDA_DEVICE_GRAPH_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_GRAPH_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/device/context.h"

namespace tensord::cuda {

// Work that was enqueued on a stream once, to be enqueued again by one call: on the same memory, with the same
// arguments. One thread at a time launches it. What it calls must outlive it, and it its launches.
class Graph {
 public:
  // Captures what `work` enqueues on a stream; none of it is done. Returns null if it cannot be captured, whatever the
  // reason: the stream is as it was, and work that fails will fail again without a capture. The calling thread has
  // entered the context.
  static std::shared_ptr<Graph> Capture(std::shared_ptr<Context> context, CuStream stream,
                                        absl::FunctionRef<absl::Status(CuStream)> work);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  absl::Status Launch(CuStream stream) const;
  // Returns the number of its kernels, copies and fills.
  size_t num_nodes() const { return num_nodes_; }

 private:
  Graph(std::shared_ptr<Context> context, CuGraphExec exec, size_t num_nodes);
  static std::shared_ptr<Graph> CaptureUncounted(std::shared_ptr<Context> context, CuStream stream,
                                                 absl::FunctionRef<absl::Status(CuStream)> work);

  const std::shared_ptr<Context> context_;
  const CuGraphExec exec_;
  const size_t num_nodes_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_GRAPH_H_
