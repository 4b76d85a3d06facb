#pragma once
// How often memory was asked for so far: link support/allocations.cpp, which replaces malloc by one that counts (glibc;
// not under a sanitizer, which has its own). operator new and Eigen's packing blocks are seen too.

namespace annulet::test {

long allocations();

}  // namespace annulet::test
