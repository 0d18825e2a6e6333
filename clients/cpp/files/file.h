#ifndef TENSORD_CLIENTS_CPP_FILES_FILE_H_
#define TENSORD_CLIENTS_CPP_FILES_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord::client {

// A file that is read from its begin on; "-" is standard input. Statuses name it and the system's error. Movable.
class InputFile {
 public:
  static absl::StatusOr<InputFile> Open(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& name() const { return name_; }
  // Bytes that a regular file has; -1 of others, which may never end.
  int64_t size() const { return size_; }
  // Appends the next bytes, `most` of them unless the file ends before. RESOURCE_EXHAUSTED if memory runs out.
  absl::Status Append(size_t most, std::string* to);

 private:
  InputFile(int descriptor, std::string name, int64_t size)
      : descriptor_(descriptor), name_(std::move(name)), size_(size) {}

  int descriptor_;
  std::string name_;
  int64_t size_;
};

// Protobuf's bound of messages.
inline constexpr size_t kMostFileBytes = size_t{1} << 31;

// Reads a whole file; "-" is standard input. The status names the file and the system's error. RESOURCE_EXHAUSTED if it
// has more than kMostFileBytes.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Replaces a file by the pieces' concatenation, whole: nobody sees half of it, and a failure leaves an old one as it
// was. "-" is standard output; anything but a regular file (a pipe, a device) is written in place.
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> pieces);
absl::Status WriteFile(const std::string& path, absl::string_view contents);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_FILES_FILE_H_
