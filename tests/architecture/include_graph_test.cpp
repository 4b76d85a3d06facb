#include "architecture/include_graph.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace annulet::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<SourceFile> all_sources() {
  const fs::path root = ANNULET_SOURCE;
  std::vector<SourceFile> files;
  for (const fs::path& folder : {root / "include", root / "src"}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp") continue;
      std::ifstream in(entry.path());
      files.push_back({entry.path().lexically_relative(root).generic_string(),
                       std::string(std::istreambuf_iterator<char>(in), {})});
    }
  }
  return files;
}

TEST(IncludeGraph, TheSourcesFollowTheArrows) {
  const auto files = all_sources();
  ASSERT_GT(files.size(), 4U);
  for (const SourceFile& file : files) EXPECT_THAT(broken_includes(file), IsEmpty());
}

TEST(IncludeGraph, FollowsArrowsThroughTheLayersBelow) {
  EXPECT_THAT(broken_includes({"src/train/loop.cpp",
                               "#include \"annulet/base/units.hpp\"\n#include <vector>\n"
                               "#include \"annulet/schedule/plan.hpp\"\n"}),
              IsEmpty());
  EXPECT_THAT(broken_includes({"src/cost/a.cpp", "#include \"annulet/base/units.hpp\"\n#include \"cost/b.hpp\"\n"}),
              IsEmpty());
}

TEST(IncludeGraph, RefusesWhatPointsUpOrSideways) {
  EXPECT_THAT(broken_includes({"include/annulet/base/a.hpp", "\n#include \"annulet/comm/mpi.hpp\"\n"}),
              ElementsAre("include/annulet/base/a.hpp:2: annulet/comm/mpi.hpp: base may not include comm"));
  EXPECT_THAT(broken_includes({"src/cost/a.cpp", "  # include \"annulet/comm/mpi.hpp\" // x"}),
              ElementsAre(HasSubstr("cost may not include comm")));
  EXPECT_THAT(broken_includes({"src/nn/a.cpp", "#include \"data/private.hpp\""}),
              ElementsAre(HasSubstr("nn may not include data")));
  EXPECT_THAT(broken_includes({"src/nn/a.cpp", "#include \"../data/private.hpp\""}),
              ElementsAre(HasSubstr("from the root")));
  EXPECT_THAT(broken_includes({"src/strange/a.cpp", "#include <vector>"}), ElementsAre(HasSubstr("not a layer")));
  EXPECT_THAT(broken_includes({"src/cli/a.cpp", "#include \"annulet/strange/a.hpp\""}),
              ElementsAre(HasSubstr("strange is not a layer")));
}

TEST(IncludeGraph, KeepsMpiInCommAndEigenInNn) {
  EXPECT_THAT(broken_includes({"src/comm/a.cpp", "#include <mpi.h>"}), IsEmpty());
  EXPECT_THAT(broken_includes({"include/annulet/comm/mpi.hpp", "#include <mpi.h>"}), IsEmpty());
  EXPECT_THAT(broken_includes({"include/annulet/comm/point_to_point.hpp", "#include <mpi.h>"}), testing::SizeIs(1));
  EXPECT_THAT(broken_includes({"src/train/a.cpp", "#include <mpi.h>"}), testing::SizeIs(1));
  EXPECT_THAT(broken_includes({"src/nn/a.cpp", "#include <Eigen/Core>"}), IsEmpty());
  EXPECT_THAT(broken_includes({"include/annulet/nn/a.hpp", "#include <Eigen/Core>"}), testing::SizeIs(1));
  EXPECT_THAT(broken_includes({"src/data/a.cpp", "#include <Eigen/Core>"}), testing::SizeIs(1));
}

}  // namespace
}  // namespace annulet::test
