#ifndef TENSORD_SERVER_LIFECYCLE_FILE_WATCH_H_
#define TENSORD_SERVER_LIFECYCLE_FILE_WATCH_H_

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// Looks at files again and again, on a thread of its own, and tells when one of them became another: its content was
// written, it was replaced, appeared or went. Paths are followed through links, so that a folder that is switched by a
// link counts. Confined to its owner but for its thread; ends with the destructor.
class FileWatch {
 public:
  // Asks for the paths at every look. Calls `changed` from the thread, once for all that changed since the last look.
  FileWatch(absl::Duration interval, std::function<std::vector<std::string>()> paths, std::function<void()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  void Loop();
  // False when the watch ends.
  bool WaitForNextLook();

  const absl::Duration interval_;
  const std::function<std::vector<std::string>()> paths_;
  const std::function<void()> changed_;
  Mutex mutex_;
  CondVar ended_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_FILE_WATCH_H_
