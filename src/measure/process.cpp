#include "annulet/measure/process.hpp"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace annulet::measure {

Bytes peak_resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return Bytes(kibibytes * 1024);
  }
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? Bytes(usage.ru_maxrss * 1024) : Bytes(0);
}

}  // namespace annulet::measure
