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

// The listener of a server: opens its sockets, and hands on the connections that have a place; others are closed. Owns
// its sockets and a thread. Thread-compatible; its places and the functions it calls must outlive it.
//
//   absl::StatusOr<std::unique_ptr<ConnectionListener>> listener = ConnectionListener::Open(addresses, &places);
//   ...                        // the taker of the connections starts
//   (*listener)->Start(...);
//   (*listener)->Stop();       // before the taker ends
class ConnectionListener {
 public:
  // Takes a connection of the address of that number: its socket, which does not block, and the listener's socket.
  using Give = std::function<void(size_t address, int listener, int connection)>;
  // Told of connections that were refused since the last time: at once of the first, and then not more often than every
  // kTellEvery.
  using Tell = std::function<void(int64_t refused)>;
  static constexpr std::chrono::seconds kTellEvery{10};

  // Opens the addresses: from now on clients may connect, and wait. UNAVAILABLE names the address that cannot be had.
  // The paths of unix sockets are free, and get the mode that the process's umask leaves.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Open(absl::Span<const ListenAddress> addresses,
                                                                  ConnectionPlaces* places,
                                                                  std::shared_ptr<ConnectionBounds> bounds);
  ~ConnectionListener();
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // Returns the given addresses, with the ports that they got.
  const std::vector<ListenAddress>& addresses() const { return addresses_; }

  // Starts the listener, once. Its thread calls both functions. `is_encrypted`: connections over TCP are encrypted.
  void Start(Give give, Tell tell, bool is_encrypted);
  // Stops the listener: no connection is given afterwards. Closes the sockets, and removes their paths if these still
  // belong to them.
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
