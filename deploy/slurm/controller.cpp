#include "deploy/slurm/controller.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <string>

#include "deploy/slurm/slurm_names.h"

namespace spillway::slurm {
namespace {

// -1: the node is not in the list.
int PlaceInNodes(const char* nodes, const std::string& node) {
  if (nodes == nullptr) return -1;
  hostlist_t list = slurm_hostlist_create(nodes);
  const int place = slurm_hostlist_find(list, node.c_str());
  slurm_hostlist_destroy(list);
  return place;
}

base::Result<int64_t> ShardsOf(const slurm_job_info_t& job, const std::string& node) {
  if (job.gres_detail_cnt == 0) return 0;
  const int place = job.gres_detail_cnt == 1 ? 0 : PlaceInNodes(job.nodes, node);
  if (place < 0 || static_cast<uint32_t>(place) >= job.gres_detail_cnt)
    return base::Error{"slurmctld knows no node " + node + " of the job"};
  const char* const resources = job.gres_detail_str[place];
  return resources == nullptr ? 0 : ShardsIn(resources);
}

}  // namespace

base::Result<int64_t> ShardsOnNode(uint32_t job, const std::string& node) {
  job_info_msg_t* answer = nullptr;
  if (slurm_load_job(&answer, job, SHOW_DETAIL) != SLURM_SUCCESS)
    return base::Error{"slurmctld does not tell the job's shards", slurm_strerror(errno)};
  base::Result<int64_t> shards =
      answer->record_count == 0 ? 0 : ShardsOf(answer->job_array[0], node);
  slurm_free_job_info_msg(answer);
  return shards;
}

}  // namespace spillway::slurm
