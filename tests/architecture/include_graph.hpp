#pragma once
// The rule that keeps the layers apart, as a pure function of a file's place and text.
//   a file of layer X includes "annulet/Y/..." (or a private "Y/...") only if X is Y, or Y is below X;
//   <mpi.h> only in include/annulet/comm/mpi.hpp and in src/comm;
//   <Eigen/...> only in src/nn, so in no public header.
#include <string>
#include <string_view>
#include <vector>

namespace annulet::test {

struct SourceFile {
  std::string path;  // from the repository's root: "src/cost/price.cpp"
  std::string text;
};

// One sentence for each include that breaks the rule, with file and line; empty when all is well.
std::vector<std::string> broken_includes(const SourceFile& file);

}  // namespace annulet::test
