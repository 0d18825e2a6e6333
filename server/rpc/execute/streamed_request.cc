#include "server/rpc/execute/streamed_request.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/error_codec.h"
#include "server/tracing/tracer.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

StreamedRequest::StreamedRequest(std::shared_ptr<ExecuteStream> stream, uint64_t id, const ExecuteStream::Place& place,
                                 bool owns_id, const StageTimes& stages)
    : RpcRequest(stream->call_), stream_(std::move(stream)), id_(id), place_(place), owns_id_(owns_id) {
  record_.method = RpcMethod::kExecuteStream;
  record_.is_streamed = true;
  record_.received_bytes = place.bytes;
  record_.stages = stages;
  record_.tenant = caller().tenant;
  record_.request_id = absl::StrCat(stream_->call_.record().request_id, "/", id);
  record_.trace = Tracer::Under(stream_->call_.record().trace);
  open_.Enter(parts().observers.open_calls, {.method = record_.method,
                                             .is_streamed = true,
                                             .tenant = record_.tenant,
                                             .request_id = record_.request_id,
                                             .peer = [this] { return stream_->call_.peer(); },
                                             .cancel = [this] { stream_->call_.EndByOperator(); }});
}

std::shared_ptr<const AddedBytes> StreamedRequest::HoldBytes() {
  if (place_.held_bytes == nullptr && place_.entered)
    place_.held_bytes = stream_->call_.HoldBytes(place_.bytes + place_.objects);
  return place_.held_bytes;
}

void StreamedRequest::Fail(const absl::Status& status) {
  record_.Refused(status);
  v1::ExecuteResponse response;
  response.set_request_id(id_);
  *response.mutable_error() = codec::EncodeError(status);
  const grpc::Slice slice(response.SerializeAsString());
  Reply(grpc::ByteBuffer(&slice, 1));
}

void StreamedRequest::Reply(grpc::ByteBuffer&& bytes) {
  open_.Leave();
  record_.sent_bytes = static_cast<int64_t>(bytes.Length());
  const std::shared_ptr<ExecuteStream> stream = stream_;
  ExecuteStream::Response response = {.bytes = std::move(bytes),
                                      .place = std::move(place_),
                                      .unread_bytes = std::move(unread_bytes_),
                                      .record = std::move(record_)};
  const uint64_t id = id_;
  const bool owns_id = owns_id_;
  delete this;
  stream->Answer(std::move(response), id, owns_id);
}

}  // namespace tensord::server
