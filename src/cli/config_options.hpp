#pragma once
// The options of a run on a CLI11 command, and its configuration files: TOML with sections, `[model] widths = ...`
// being the option --model.widths. A key that is no option is an error.
#include <CLI/CLI.hpp>

#include "annulet/base/error.hpp"
#include "annulet/train/config.hpp"

namespace annulet::cli {

// Adds --config and every option of `config`, which must outlive the app. The command line wins over the file.
void add_config_options(CLI::App& app, train::Config& config);

// What `read` gives; an InputError of it names the option.
template <class Read>
auto read_option(const std::string& flag, Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    std::string what = flag + ": " + error.what();
    what.pop_back();  // the message ends in a full stop of its own
    throw InputError({what});
  }
}

// An option that is read by one of the functions of base/units.hpp. `shown`: the default as the help has it.
template <class Value>
CLI::Option* add_unit_option(CLI::App& app, const std::string& flag, Value& value, Value (*read)(std::string_view),
                             const std::string& shown, const std::string& meaning);

// Refuses a count below `least`.
CLI::Validator at_least(std::int64_t least);

// Refuses what is no number, not finite or below 0.
CLI::Validator not_negative();

// Parses, turning CLI11's errors into InputError; nothing if help was asked for and printed (to `help`).
enum class Parsed { run, help };
Parsed parse(CLI::App& app, const std::vector<std::string>& arguments, std::string& help);

}  // namespace annulet::cli
