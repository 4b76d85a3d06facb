// annulet plan collectives, compress and deck: what goes over the network.
#include <fmt/format.h>

#include "annulet/base/error.hpp"
#include "annulet/plan/collectives.hpp"
#include "annulet/plan/compress.hpp"
#include "annulet/plan/deck.hpp"
#include "plan_topics.hpp"

namespace annulet::cli {
namespace {

// The vector: a model's gradients, or so many bytes.
struct VectorOptions {
  std::string model;
  Bytes bytes{0};
  int element = 2;

  void add(CLI::App& app) {
    app.add_option("--model", model, "its gradients are the vector: a name of configs/models, or a file");
    add_unit_option(app, "--bytes", bytes, parse_bytes, "the model's", "length of the vector, instead of a model");
    app.add_option("--element-bytes", element, "of an element of a model's gradients")
        ->capture_default_str()
        ->check(at_least(1));
  }

  Elements elements() const {
    if (model.empty()) return bytes.value() / element;
    return ModelOptions{.model = model}.work().parameters();
  }

  std::string name() const {
    return model.empty() ? "" : fmt::format("the gradients of {}, {} bytes each", model, element);
  }

  void require_one() const {
    if (model.empty() != (bytes == Bytes(0))) return;
    throw InputError({model.empty() ? "there is neither --model nor --bytes" : "--model and --bytes are both given",
                      model.empty() ? "nothing says how long the vector is" : "each says how long the vector is",
                      "Give one, say --model llama-7b or --bytes 100MB"});
  }
};

class CollectivesTopic final : public PlanTopic {
  void add_options(CLI::App& app) override {
    vector_.add(app), machine_.add(app);
    without(app, {"--memory"});
    app.add_option("--ranks", ranks_, "how many take part")->capture_default_str()->check(at_least(1));
  }

  plan::Answer answer() const override {
    vector_.require_one();
    const bool model = !vector_.model.empty();
    return plan::plan_collectives({model ? Bytes(vector_.element * vector_.elements()) : vector_.bytes, ranks_,
                                   machine_.read(), machine_.machine, vector_.name(),
                                   Bytes(model ? vector_.element : 1)});
  }

  VectorOptions vector_;
  MachineOptions machine_;
  int ranks_ = 8;
};

class CompressTopic final : public PlanTopic {
  void add_options(CLI::App& app) override {
    vector_.element = 4;
    vector_.add(app), machine_.add(app);
    without(app, {"--memory"});
    app.add_option("--ranks", question_.ranks, "numbers of ranks")->delimiter(',')->capture_default_str();
    app.add_option("--density", densities_, "parts of the values that are sent: 1/16 or 0.0625")
        ->delimiter(',')
        ->default_str("1/16");
    app.add_option("--value-bits", question_.value_bits, "of a value sent with its position")->capture_default_str();
    app.add_option("--index-bits", question_.index_bits, "of the position")->capture_default_str();
    app.add_option("--narrow-bits", question_.narrow_bits, "dense types to try instead")
        ->delimiter(',')
        ->capture_default_str();
  }

  plan::Answer answer() const override {
    vector_.require_one();
    plan::CompressQuestion q = question_;
    q.elements = vector_.elements(), q.dense_bits = 8 * vector_.element;
    q.machine = machine_.read(), q.machine_name = machine_.machine, q.vector_name = vector_.name();
    if (!densities_.empty()) q.densities.clear();
    for (const std::string& text : densities_) q.densities.push_back(density(text));
    return plan::plan_compress(q);
  }

  static double density(const std::string& text) {
    const std::size_t slash = text.find('/');
    const auto number = [&](const std::string& part) {
      std::size_t read = 0;
      double value = 0;
      try {
        value = std::stod(part, &read);
      } catch (const std::exception&) {
        read = 0;
      }
      if (read == part.size() && read > 0) return value;
      throw InputError({fmt::format("--density {} is no part", text), "", "Write 1/16 or 0.0625"});
    };
    return slash == std::string::npos ? number(text) : number(text.substr(0, slash)) / number(text.substr(slash + 1));
  }

  VectorOptions vector_;
  MachineOptions machine_;
  std::vector<std::string> densities_;
  plan::CompressQuestion question_;
};

class DeckTopic final : public PlanTopic {
  void add_options(CLI::App&) override {}
  plan::Answer answer() const override { return plan::plan_deck(); }
};

}  // namespace

std::unique_ptr<PlanTopic> collectives_topic() { return std::make_unique<CollectivesTopic>(); }
std::unique_ptr<PlanTopic> compress_topic() { return std::make_unique<CompressTopic>(); }
std::unique_ptr<PlanTopic> deck_topic() { return std::make_unique<DeckTopic>(); }

}  // namespace annulet::cli
