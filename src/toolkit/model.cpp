#include "toolkit/model.h"

namespace chute::toolkit {

void keep_one_graph(circle::Model &model) {
  model.more.clear();
  model.signatures.clear();
  if (model.signature_key.empty())
    return;
  circle::Signature signature;
  signature.key = model.signature_key;
  u32 position = 0;
  for (const ir::InputInfo &i : model.graph->inputs())
    signature.inputs.push_back({i.name, position++});
  position = 0;
  for (const ir::OutputInfo &o : model.graph->outputs())
    signature.outputs.push_back({o.name, position++});
  model.signatures.push_back(std::move(signature));
}

} // namespace chute::toolkit
