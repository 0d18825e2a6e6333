#ifndef TENSORD_ENGINE_BASE_DESCRIPTOR_H_
#define TENSORD_ENGINE_BASE_DESCRIPTOR_H_

#include <unistd.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace tensord {

// A descriptor of the system, or none, that is closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  bool ok() const { return number_ >= 0; }

 private:
  const int number_;
};

// Writes all of the bytes. False if the system refuses; errno says why. A signal handler may.
bool WriteAll(int file, absl::string_view bytes);

// Reads as many bytes as the text is long; where there are fewer it becomes shorter. False if the system refuses.
bool ReadAll(int file, std::string* bytes);

// Calls each(name) for every entry of a folder, "." and ".." too. Calls nothing if the folder cannot be read.
void ForEachName(int folder, absl::FunctionRef<void(std::string name)> each);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_DESCRIPTOR_H_
