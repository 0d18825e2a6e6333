#ifndef TENSORD_SERVER_HTTP_HTTP_SERVER_H_
#define TENSORD_SERVER_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/http_connection.h"
#include "server/http/http_request.h"
#include "server/http/http_response.h"
#include "server/http/tcp_listener.h"

struct pollfd;

namespace tensord::server {

// Answers requests of HTTP/1.1, one a connection. Owns its sockets and the one thread that waits for all of them: no
// client keeps another waiting, and none keeps its connection for longer than the time it has. Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::chrono::milliseconds time_per_connection{10'000};  // in all, from its beginning to its end
    size_t max_connections = 64;                            // beyond these the oldest is closed
    // The path of a page that takes a while to make. It is made for all who wait for it together, not again for a
    // while, and after all else has been answered. Empty: there is none.
    std::string page;
    std::chrono::milliseconds page_interval{100};
  };
  // Called by the thread for each request that is well-formed, HEAD as GET; does not throw.
  using Handler = std::function<HttpResponse(const HttpRequest& request)>;

  // Fails with UNAVAILABLE if the system has no descriptors.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(TcpListener listener, Options options, Handler handler);
  // Closes the connections as they are.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const TcpListener& listener() const { return listener_; }

 private:
  HttpServer(TcpListener listener, Options options, Handler handler);

  void Loop();
  // Lists the descriptors to poll; the timeout is in milliseconds, -1: without end.
  void ListWaited(std::vector<pollfd>* waited) const;
  int WaitMs() const;
  // Lets connections with new events go on, and closes finished ones.
  void Advance(const std::vector<pollfd>& waited);
  void Accept();
  bool AcceptOne();
  void MakeRoom();
  bool HaveWaiting() const;
  void GivePage();
  // Lets one connection go on, which may have new events; true if it stays open.
  bool Advance(HttpConnection* connection) const;

  const Options options_;
  const Handler handler_;
  const TcpListener listener_;
  int wake_ = -1;                          // an event that ends the thread
  std::list<HttpConnection> connections_;  // the thread's, the oldest first
  // No descriptors were left: until then nobody is let in, for poll would return at once for ever.
  HttpConnection::Clock::time_point deaf_until_{};
  HttpConnection::Clock::time_point next_page_{};  // when it may be made again
  std::thread thread_;                             // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_HTTP_HTTP_SERVER_H_
