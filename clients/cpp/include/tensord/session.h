#ifndef TENSORD_SESSION_H_
#define TENSORD_SESSION_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "tensord/execute_options.h"
#include "tensord/host_tensor.h"
#include "tensord/pipeline.h"

namespace tensord::client {

class Client;

// A session of the server, which keeps tensors under the client's handles. Made by Client::OpenSession. A value: copies
// are of one session, which ends by Close or with its lease, and not with the last copy. Its calls are those of the
// client, which must outlive it. Thread-compatible.
//
//   absl::StatusOr<Session> session = client->OpenSession();
//   if (!session.ok()) return session.status();
//   absl::Status put = session->Put("x", x);
//   auto answer = program->Execute({Argument::Donated("x")}, {ResultPlan::Keep("x")}, session->id());
class Session {
 public:
  Session(Client* client, std::string id, absl::Duration lease) : client_(client), id_(std::move(id)), lease_(lease) {}

  // Names the session in calls.
  const std::string& id() const { return id_; }
  // Returns the time without a call after which it ends.
  absl::Duration lease() const { return lease_; }

  // Send and receive a tensor, as Client::PutTensor and GetTensor do.
  absl::Status Put(const std::string& handle, const HostTensor& tensor, const ExecuteOptions& options = {}) const;
  absl::StatusOr<HostTensor> Get(const std::string& handle, const ExecuteOptions& options = {}) const;
  // Frees tensors. Returns the names among `handles` that are no handles.
  absl::StatusOr<std::vector<std::string>> Delete(absl::Span<const std::string> handles) const;
  // Opens a stream of calls, whose session this is.
  std::unique_ptr<Pipeline> OpenPipeline(PipelineOptions options = {}) const;
  // Ends the session, and frees its tensors.
  absl::Status Close() const;

 private:
  Client* client_;
  std::string id_;
  absl::Duration lease_;
};

}  // namespace tensord::client

#endif  // TENSORD_SESSION_H_
