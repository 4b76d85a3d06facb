#include "annulet/train/rank_gradient.hpp"

#include <algorithm>

#include "annulet/train/data_check.hpp"
#include "annulet/train/trainer.hpp"
#include "annulet/train/weights.hpp"

namespace annulet::train {
namespace {

template <class T>
std::vector<float> gradient_of(const Config& config, const Data& data, const std::filesystem::path& file, int rank,
                               int world) {
  const data::Source& source = *data.train;
  const data::SampleShape shape = source.shape();
  require_fitting(config, source, config.vocabulary > 0 ? config.vocabulary : shape.classes, "training");
  require_whole_samples(source);
  const data::Sampler sampler(sampler_options(config, source));
  const data::Slice slice = sampler.slice(0, rank, world);
  const auto samples = static_cast<Elements>(slice.indices.size());
  const auto model = make_model<T>(config, shape.classes, std::max<Elements>(samples, 1));
  const auto size = static_cast<std::size_t>(model->layout().size());
  std::vector<T> weights(size), gradients(size);
  load_weights<T>(file, model->layout(), weights);

  const auto room = [&](Elements width) { return static_cast<std::size_t>(samples * width); };
  std::vector<T> features(room(shape.features)), values(room(shape.values));
  std::vector<std::int32_t> tokens(room(shape.tokens)), labels(room(shape.labels));
  source.gather(slice.indices, data::Rows<T>{features, tokens, labels, values});
  const nn::Batch<T> batch{samples, features, labels, values, tokens, slice.first_draw};
  nn::Progress quiet;
  model->forward(batch, weights, nn::Mode::train, quiet);
  const double targets = static_cast<double>(slice.global * std::max<Elements>(1, shape.tokens));
  model->backward(batch, weights, gradients, 1 / targets, nn::Accumulate::overwrite, quiet);
  return {gradients.begin(), gradients.end()};
}

}  // namespace

std::vector<float> rank_gradient(const Config& config, const Data& data, const std::filesystem::path& file, int rank,
                                 int world) {
  return config.type == "double" ? gradient_of<double>(config, data, file, rank, world)
                                 : gradient_of<float>(config, data, file, rank, world);
}

}  // namespace annulet::train
