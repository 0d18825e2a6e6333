#include "tests/hostcuda/host_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/hostcuda/host_settings.h"

extern char** environ;

namespace tensord::cuda::host {
namespace {

std::atomic<long> g_compilations{0};

// Runs a program with its standard error in a file. Returns its exit status, or -1.
int RunProgram(const std::vector<std::string>& words, const std::string& errors) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t process = 0;
  const int spawned = posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return -1;
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A folder that is gone when its owner is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder == nullptr ? "/tmp" : folder) + "/host_cuda_XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    for (const std::string& file : files_) unlink(file.c_str());
    if (!path_.empty()) rmdir(path_.c_str());
  }
  bool is_there() const { return !path_.empty(); }
  std::string File(const char* name) { return files_.emplace_back(path_ + "/" + name); }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> CompilerCommand(const std::vector<std::string>& definitions, bool is_checked) {
  const std::string compiler = Settings::Get().Text("CXX");
  std::vector<std::string> words = {compiler.empty() ? TENSORD_HOST_CUDA_COMPILER : compiler,
                                    "-std=c++20",
                                    "-O1",
                                    "-w",
                                    "-fPIC",
                                    "-shared",
                                    "-nostdlib",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-strict-aliasing",
                                    "-fno-exceptions",
                                    "-fno-asynchronous-unwind-tables",
                                    "-fvisibility=hidden",
                                    "-I" TENSORD_HOST_CUDA_ROOT};
  if (const std::string linker = TENSORD_HOST_CUDA_LINKER; !linker.empty()) words.push_back(linker);
  if (is_checked) words.push_back("-fsanitize=thread");
  words.insert(words.end(), definitions.begin(), definitions.end());
  std::istringstream more(Settings::Get().Text("CXXFLAGS"));
  for (std::string word; more >> word;) words.push_back(word);
  return words;
}

HostText HostTextOf(const std::string& source, const std::string& name) {
  // Shared memory that a launch sizes is one array, whatever its name.
  static const std::regex dynamic_shared(
      R"(extern\s+__shared__\s+(?:__align__\([^)]*\)\s*)?([\w ]+?)\s*\b(\w+)\s*\[\s*\]\s*;)");
  static const std::regex kernel(R"(__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\()");
  // Kernels of two texts may have one name.
  static const std::regex linkage(R"x(extern\s+"C"\s+__global__)x");
  HostText text;
  text.source = "#line 1 \"" + name + "\"\n" +
                std::regex_replace(
                    std::regex_replace(source, dynamic_shared,
                                       "\n#undef $2\n#define $2 (reinterpret_cast<$1*>(host_state.dynamic_shared))\n"),
                    linkage, "__global__") +
                "\n";
  const std::sregex_iterator end;
  for (std::sregex_iterator it(source.begin(), source.end(), kernel); it != end; ++it) {
    text.kernels.push_back((*it)[1].str());
  }
  for (std::sregex_iterator it(source.begin(), source.end(), dynamic_shared); it != end; ++it) {
    text.undefined += "#undef " + (*it)[2].str() + "\n";
  }
  return text;
}

std::string LibrarySource(const std::vector<const HostText*>& texts, bool is_checked) {
  std::string source = std::string("#include \"tests/hostcuda/host_kernel") + (is_checked ? "_checks" : "") + ".h\"\n";
  for (size_t place = 0; place < texts.size(); ++place) {
    const HostText& text = *texts[place];
    source += "namespace kernel_" + std::to_string(place) + " {\n" + text.source;
    for (const std::string& kernel : text.kernels) {
      source += "HOST_KERNEL(" + std::to_string(place) + ", " + kernel + ")\n";
    }
    source += "}\n" + text.undefined;
  }
  return source;
}

long Compilations() { return g_compilations; }

bool CompileLibrary(std::vector<std::string> command, const std::string& source, std::string* library,
                    std::string* log) {
  TemporaryFolder folder;
  if (!folder.is_there()) {
    *log += "hostcuda: no folder for temporary files\n";
    return false;
  }
  const std::string source_path = folder.File("kernel.cc"), library_path = folder.File("kernel.so");
  const std::string errors_path = folder.File("errors");
  std::ofstream(source_path) << source;
  ++g_compilations;
  command.insert(command.end(), {"-o", library_path, source_path, "-lm", "-lc", "-lgcc"});
  if (const int status = RunProgram(command, errors_path); status != 0) {
    *log += status < 0 ? "hostcuda: " + command[0] + " does not run\n" : ReadFile(errors_path);
    return false;
  }
  *library = ReadFile(library_path);
  return true;
}

}  // namespace tensord::cuda::host
