#pragma once
// The start-up check: a program built for a newer CPU says so instead of dying of an illegal instruction.
// It is linked in by annulet_add_cpu_check (src/cmake/cpu_features.cmake) and runs by itself before any other code of
// the program. Plain C types only: a function shared with objects compiled for the newer CPU (a template of the
// standard library, say) could be the linker's choice here, and be the illegal instruction.

namespace annulet::cli {

struct CpuFeature {
  const char* name;
  bool supported;
};

struct CpuFeatures {
  const CpuFeature* first;
  int count;
};

// At most `capacity` characters for a message, of which `length` are used; no terminating zero.
struct TextBuffer {
  char* text;
  int capacity;
  int length = 0;
};

// Appends what to tell the user when a feature is not supported; nothing when all are.
void describe_missing(CpuFeatures features, const char* built_for, TextBuffer& message);

}  // namespace annulet::cli
