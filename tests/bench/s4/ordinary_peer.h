#ifndef TENSORD_TESTS_BENCH_S4_ORDINARY_PEER_H_
#define TENSORD_TESTS_BENCH_S4_ORDINARY_PEER_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace tensord {

// A client and a server as anyone writes them first, in a process of their own: messages of protobuf on both ends, the
// tensor kept as a string, gRPC and the allocator as they come. It works when it is told to, and is gone with the
// object.
class OrdinaryPeer {
 public:
  // Before this process uses gRPC or sets up its allocator: both would be the peer's too.
  // Port 0 is any that is free.
  OrdinaryPeer(const std::string& address, size_t tensor_bytes);
  ~OrdinaryPeer();
  OrdinaryPeer(const OrdinaryPeer&) = delete;
  OrdinaryPeer& operator=(const OrdinaryPeer&) = delete;

  // One call each; false if it failed.
  bool Upload() { return Do('u'); }
  bool Download() { return Do('d'); }

 private:
  bool Do(char what);

  pid_t process_ = -1;
  int orders_ = -1;
  int answers_ = -1;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_S4_ORDINARY_PEER_H_
