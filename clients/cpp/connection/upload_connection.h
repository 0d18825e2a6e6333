#ifndef TENSORD_CLIENTS_CPP_CONNECTION_UPLOAD_CONNECTION_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_UPLOAD_CONNECTION_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "grpcpp/generic/generic_stub.h"

namespace tensord::client {

// A connection to a unix socket for large uploads, one at a time. Such a socket holds little unless it is asked for
// more, and with each filling the transport and the uploading thread wake one another. gRPC has no option for that, so
// the socket is made here, and given to a channel. Such a channel never connects by itself: if the server has closed
// it, as it does when it stops, the next upload makes another.
//
// Thread-safe. It cannot fail: calls that it does not serve go by the given stub.
class UploadConnection {
 public:
  // Connects to the target of a channel of plain text; serves no other targets than unix sockets.
  explicit UploadConnection(absl::string_view target);
  ~UploadConnection();
  UploadConnection(const UploadConnection&) = delete;
  UploadConnection& operator=(const UploadConnection&) = delete;

  // Makes a call that sends so many bytes, once: by the connection if they are many, nobody else uses it and the server
  // takes it, else by `otherwise`.
  void Call(size_t bytes, grpc::GenericStub& otherwise, absl::FunctionRef<void(grpc::GenericStub&)> call);

 private:
  bool IsThere() const;
  void Connect();
  void Close();

  const std::string path_;  // empty: there is none
  std::mutex mutex_;        // held during a call
  int socket_ = -1;         // the channel's, to see whether it is closed
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_UPLOAD_CONNECTION_H_
