// Runs a target on every file of the folders named, without libFuzzer. Fails when there is none.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness.h"

namespace {

struct Name {
  char path[1024];
};

void list(const char *folder, std::vector<Name> *names) {
  DIR *directory = opendir(folder);
  HOLDS(directory != nullptr);
  while (const dirent *entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    Name name;
    std::snprintf(name.path, sizeof(name.path), "%s/%s", folder, entry->d_name);
    names->push_back(name);
  }
  closedir(directory);
}

void run(const char *path) {
  FILE *file = std::fopen(path, "rb");
  struct stat information;
  HOLDS(file != nullptr && fstat(fileno(file), &information) == 0);
  const size_t size = size_t(information.st_size);
  // An allocation of exactly this size: a sanitizer sees one byte too far.
  uint8_t *data = static_cast<uint8_t *>(std::malloc(size ? size : 1));
  HOLDS(data != nullptr && std::fread(data, 1, size, file) == size);
  std::fclose(file);
  LLVMFuzzerTestOneInput(data, size);
  std::free(data);
}

}  // namespace

int main(int argc, char **argv) {
  std::vector<Name> names;
  for (int i = 1; i < argc; i++) list(argv[i], &names);
  std::sort(names.begin(), names.end(), [](const Name &a, const Name &b) { return std::strcmp(a.path, b.path) < 0; });
  for (const Name &name : names) {
    std::printf("%s\n", name.path);  // the last one is the culprit
    std::fflush(stdout);
    run(name.path);
  }
  return names.empty() ? 1 : 0;
}
