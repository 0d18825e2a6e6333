#include "tensord/session.h"

#include "tensord/client.h"

namespace tensord::client {

absl::Status Session::Put(const std::string& handle, const HostTensor& tensor, const ExecuteOptions& options) const {
  return client_->PutTensor(id_, handle, tensor, options);
}

absl::StatusOr<HostTensor> Session::Get(const std::string& handle, const ExecuteOptions& options) const {
  return client_->GetTensor(id_, handle, options);
}

absl::StatusOr<std::vector<std::string>> Session::Delete(absl::Span<const std::string> handles) const {
  return client_->DeleteTensors(id_, handles);
}

std::unique_ptr<Pipeline> Session::OpenPipeline(PipelineOptions options) const {
  options.session = id_;
  return client_->OpenPipeline(std::move(options));
}

absl::Status Session::Close() const { return client_->CloseSession(id_); }

}  // namespace tensord::client
