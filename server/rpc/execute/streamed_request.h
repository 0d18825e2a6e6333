#ifndef TENSORD_SERVER_RPC_EXECUTE_STREAMED_REQUEST_H_
#define TENSORD_SERVER_RPC_EXECUTE_STREAMED_REQUEST_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "server/rpc/calls/rpc_request.h"
#include "server/rpc/execute/execute_stream.h"

namespace tensord::server {

// One request of an ExecuteStream, from its arrival until its response is handed to the stream, which reports when that
// is sent. Owns itself, as RpcRequest says.
class StreamedRequest final : public RpcRequest {
 public:
  // `owns_id`: no other request in flight has it. `stages`: the stages that it went through until now.
  StreamedRequest(std::shared_ptr<ExecuteStream> stream, uint64_t id, const ExecuteStream::Place& place, bool owns_id,
                  const StageTimes& stages);

  void Fail(const absl::Status& status) override;
  void Reply(grpc::ByteBuffer&& bytes) override;
  void Keep(std::shared_ptr<const void>) override {}  // answers of a stream wait for each other, not for this
  void HoldUntilSent(AddedBytes bytes) override {
    unread_bytes_ = std::make_shared<const AddedBytes>(std::move(bytes));
  }
  RequestRecord& record() override { return record_; }
  OpenCall& open() override { return open_; }
  std::shared_ptr<const AddedBytes> HoldBytes() override;

 private:
  const std::shared_ptr<ExecuteStream> stream_;
  const uint64_t id_;
  ExecuteStream::Place place_;
  const bool owns_id_;
  std::shared_ptr<const AddedBytes> unread_bytes_;
  RequestRecord record_;
  OpenCall open_;  // last: it is seen while everything above is there
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_STREAMED_REQUEST_H_
