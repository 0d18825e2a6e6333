#include "tensord/pipeline.h"

#include <utility>

#include "clients/cpp/calls/execute_stream.h"

namespace tensord::client {

Pipeline::Pipeline(std::unique_ptr<ExecuteStream> stream) : stream_(std::move(stream)) {}

Pipeline::~Pipeline() = default;

absl::StatusOr<PendingAnswer> Pipeline::Submit(const ExecuteCall& call) { return stream_->Submit(call); }

absl::Status Pipeline::Finish() { return stream_->Finish(); }

void Pipeline::Cancel() { stream_->Cancel(); }

}  // namespace tensord::client
