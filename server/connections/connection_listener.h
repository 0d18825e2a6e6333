#ifndef TENSORD_SERVER_CONNECTIONS_CONNECTION_LISTENER_H_
#define TENSORD_SERVER_CONNECTIONS_CONNECTION_LISTENER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/connections/connection_bounds.h"
#include "server/connections/connection_places.h"
#include "server/connections/listen_address.h"
#include "server/connections/socket_file.h"
#include "server/http/tcp_listener.h"

namespace tensord::server {

// Where the connections of a server come in: opens its sockets, and hands on the connections that have a place; others
// are closed. Owns its sockets and a thread. Thread-compatible; its places and what it calls must outlive it.
//
//   absl::StatusOr<std::unique_ptr<ConnectionListener>> listener = ConnectionListener::Open(addresses, &places);
//   ...                        // what takes the connections starts
//   (*listener)->Start(...);
//   (*listener)->Stop();       // before that ends
class ConnectionListener {
 public:
  // Takes a connection of the address of that number: its socket, which does not block, and the one that it came by.
  using Give = std::function<void(size_t address, int listener, int connection)>;
  // Told of connections that were refused since the last time: at once of the first, and then not more often than every
  // kTellEvery.
  using Tell = std::function<void(int64_t refused)>;
  static constexpr std::chrono::seconds kTellEvery{10};

  // From now on clients may connect, and wait. UNAVAILABLE names the address that cannot be had. The paths of unix
  // sockets are free, and get the mode that the process's umask leaves.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Open(absl::Span<const ListenAddress> addresses,
                                                                  ConnectionPlaces* places,
                                                                  std::shared_ptr<ConnectionBounds> bounds);
  ~ConnectionListener();
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // As given, with the ports that they got.
  const std::vector<ListenAddress>& addresses() const { return addresses_; }

  // Once. Both are called by the listener's thread. Whether what comes over TCP is encrypted.
  void Start(Give give, Tell tell, bool is_encrypted);
  // Nothing is given after it. Closes the sockets, and removes those that have a path which is still theirs.
  void Stop();

 private:
  struct Socket {
    int descriptor = -1;
    size_t address = 0;
    bool is_unix = false;
  };

  ConnectionListener(ConnectionPlaces* places, std::shared_ptr<ConnectionBounds> bounds)
      : places_(places), bounds_(std::move(bounds)) {}
  absl::Status OpenAt(ListenAddress address);
  absl::Status OpenPath(const std::string& path, int* descriptor) const;
  void Loop();
  void Accept(const Socket& socket);
  // Lets the thread wait, but not for its end.
  void Pause() const;
  void Refuse();

  ConnectionPlaces* const places_;
  const std::shared_ptr<ConnectionBounds> bounds_;
  std::vector<ListenAddress> addresses_;
  std::vector<TcpListener> tcp_;
  std::vector<Socket> sockets_;
  std::vector<SocketFile> files_;
  int wake_ = -1;  // an event that ends the thread
  Give give_;
  Tell tell_;
  bool is_encrypted_ = false;
  int64_t refused_ = 0;  // and not told; the thread's
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::time_point::min();
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_CONNECTION_LISTENER_H_
