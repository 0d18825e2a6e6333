#include "server/http/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tensord::server {
namespace {

using Clock = HttpConnection::Clock;

// The pause before a socket is tried again that the system had no room for.
constexpr std::chrono::milliseconds kPause{100};

std::string Encoded(const HttpResponse& response, bool with_body = true) {
  return EncodeHttpResponse(response, with_body, absl::Now());
}

using Next = HttpConnection::Next;

Next AnswerTo(absl::string_view received, bool is_whole, const std::string& page, const HttpServer::Handler& handler) {
  HttpRequest request;
  switch (ReadHttpRequest(received, &request)) {
    case HttpHead::kIncomplete:
      return {.answer = is_whole ? Encoded(HttpRefusal(400, "the request ends before its blank line")) : ""};
    case HttpHead::kMalformed:
      return {.answer = Encoded(HttpRefusal(400, "this is no request of HTTP/1.1"))};
    case HttpHead::kTooLarge:
      return {.answer = Encoded(HttpRefusal(
                  431, absl::StrCat("the request's line and headers may have ", kMostHttpHeadBytes, " bytes in all")))};
    case HttpHead::kUnknownVersion:
      return {.answer = Encoded(HttpRefusal(505, "this server speaks HTTP/1.1"))};
    case HttpHead::kComplete:
      break;
  }
  const bool with_body = request.method != "HEAD";
  if (!with_body) request.method = "GET";
  if (!page.empty() && request.path == page && request.method == "GET")
    return {.is_kept = true, .with_body = with_body};
  return {.answer = Encoded(handler(request), with_body)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(TcpListener listener, Options options, Handler handler) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(listener), options, std::move(handler)));
  server->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (server->wake_ < 0) return absl::UnavailableError(std::strerror(errno));
  server->thread_ = std::thread([self = server.get()] { self->Loop(); });
  return server;
}

HttpServer::HttpServer(TcpListener listener, Options options, Handler handler)
    : options_(options), handler_(std::move(handler)), listener_(std::move(listener)) {}

HttpServer::~HttpServer() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (write(wake_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  if (wake_ >= 0) close(wake_);
}

void HttpServer::Loop() {
  std::vector<pollfd> waited;
  while (true) {
    ListWaited(&waited);
    if (poll(waited.data(), waited.size(), WaitMs()) < 0) {
      if (errno != EINTR) std::this_thread::sleep_for(kPause);  // the kernel is out of memory
      continue;
    }
    if (waited[0].revents != 0) return;  // whoever wakes the thread ends it
    Advance(waited);
    if (waited[1].revents != 0) Accept();
    GivePage();
  }
}

void HttpServer::ListWaited(std::vector<pollfd>* waited) const {
  // poll passes over negative descriptors.
  const bool is_deaf = Clock::now() < deaf_until_;
  *waited = {{.fd = wake_, .events = POLLIN, .revents = 0},
             {.fd = is_deaf ? -1 : listener_.descriptor(), .events = POLLIN, .revents = 0}};
  for (const HttpConnection& connection : connections_) {
    waited->push_back({.fd = connection.descriptor(), .events = connection.events(), .revents = 0});
  }
}

int HttpServer::WaitMs() const {
  Clock::time_point next = Clock::time_point::max();
  const Clock::time_point now = Clock::now();
  if (now < deaf_until_) next = deaf_until_;
  if (HaveWaiting()) next = std::min(next, next_page_);
  for (const HttpConnection& connection : connections_) next = std::min(next, connection.deadline());
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(next - now, Clock::duration(0)));
  return static_cast<int>(std::min<int64_t>(left.count(), std::numeric_limits<int>::max()));
}

void HttpServer::Advance(const std::vector<pollfd>& waited) {
  size_t next = 2;
  for (auto connection = connections_.begin(); connection != connections_.end(); ++next) {
    const bool goes_on = (waited[next].revents == 0 || Advance(&*connection)) && Clock::now() < connection->deadline();
    connection = goes_on ? std::next(connection) : connections_.erase(connection);
  }
}

bool HttpServer::Advance(HttpConnection* connection) const {
  return connection->Advance([this](absl::string_view received, bool is_whole) {
    return AnswerTo(received, is_whole, options_.page, handler_);
  });
}

bool HttpServer::HaveWaiting() const {
  return std::any_of(connections_.begin(), connections_.end(), [](const HttpConnection& one) { return one.waits(); });
}

void HttpServer::GivePage() {
  if (!HaveWaiting() || Clock::now() < next_page_) return;
  const HttpResponse page = handler_({.method = "GET", .path = options_.page});
  next_page_ = Clock::now() + options_.page_interval;
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    const bool goes_on = !connection->waits() || connection->Give(Encoded(page, connection->with_body()));
    connection = goes_on ? std::next(connection) : connections_.erase(connection);
  }
}

// Accepts all waiting clients, so that nobody waits behind others for more than one round.
void HttpServer::Accept() {
  for (size_t i = 0; i < options_.max_connections && AcceptOne(); ++i) {
  }
}

bool HttpServer::AcceptOne() {
  const int descriptor = accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      deaf_until_ = Clock::now() + kPause;
    }
    return false;
  }
  if (connections_.size() >= options_.max_connections) MakeRoom();
  connections_.emplace_back(descriptor, Clock::now() + options_.time_per_connection);
  if (!Advance(&connections_.back())) connections_.pop_back();  // what has come already is answered at once
  return true;
}

// Clients that hung up since poll told last hold no place; for want of those the oldest goes.
void HttpServer::MakeRoom() {
  connections_.remove_if([this](HttpConnection& one) { return one.is_ending() && !Advance(&one); });
  if (connections_.size() >= options_.max_connections) connections_.pop_front();
}

}  // namespace tensord::server
