#include "tests/e2e/server/device_client.h"

#include <cstring>

#include "gtest/gtest.h"
#include "tests/testlib/peers/tensor_chunk.h"

namespace tensord {

v1::ServerInfo InfoWithCapabilities(InProcessServer& server) {
  grpc::ClientContext context;
  v1::GetServerInfoRequest request;
  request.set_capabilities(true);
  v1::ServerInfo info;
  EXPECT_TRUE(server.stub().GetServerInfo(&context, request, &info).ok());
  return info;
}

std::vector<std::string> DevicesIn(const v1::ServerInfo& info) {
  std::vector<std::string> names;
  for (const v1::Device& device : info.devices()) names.push_back(device.name());
  return names;
}

std::string RanOn(InProcessServer& server, const v1::ExecuteRequest& request, std::vector<float>* result) {
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(server.stub(), request, &response);
  if (!status.ok()) return ReasonOf(status);
  if (result != nullptr) *result = FloatsOf(response.results(0).tensor());
  return response.stats().device();
}

v1::ExecuteRequest On(const std::string& device, v1::ExecuteRequest request) {
  request.mutable_options()->set_device(device);
  return request;
}

std::string PutOn(InProcessServer& server, const SessionClient& session, const std::string& device,
                  const std::string& handle, const std::vector<float>& values) {
  grpc::ClientContext context;
  v1::PutTensorResponse response;
  const auto writer = server.stub().PutTensor(&context, &response);
  v1::PutTensorRequest message;
  v1::PutTensorRequest::Header& header = *message.mutable_header();
  header.set_session(session.id());
  header.set_handle(handle);
  header.set_dtype(v1::DTYPE_F32);
  header.add_shape(static_cast<int64_t>(values.size()));
  header.set_device(device);
  writer->Write(message);
  const std::string bytes(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  constexpr size_t kChunkBytes = 1 << 18;
  for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    writer->Write(ChunkOf(static_cast<int64_t>(at), bytes.substr(at, kChunkBytes)));
  }
  writer->WritesDone();
  return ReasonOf(writer->Finish());
}

std::vector<float> Downloaded(InProcessServer& server, const SessionClient& session, const std::string& handle,
                              std::string* reason) {
  v1::GetTensorRequest get;
  get.set_session(session.id());
  get.set_handle(handle);
  grpc::ClientContext context;
  const auto reader = server.stub().GetTensor(&context, get);
  v1::GetTensorResponse message;
  std::string bytes;
  while (reader->Read(&message)) bytes += message.chunk().data();
  const std::string ended = ReasonOf(reader->Finish());
  if (reason == nullptr) {
    EXPECT_EQ(ended, "OK");
  } else {
    *reason = ended;
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

int64_t BytesOn(InProcessServer& server, const std::string& device) {
  return server.parts().sessions->stats().devices[device].bytes;
}

}  // namespace tensord
