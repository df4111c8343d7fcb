#include "system.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace proofinfer::cli {
namespace {

int64_t affinity_cpu_count() {
  // The kernel refuses a mask that is too small for the machine, so it grows until it fits.
  for (int capacity = 1024; capacity <= (1 << 20); capacity *= 2) {
    cpu_set_t *set = CPU_ALLOC(static_cast<size_t>(capacity));
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    const bool fits = sched_getaffinity(0, bytes, set) == 0;
    const int count = fits ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

std::optional<std::string> read_line_of(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// Version 2: "max 100000" or "150000 100000" (quota and period in microseconds).
std::optional<double> quota_v2(const std::string &folder) {
  const std::optional<std::string> line = read_line_of(folder + "/cpu.max");
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  double quota = 0;
  double period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// Version 1: a quota of -1 means none.
std::optional<double> quota_v1(const std::string &folder) {
  const std::optional<std::string> quota_line = read_line_of(folder + "/cpu.cfs_quota_us");
  const std::optional<std::string> period_line = read_line_of(folder + "/cpu.cfs_period_us");
  if (!quota_line || !period_line) return std::nullopt;
  double quota = 0;
  double period = 0;
  if (!(std::istringstream(*quota_line) >> quota) || !(std::istringstream(*period_line) >> period)) return std::nullopt;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// The smallest quota from the group's folder up to the mount: a parent's limit binds its children. A folder that is not visible from
// inside a container is passed over.
double smallest_quota(const std::string &mount, std::string group, std::optional<double> (*quota_of)(const std::string &)) {
  double smallest = 1e9;
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    smallest = std::min(smallest, quota_of(mount + group).value_or(1e9));
    if (group.empty()) return smallest;
    group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

bool lists_cpu(const std::string &controllers) { return ("," + controllers + ",").find(",cpu,") != std::string::npos; }

// Lines of /proc/self/cgroup: "0::/group" for version 2, "4:cpu,cpuacct:/group" for version 1.
double cgroup_quota() {
  double quota = 1e9;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char *mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        quota = std::min(quota, smallest_quota(mount, group, quota_v2));
    } else if (lists_cpu(controllers)) {
      for (const std::string &name : {controllers, std::string("cpu")})
        quota = std::min(quota, smallest_quota("/sys/fs/cgroup/" + name, group, quota_v1));
    }
  }
  return quota;
}

}  // namespace

int64_t usable_cpu_count() {
  // A quota of 1.5 processors keeps one thread busy; a second would make both wait for the next period.
  const double quota = cgroup_quota();
  const int64_t paid_for = quota >= 1e9 ? INT64_MAX : static_cast<int64_t>(quota);
  return std::max<int64_t>(1, std::min(affinity_cpu_count(), paid_for));
}

uint64_t peak_memory_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    uint64_t kilobytes = 0;
    if (line.compare(0, 6, "VmHWM:") == 0 && std::istringstream(line.substr(6)) >> kilobytes) return kilobytes * 1024;
  }
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0 || usage.ru_maxrss < 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace proofinfer::cli
