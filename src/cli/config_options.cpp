#include "config_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"

namespace annulet::cli {
namespace {

// Sections become part of the name, underscores dashes; unknown names are refused with the file's name.
class SectionedToml final : public CLI::ConfigBase {
 public:
  explicit SectionedToml(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> flat;
    for (CLI::ConfigItem& item : CLI::ConfigBase::from_config(input)) {
      if (item.name == "++" || item.name == "--") continue;  // where CLI11 enters and leaves a section
      std::string name;
      for (const std::string& parent : item.parents) name += parent + '.';
      name += item.name;
      std::replace(name.begin(), name.end(), '_', '-');
      if (app_.get_option_no_throw("--" + name) == nullptr) refuse(name);
      item.name = name;
      item.parents.clear();
      flat.push_back(std::move(item));
    }
    return flat;
  }

 private:
  [[noreturn]] void refuse(const std::string& name) const {
    throw InputError({fmt::format("{}: unknown key '{}'", app_.get_option("--config")->as<std::string>(), name),
                      "a misspelt key would silently leave the default", "See annulet train --help for the names"});
  }

  const CLI::App& app_;
};

class Adder {
 public:
  explicit Adder(CLI::App& app) : app_(app) {}

  template <class Value>
  void operator()(const std::string& name, Value& value, const char* meaning) const {
    add("--" + name, value, meaning)->group(group(name));
  }

 private:
  static std::string group(const std::string& name) {
    const std::size_t dot = name.find('.');
    return dot == std::string::npos ? "Run" : "[" + name.substr(0, dot) + "]";
  }

  template <class Value>
  CLI::Option* add(const std::string& flag, Value& value, const char* meaning) const {
    return app_.add_option(flag, value, meaning)->capture_default_str();
  }

  CLI::Option* add(const std::string& flag, bool& value, const char* meaning) const {
    return app_.add_option(flag, value, meaning)->capture_default_str()->expected(1);
  }

  CLI::Option* add(const std::string& flag, std::vector<Elements>& value, const char* meaning) const {
    return app_.add_option(flag, value, meaning)->capture_default_str()->delimiter(',');
  }

  CLI::Option* add(const std::string& flag, Bytes& value, const char* meaning) const {
    return add_unit_option(app_, flag, value, parse_bytes, fmt::format("{}B", value.value()), meaning);
  }

  CLI::Option* add(const std::string& flag, std::optional<Bytes>& value, const char* meaning) const {
    const auto read =
        +[](std::string_view text) { return text == "auto" ? std::nullopt : std::optional(parse_bytes(text)); };
    const std::string shown = value ? fmt::format("{}B", value->value()) : "auto";
    return add_unit_option<std::optional<Bytes>>(app_, flag, value, read, shown, meaning);
  }

  CLI::Option* add(const std::string& flag, Seconds& value, const char* meaning) const {
    return add_unit_option(app_, flag, value, parse_seconds, fmt::format("{}s", value.count()), meaning);
  }

  CLI::App& app_;
};

template <class Value>
constexpr const char* kTypeName = "RATE";
template <>
constexpr const char* kTypeName<Bytes> = "BYTES";
template <>
constexpr const char* kTypeName<std::optional<Bytes>> = "BYTES|auto";
template <>
constexpr const char* kTypeName<Seconds> = "TIME";

}  // namespace

template <class Value>
CLI::Option* add_unit_option(CLI::App& app, const std::string& flag, Value& value, Value (*read)(std::string_view),
                             const std::string& shown, const std::string& meaning) {
  const auto store = [&value, read, flag](const std::string& text) {
    value = read_option(flag, [&] { return read(text); });
  };
  return app.add_option_function<std::string>(flag, store, meaning)->default_str(shown)->type_name(kTypeName<Value>);
}

template CLI::Option* add_unit_option(CLI::App&, const std::string&, Bytes&, Bytes (*)(std::string_view),
                                      const std::string&, const std::string&);
template CLI::Option* add_unit_option(CLI::App&, const std::string&, std::optional<Bytes>&,
                                      std::optional<Bytes> (*)(std::string_view), const std::string&,
                                      const std::string&);
template CLI::Option* add_unit_option(CLI::App&, const std::string&, Seconds&, Seconds (*)(std::string_view),
                                      const std::string&, const std::string&);

void add_config_options(CLI::App& app, train::Config& config) {
  app.set_config("--config", "", "a TOML file with any of these options (sections for the part before the dot)");
  app.config_formatter(std::make_shared<SectionedToml>(app));
  app.allow_config_extras(CLI::config_extras_mode::error);
  train::for_each_option(config, Adder(app));
}

CLI::Validator at_least(std::int64_t least) {
  const auto objection = [least](const std::string& text) {
    std::int64_t value = 0;
    const bool holds = CLI::detail::lexical_cast(text, value) && value >= least;
    return holds ? std::string() : fmt::format("'{}' is not a count of {} or more", text, least);
  };
  return {objection, least > 0 ? fmt::format(">= {}", least) : ""};
}

CLI::Validator not_negative() {
  const auto objection = [](const std::string& text) {
    double value = 0;
    const bool holds = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= 0;
    return holds ? std::string() : fmt::format("'{}' is not a number of 0 or more", text);
  };
  return {objection, ">= 0"};
}

Parsed parse(CLI::App& app, const std::vector<std::string>& arguments, std::string& help) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return Parsed::run;
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return Parsed::help;
  } catch (const CLI::FileError& error) {
    throw InputError({error.what(), "", "Name an existing file with --config"});
  } catch (const CLI::ParseError& error) {
    const CLI::Option* file = app.get_option_no_throw("--config");
    const std::string origin =
        file != nullptr && file->count() > 0 ? fmt::format("the command line or {}", file->as<std::string>()) : "";
    throw InputError({error.what(), origin, fmt::format("See {} --help", app.get_name())});
  }
}

}  // namespace annulet::cli
