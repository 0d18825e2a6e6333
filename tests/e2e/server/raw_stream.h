#ifndef TENSORD_TESTS_E2E_SERVER_RAW_STREAM_H_
#define TENSORD_TESTS_E2E_SERVER_RAW_STREAM_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace tensord {

// A call of a streaming method with bytes of one's own. Every step waits until it is done.
class RawStream {
 public:
  // "grpc.health.v1.Health/Watch".
  RawStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& method);
  ~RawStream();

  bool Write(const std::string& bytes);
  void WritesDone();
  // The next message; false at the end.
  bool Read(std::string* bytes);
  grpc::Status Finish();

 private:
  bool Wait();

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_RAW_STREAM_H_
