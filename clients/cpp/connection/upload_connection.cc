#include "clients/cpp/connection/upload_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "clients/cpp/connection/channel_arguments.h"
#include "grpcpp/create_channel_posix.h"

namespace tensord::client {
namespace {

// The bytes under way while the server reads. The kernel may give less.
constexpr int kSocketBytes = 1 << 20;
// From here on a connection, if it has to be made, costs less than it saves.
constexpr size_t kLargeBytes = size_t{8} << 20;

// Empty: the target is no path of a unix socket, or one that gRPC would decode first.
std::string PathOf(absl::string_view target) {
  if (!absl::ConsumePrefix(&target, "unix:") || absl::StrContains(target, '%')) return "";
  absl::ConsumePrefix(&target, "//");
  return target.size() < sizeof(sockaddr_un().sun_path) ? std::string(target) : "";
}

}  // namespace

UploadConnection::UploadConnection(absl::string_view target) : path_(PathOf(target)) {}

UploadConnection::~UploadConnection() { Close(); }

void UploadConnection::Close() {
  stub_ = nullptr;
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

bool UploadConnection::IsThere() const {
  if (stub_ == nullptr) return false;
  pollfd state = {.fd = socket_, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, 0) == 0;
}

void UploadConnection::Connect() {
  Close();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int connected = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connected < 0) return;
  setsockopt(connected, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof(kSocketBytes));
  if (connect(connected, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    socket_ = fcntl(connected, F_DUPFD_CLOEXEC, 0);
  }
  if (socket_ < 0) {
    close(connected);
    return;
  }
  grpc::ChannelArguments arguments = TunedChannelArguments();
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");  // as of all unix sockets
  stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomInsecureChannelFromFd(path_, connected, arguments));
}

void UploadConnection::Call(size_t bytes, grpc::GenericStub& otherwise,
                            absl::FunctionRef<void(grpc::GenericStub&)> call) {
  if (path_.empty() || bytes < kLargeBytes) return call(otherwise);
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return call(otherwise);
  if (!IsThere()) Connect();
  call(stub_ == nullptr ? otherwise : *stub_);
}

}  // namespace tensord::client
