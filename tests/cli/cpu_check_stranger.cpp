// Linked with a check for a CPU of 2015 that today's are not compatible with: nothing here may run.
#include <cstdio>

namespace {
const int kInitialised = std::puts("static initialiser started");
}

int main() { return std::puts("main started") + kInitialised < 0; }
