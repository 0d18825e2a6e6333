#ifndef TENSORD_SERVER_HTTP_HTTP_CONNECTION_H_
#define TENSORD_SERVER_HTTP_HTTP_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

// One connection of an HTTP server: reads a request, writes the answer, and waits for the client to hang up. Owns its
// socket. Used by one thread, which it never blocks.
class HttpConnection {
 public:
  using Clock = std::chrono::steady_clock;
  // The result of reading all bytes that have come so far.
  struct Next {
    std::string answer;     // empty while more must come, or
    bool is_kept = false;   // while the request, which is complete, waits for Give,
    bool with_body = true;  // for such an answer
  };
  // `is_whole`: no more will come.
  using Answer = std::function<Next(absl::string_view received, bool is_whole)>;

  // Takes the socket, which must not block.
  HttpConnection(int descriptor, Clock::time_point deadline) : descriptor_(descriptor), deadline_(deadline) {}
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int descriptor() const { return descriptor_; }
  Clock::time_point deadline() const { return deadline_; }
  // Returns the events for poll.
  short events() const;
  // Moves as many bytes as the socket allows at once; true if the connection goes on.
  bool Advance(const Answer& answer);

  // Tells whether the answer is sent, and the client is to hang up.
  bool is_ending() const { return state_ == State::kEnding; }
  // Tells whether its request is kept for a later answer, with or without a body.
  bool waits() const { return state_ == State::kWaiting; }
  bool with_body() const { return with_body_; }
  // Gives the answer to the kept request; as Advance.
  bool Give(std::string answer);

 private:
  enum class State { kReading, kWaiting, kWriting, kEnding };

  bool Read(const Answer& answer);
  bool Write();
  bool Discard();

  const int descriptor_;
  Clock::time_point deadline_;
  State state_ = State::kReading;
  bool with_body_ = true;
  std::string received_;
  std::string answer_;
  size_t written_ = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_HTTP_HTTP_CONNECTION_H_
