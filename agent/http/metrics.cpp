#include "agent/http/metrics.h"

#include <prometheus/text_serializer.h>

#include "agent/http/families.h"

namespace spillway::agent {

std::string MetricsOf(const NodeReport& report, const std::map<std::string, int64_t>& used_bytes) {
  Families families;
  AddProcess(families);
  AddNode(report, used_bytes, families);
  AddOwners(report, families);
  AddJobs(report, families);
  return prometheus::TextSerializer().Serialize(families.Take());
}

}  // namespace spillway::agent
