#ifndef TENSORD_CLIENTS_LOAD_DIAL_H_
#define TENSORD_CLIENTS_LOAD_DIAL_H_

#include <atomic>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord::load {

// A connected stream socket, which the destructor closes. Move-only; thread-compatible.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }
  // Both directions end at once, for every copy of the descriptor.
  void Cut();
  // The same socket under another descriptor, which the caller closes; -1 if there is none left.
  int Duplicate() const;

 private:
  int descriptor_;
};

// Connects to "unix:/path" or "host:port", as gRPC spells them ("unix:///path" and "dns:///host:port" too). Reading and
// writing fail after `timeout` as well. INVALID_ARGUMENT if it is no address, UNAVAILABLE if nobody listens, CANCELLED
// soon after another thread has set `is_given_up`, but for the time in which a name is looked up.
absl::StatusOr<Socket> Dial(absl::string_view target, absl::Duration timeout,
                            const std::atomic<bool>* is_given_up = nullptr);

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_DIAL_H_
