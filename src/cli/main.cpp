// annulet: finds the subcommand and lets it run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "build_info.hpp"
#include "commands.hpp"

namespace annulet::cli {
namespace {

struct Command {
  std::string_view name;
  std::string_view meaning;
  int (*run)(const Arguments&);
};

constexpr std::array kCommands{
    Command{"train", "train a model on all ranks of the MPI world", train},
    Command{"sample", "print text by a language model that was trained", sample},
    Command{"calibrate", "measure the links between the ranks and write a machine file", calibrate},
    Command{"bench", "measure collectives beside MPI's own and beside their prediction", bench},
    Command{"plan", "what training will cost on machines that need not be there", plan},
    Command{"ring", "step through a collective: what each rank holds and sends", ring},
    Command{"verify", "train on all ranks and on one, and compare what comes out", verify}};

std::string usage() {
  std::string text =
      "annulet: data-parallel training over MPI, measured next to what the alpha-beta model predicts\n\nUsage: annulet "
      "COMMAND ...\n\n";
  for (const Command& command : kCommands) text += fmt::format("  {:<10} {}\n", command.name, command.meaning);
  return text + "\nannulet COMMAND --help explains a command; annulet --version names this build.\n";
}

int run(const Arguments& arguments) {
  if (arguments.empty()) return print_error_once(usage()), 2;
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") return print_once(usage()), 0;
  if (name == "--version") {
    print_once(fmt::format("annulet {} ({}, {}, {}{})\n", build::kVersion, build::kCompiler, build::kType, build::kArch,
                           build::kBlas ? ", BLAS" : ""));
    return 0;
  }
  const auto command =
      std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& c) { return c.name == name; });
  if (command != kCommands.end()) return command->run({arguments.begin() + 1, arguments.end()});
  print_error_once(fmt::format("annulet: '{}' is not a command. See annulet --help.", name));
  return 2;
}

}  // namespace

bool first_process() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(variable)) return std::string_view(rank) == "0";
  }
  return true;
}

void print_once(const std::string& text) {
  if (first_process()) std::fwrite(text.data(), 1, text.size(), stdout), std::fflush(stdout);
}

void print_error_once(const std::string& text) {
  if (first_process()) std::fprintf(stderr, "%s\n", text.c_str()), std::fflush(stderr);
}

}  // namespace annulet::cli

int main(int argc, char** argv) {
  try {
    const int code = annulet::cli::run({argv + 1, argv + argc});
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fputs("annulet: the output could not be written (is the disk full?)\n", stderr);
    return code != 0 ? code : 1;
  } catch (const std::exception& error) {  // before MPI was there to agree over: every process fails alike
    annulet::cli::print_error_once(fmt::format("annulet: {}", error.what()));
    return 2;
  }
}
