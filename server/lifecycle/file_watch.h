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
// written, it was replaced, appeared or went. Paths are followed through links, so that a folder switched by a link
// counts. Confined to its owner but for its thread; ends with the destructor.
class FileWatch {
 public:
  // Returns a text that differs between states of the files. To be taken before they are first read: every write from
  // then on counts as a change.
  static std::string StateOf(const std::vector<std::string>& paths);

  // Returns the pause after `changed` took that long: however often files change, its thread is idle most of the time.
  static absl::Duration PauseAfter(absl::Duration interval, absl::Duration took);

  // Asks for the paths at every look. Calls `changed` from the thread, once for all that changed since the last look,
  // at first since `state`; where it returns false it is called at every further look, until it returns true.
  FileWatch(absl::Duration interval, std::string state, std::function<std::vector<std::string>()> paths,
            std::function<bool()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  void Loop();
  // False when the watch ends.
  bool Wait(absl::Duration pause);

  const absl::Duration interval_;
  const std::function<std::vector<std::string>()> paths_;
  const std::function<bool()> changed_;
  std::string state_;  // the thread's
  Mutex mutex_;
  CondVar ended_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_FILE_WATCH_H_
