#include "cli/cpu_check.hpp"

#include <unistd.h>

namespace annulet::cli {
namespace {

void append(TextBuffer& buffer, const char* text) {
  for (; *text != '\0' && buffer.length < buffer.capacity; ++text) buffer.text[buffer.length++] = *text;
}

}  // namespace

void describe_missing(CpuFeatures features, const char* built_for, TextBuffer& message) {
  const char* before = " and this CPU lacks ";
  bool missing = false;
  for (int i = 0; i < features.count; ++i) {
    if (features.first[i].supported) continue;
    if (!missing) append(message, "annulet: built for "), append(message, built_for);
    missing = true;
    append(message, before);
    append(message, features.first[i].name);
    before = ", ";
  }
  if (!missing) return;
  append(message,
         " (it would die of an illegal instruction). Build on this machine with -DANNULET_ARCH=native, or for every "
         "machine of the cluster with -DANNULET_ARCH=x86-64-v3 or -DANNULET_ARCH=x86-64.\n");
}

}  // namespace annulet::cli

#if defined(__x86_64__)

namespace {

// 101 is the first priority open to programs: before every static initialiser compiled for the newer CPU.
[[gnu::constructor(101)]] void refuse_a_cpu_that_lacks_a_feature() {
  __builtin_cpu_init();
  const annulet::cli::CpuFeature needed[] = {
      {"x86-64", true},  // an array must not be empty
#define ANNULET_CPU_FEATURE(name) {name, __builtin_cpu_supports(name) != 0},
#include "needed_cpu_features.inc"
#undef ANNULET_CPU_FEATURE
  };
  char text[1024];
  annulet::cli::TextBuffer message{text, static_cast<int>(sizeof text)};
  annulet::cli::describe_missing({needed, static_cast<int>(sizeof needed / sizeof needed[0])}, ANNULET_BUILT_FOR,
                                 message);
  if (message.length == 0) return;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, static_cast<unsigned long>(message.length));
  _exit(1);
}

}  // namespace

#endif
