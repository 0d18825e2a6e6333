#ifndef TENSORD_TESTS_HOSTCUDA_IMAGE_FOLDER_H_
#define TENSORD_TESTS_HOSTCUDA_IMAGE_FOLDER_H_

#include <string>

namespace tensord::cuda::host {

// Images of kernels on disk, by all that decides what the compiler gives: what one test of a build has compiled, the
// others read. An entry holds its key, so that no other is taken for it. Whatever is wrong with the folder, a kernel is
// compiled. Entries that nobody has read for two weeks go. Thread-safe; processes share a folder.
class ImageFolder {
 public:
  // Makes the folder if it is missing. An empty path keeps nothing.
  explicit ImageFolder(std::string path);

  const std::string& path() const { return path_; }
  // Returns false where there is no whole entry of this key.
  bool Read(const std::string& key, std::string* image) const;
  void Write(const std::string& key, const std::string& image) const;

 private:
  std::string PlaceOf(const std::string& key) const;

  const std::string path_;
};

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_IMAGE_FOLDER_H_
