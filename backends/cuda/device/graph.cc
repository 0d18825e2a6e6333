#include "backends/cuda/device/graph.h"

#include "absl/cleanup/cleanup.h"

namespace tensord::cuda {

Graph::Graph(std::shared_ptr<Context> context, CuGraphExec exec, size_t num_nodes)
    : context_(std::move(context)), exec_(exec), num_nodes_(num_nodes) {
  ++context_->counts().captured_graphs;
  ++context_->counts().graphs;
}

std::shared_ptr<Graph> Graph::Capture(std::shared_ptr<Context> context, CuStream stream,
                                      absl::FunctionRef<absl::Status(CuStream)> work) {
  std::shared_ptr<Graph> graph = CaptureUncounted(context, stream, work);
  if (graph == nullptr) ++context->counts().failed_captures;
  return graph;
}

std::shared_ptr<Graph> Graph::CaptureUncounted(std::shared_ptr<Context> context, CuStream stream,
                                               absl::FunctionRef<absl::Status(CuStream)> work) {
  const Driver& driver = context->driver();
  // Other threads may go on with whatever a capture refuses.
  const auto begun =
      context->Check(driver.cuStreamBeginCapture_v2(stream, kCuCaptureThreadLocal), "cuStreamBeginCapture");
  if (!begun.ok()) return nullptr;
  CuGraph graph = nullptr;
  const absl::Cleanup destroy = [&] {
    if (graph != nullptr) driver.cuGraphDestroy(graph);
  };
  absl::Cleanup end_capture = [&] { driver.cuStreamEndCapture(stream, &graph); };  // before an exception goes on
  const absl::Status enqueued = work(stream);
  std::move(end_capture).Cancel();
  absl::Status captured = context->Check(driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  int status = kCuCaptureStatusNone;
  if (!captured.ok() && driver.cuStreamIsCapturing(stream, &status) == kCuSuccess && status != kCuCaptureStatusNone) {
    driver.cuStreamEndCapture(stream, &graph);
  }
  if (graph == nullptr) return nullptr;
  CuGraphExec exec = nullptr;
  size_t num_nodes = 0;
  if (captured.ok() && enqueued.ok()) {
    captured = context->Check(driver.cuGraphGetNodes(graph, nullptr, &num_nodes), "cuGraphGetNodes");
  }
  if (captured.ok() && enqueued.ok()) {
    captured = context->Check(driver.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
  }
  if (!captured.ok() || !enqueued.ok()) return nullptr;
  return std::shared_ptr<Graph>(new Graph(std::move(context), exec, num_nodes));
}

// A lost context has nothing left to destroy.
Graph::~Graph() {
  --context_->counts().graphs;
  if (context_->Enter().ok()) context_->driver().cuGraphExecDestroy(exec_);
}

absl::Status Graph::Launch(CuStream stream) const {
  ++context_->counts().launched_graphs;
  return context_->Check(context_->driver().cuGraphLaunch(exec_, stream), "cuGraphLaunch");
}

}  // namespace tensord::cuda
